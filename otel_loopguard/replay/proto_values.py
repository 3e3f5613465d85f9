"""OTLP protobuf attributes -> plain data, the same as OTLP/JSON gives."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from otel_loopguard.replay.proto_wire import (
    EIGHT_BYTES,
    VARINT,
    Field,
    WireError,
    fields_of,
    inside,
    number_at,
    tag_of,
)

_Reader: TypeAlias = "Callable[[bytes, list[Field], int], object]"
"""Reads the fields that make up one value: several only where it comes in parts."""

_KEY: Final = tag_of(1)
_VALUE: Final = tag_of(2)
_TEXT: Final = tag_of(1)
_INTEGER: Final = tag_of(3, VARINT)
_ITEMS: Final = tag_of(1)

_SHORTEST = 5
"""Bytes of a pair whose value is a string; all but one are tags and lengths."""
_LONG = 128
"""A length from here on takes more than one byte."""
_NAMES = 1_024
"""Short names of attributes that are kept: the same few come again and again."""
_MAX_DEPTH = 94
"""As deep as in OTLP/JSON, where the path to a value is limited."""
_double = struct.Struct("<d")


def text_of(data: bytes, begin: int, end: int) -> str:
    """Return text; replacement characters stand for what is no UTF-8."""
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError:
        return data[begin:end].decode("utf-8", "replace")


@lru_cache(_NAMES)
def _name_of(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def signed(number: int) -> int:
    """Return a number of 64 bits with its sign."""
    return number - (1 << 64) if number >> 63 else number


def mapping_of(data: bytes, fields: Iterable[Field], tag: int, depth: int = 1) -> dict[str, object]:
    """Return the key-value pairs with this tag as a mapping; the last of equal keys counts.

    Raises:
        WireError: a pair cannot be read, or is nested too deeply.

    """
    mapping: dict[str, object] = {}
    try:
        for found, begin, end in fields:
            if found != tag:
                continue
            # Nearly all are a short key and then a value: no list is made of their fields.
            value = begin + 2 + data[begin + 1] if end - begin > _SHORTEST else end
            if value + 4 <= end and data[value] == _VALUE and data[begin] == _KEY:
                size, at = data[value + 1], value + 2
                if size >= _LONG:
                    size, at = number_at(data, value + 1)
                if size > 1 and at + size == end and data[begin + 1] < _LONG:
                    key = _name_of(data[begin + 2 : value])
                    length = data[at + 1]
                    if data[at] == _TEXT and length < _LONG and at + 2 + length == end:
                        mapping[key] = text_of(data, at + 2, end)
                    else:
                        mapping[key] = _simple(data, at, end, depth)
                    continue
            key, plain = _pair(data, begin, end, depth)
            mapping[key] = plain
    except IndexError as error:
        raise WireError("expected a whole key and value, got their beginning") from error
    return mapping


def _simple(data: bytes, begin: int, end: int, depth: int) -> object:
    """Return an AnyValue, without a list of its fields where it has but one, as most do."""
    tag = data[begin]
    if tag == _TEXT:
        length, text = number_at(data, begin + 1)
        if text + length == end:
            return text_of(data, text, end)
    elif tag == _INTEGER:
        number, stop = number_at(data, begin + 1)
        if stop == end:
            return signed(number)
    return _plain(data, ((0, begin, end),), depth)


def _pair(data: bytes, begin: int, end: int, depth: int) -> tuple[str, object]:
    key = ""
    value: list[Field] = []
    for field in fields_of(data, begin, end):
        if field[0] == _KEY:
            key = text_of(data, field[1], field[2])
        elif field[0] == _VALUE:
            value.append(field)
    return key, _plain(data, value, depth)


def _plain(data: bytes, parts: Iterable[Field], depth: int) -> object:
    """Return an AnyValue as plain data; one without a value is `None`."""
    if depth > _MAX_DEPTH:
        raise WireError(f"expected values nested at most {_MAX_DEPTH} deep, got deeper ones")
    kind, values = 0, list[Field]()
    for part in parts:
        for field in fields_of(data, part[1], part[2]):
            if field[0] in _READERS:
                # One of these is set: another kind replaces it, the same kind goes on with it.
                values = [*values, field] if field[0] == kind else [field]
                kind = field[0]
    return _READERS[kind](data, values, depth) if values else None


def _double_of(data: bytes, values: list[Field], _depth: int) -> float:
    number: float = _double.unpack_from(data, values[-1][2] - 8)[0]
    return number


def _array(data: bytes, values: list[Field], depth: int) -> tuple[object, ...]:
    return tuple(_plain(data, (item,), depth + 1) for item in _items(data, values))


def _items(data: bytes, values: list[Field]) -> list[Field]:
    return [item for value in values for item in inside(data, value, _ITEMS)]


_READERS: Final[Mapping[int, _Reader]] = {
    _TEXT: lambda data, values, _: text_of(data, *values[-1][1:]),
    tag_of(2, VARINT): lambda _data, values, _: values[-1][1] != 0,
    _INTEGER: lambda _data, values, _: signed(values[-1][1]),
    tag_of(4, EIGHT_BYTES): _double_of,
    tag_of(5): _array,
    tag_of(6): lambda data, values, depth: mapping_of(
        data, _items(data, values), _ITEMS, depth + 1
    ),
    tag_of(7): lambda data, values, _: data[values[-1][1] : values[-1][2]],
    # An index into a table that only profiles have: a value, but nobody knows which.
    tag_of(8, VARINT): lambda _data, _values, _: None,
}
"""How each field of an AnyValue is read."""

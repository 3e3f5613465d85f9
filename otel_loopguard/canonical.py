"""When two values are the same value: one canonical text each, and a fingerprint of it.

Equality is that of RFC 8785 (JSON Canonicalization Scheme) over strings in Unicode form NFC: the
order of keys, white space between tokens and the spelling of numbers do not matter. Beyond it:

- Integers compare exactly at any size. Other numbers compare as the nearest double, and a double
  stands for the shortest decimal that reads back as it, which is what JSON writers write.
- A string that is JSON text *is* that JSON value, also when encoded several times over; of equal
  keys in it the last counts. Strings inside other values stay strings.
- What JSON has no form for (sets, bytes, times, objects, keys that are no strings) compares by type
  and content, and equals no JSON value. `_normal_form` has the rules.
- What cannot be read by value is `UNKNOWN`, and so is whatever holds it. It never equals anything.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Literal, TypeAlias
from unicodedata import is_normalized

from msgspec import DecodeError

from otel_loopguard.values._json_text import decode, value_of
from otel_loopguard.values._normal_form import PARTS, normal_form
from otel_loopguard.values._scalars import ZEROS, encode


class Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN
"""A value that was absent, cut, hidden or unreadable."""

Canonical: TypeAlias = bytes | Literal[Unknown.UNKNOWN]

_TEXT: Final[Callable[[object], str]] = vars(str)["__str__"]
_VALUES: Final[Callable[[object], Iterable[object]]] = vars(dict)["values"]
_LONG_NUMBER: Final = b"0" * (ZEROS + 1)
_QUOTE: Final = ord('"')


def fingerprint(value: object) -> int | None:
    """Return a 64-bit hash, equal for equal values; `None` for what is `UNKNOWN`.

    It is a SipHash under a key that Python draws for each process: fingerprints compare within one
    process only and must not be stored or sent. Never raises an `Exception`.
    """
    text = canonical(value)
    return None if text is UNKNOWN else hash(text)


def canonical(value: object) -> Canonical:
    """Return the canonical text of a value (UTF-8), or `UNKNOWN`. Never raises an `Exception`.

    Iterators are never consumed, and the work is bounded: Python data of more than 100,000 parts
    is `UNKNOWN`. JSON text may have any length.
    """
    if value is UNKNOWN:
        return UNKNOWN
    try:
        kind = type(value)
        if kind is not dict and issubclass(kind, str):  # `isinstance` would ask the value
            content, is_plain = value_of(_TEXT(value))
            return _written(content, encode if is_plain else None)
        return _written(value, _writer_of(value))
    except Exception:  # noqa: BLE001 - values run foreign code: what raises cannot be read
        return UNKNOWN


def _writer_of(value: object) -> Callable[[object], bytes] | None:
    """Return the function that writes a value as `normal_form` would, `None` if there is none.

    Keys, the form of strings and the size of integers are left to `_written`. The containers are
    walked in a list that grows while it is read, so depth is free; the limit ends circular values.
    """
    write = encode
    containers: list[Collection[object]] = []
    add: Callable[[Any], None] = containers.append
    add(value if type(value) is dict else (value,))
    left = PARTS
    for container in containers:
        left -= len(container)
        if left < 0:
            return None
        kind: type[object] = type(container)
        for part in _VALUES(container) if kind is dict else container:
            kind = type(part)
            if kind is str or kind is int or kind is bool or part is None:
                continue
            if kind is dict or kind is list or kind is tuple:
                add(part)
            elif type(part) is float and part - part == 0:
                write = _respelled if part.is_integer() else write
            else:
                return None
    return write


def _respelled(value: object) -> bytes:
    """Encode data with floats such as `1.0`: as text, they are read back as integers."""
    return encode(decode(encode(value)))


def _written(value: object, write: Callable[[object], bytes] | None) -> bytes:
    """Return the canonical text of plain data: almost always what the encoder writes."""
    if write is None:
        return normal_form(value, UNKNOWN)
    try:
        text = write(value)
    except (RecursionError, TypeError, ValueError, DecodeError):
        # Depth; keys that are no strings; lone surrogates and long integers; numbers that would
        # grow long (msgspec's errors are `ValueError`s in its later versions only).
        return normal_form(value, UNKNOWN)
    if not text.isascii() and not is_normalized("NFC", text.decode()):
        return normal_form(value, UNKNOWN)
    if len(text) > ZEROS and text[0] != _QUOTE and text.find(_LONG_NUMBER) >= 0:
        return normal_form(value, UNKNOWN)
    return text

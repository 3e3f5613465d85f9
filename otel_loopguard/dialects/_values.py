"""Reads one attribute's value: what it is, or that it is not known.

Values come from every instrumentation there is, so a number may be text, a list may be JSON text,
and anything may be missing or of another type. Nothing here raises: what cannot be read is as if
it were not there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard, TypeVar

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.spans import SpanRecord

Attributes: TypeAlias = Mapping[str, object]
Names: TypeAlias = Sequence[str]
"""Names of one fact in the order in which they are believed."""

HIDDEN = frozenset({"__REDACTED__", "[REDACTED]", "<REDACTED>"})
"""What OpenInference, Strands and Claude Code write in place of a value that was to be hidden."""
_LONGEST_HIDDEN = max(map(len, HIDDEN))
"""Longer texts are not looked up: that would read all of each."""
_MAX_DEPTH = 32
"""Deeper structures than this are taken as cut: nobody's arguments, and perhaps a circle."""
_MAX_DIGITS = 18
_TEXTS = msgspec.json.Decoder(list[object])

_T = TypeVar("_T")


def text(value: object) -> str:
    """Return `value` if it is a text, also an Enum that is one; else ""."""
    if type(value) is str:
        return value
    # `str.__str__` and not `str`: a text Enum is to give its value, not its name.
    return str.__str__(value) if isinstance(value, str) else ""


def first_text(attributes: Attributes, names: Names) -> str:
    """Return the first of `names` that is a text and not empty; else ""."""
    for name in names:
        found = text(attributes.get(name))
        if found:
            return found
    return ""


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list, of a JSON list such as '["stop"]', or of a single text."""
    if isinstance(value, str):
        listed = parsed(value, _TEXTS) if value.startswith("[") else None
        return _without_empty(listed or (value,))
    return _without_empty(value) if is_array(value) else ()


def first_count(attributes: Attributes, names: Names) -> int | None:
    """Return the first of `names` that is a whole number from 0 up, or the text of one."""
    for name in names:
        value = attributes.get(name)
        found = value if type(value) is int else _whole(value)
        if found is not None and found >= 0:
            return found
    return None


def first_amount(attributes: Attributes, names: Names) -> float | None:
    """Return the first of `names` that is a finite number from 0 up, or the text of one."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                amount = float(value)
            except (ValueError, OverflowError):
                continue
            if math.isfinite(amount) and amount >= 0:
                return amount
    return None


def content(value: object, limit: int | None) -> object:
    """Return `value` as it is; `UNKNOWN` where it is absent, hidden, or may have been cut.

    `limit` is the attribute value length limit in characters, `None` if there is none. A text of
    that length may go on elsewhere, and two different ones would look the same.
    """
    if value is None or (
        isinstance(value, str) and len(value) <= _LONGEST_HIDDEN and value in HIDDEN
    ):
        return UNKNOWN
    return UNKNOWN if limit is not None and _may_be_cut(value, limit, 0) else value


def first_content(record: SpanRecord, names: Names) -> object:
    """Return the first of `names` whose content is known; else `UNKNOWN`."""
    attributes, limit = record.attributes, record.value_length_limit
    for name in names:
        value = attributes.get(name)
        found = UNKNOWN if value is None else content(value, limit)
        if found is not UNKNOWN:
            return found
    return UNKNOWN


def parsed(value: object, decoder: msgspec.json.Decoder[_T]) -> _T | None:
    """Return `value`, JSON text or the structure itself, as what `decoder` reads; else `None`."""
    try:
        if isinstance(value, (str, bytes)):
            return decoder.decode(value)
        converted: _T = msgspec.convert(value, decoder.type)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return None
    return converted


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Say whether `value` is a JSON object."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Say whether `value` is a JSON array."""
    return isinstance(value, (list, tuple))


def joined(pieces: Sequence[object]) -> str | Unknown:
    """Return the texts, one a line; `UNKNOWN` if any of `pieces` is no text."""
    known = [text(piece) for piece in pieces if isinstance(piece, str)]
    return "\n".join(known) if len(known) == len(pieces) else UNKNOWN


def _without_empty(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(found for value in values if (found := text(value)))


def _whole(value: object) -> int | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # `isdigit` alone also holds for digits that `int` refuses.
    if isinstance(value, str) and len(value) <= _MAX_DIGITS and value.isascii() and value.isdigit():
        return int(value)
    return None


def _may_be_cut(value: object, limit: int, depth: int) -> bool:
    if isinstance(value, (str, bytes)):
        return len(value) >= limit
    if depth > _MAX_DEPTH:
        return True
    if is_mapping(value):
        return any(_may_be_cut(item, limit, depth + 1) for item in value.values())
    if is_array(value):
        return any(_may_be_cut(item, limit, depth + 1) for item in value)
    return False

"""Strings that are JSON text, read as plain values.

msgspec reads nearly all of them. A slower reader takes what msgspec refuses though Python's `json`
writes or reads it: integers of any length, any depth, `NaN` and `Infinity`, lone surrogates.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from math import inf, nan
from typing import Any, Final

import msgspec

from otel_loopguard.values._normal_form import PARTS, UnreadableError
from otel_loopguard.values._scalars import number_text

_SPACE: Final = " \t\n\r"
_BLANKS: Final = frozenset(_SPACE)
_ENDS: Final = {"{": "}", "[": "]", '"': '"', **dict.fromkeys("-0123456789", "0123456789")}
"""How JSON text begins, and what it then ends with: a failed attempt to read is slow."""
_WORDS: Final[dict[str, tuple[object, bool]]] = {
    "true": (True, True),
    "false": (False, True),
    "null": (None, True),
    "NaN": (nan, False),
    "Infinity": (inf, False),
}
"""JSON text that could begin a sentence: looked up, for a failed attempt to read is slow."""
_LETTERS: Final = frozenset(word[0] for word in _WORDS)
_INT_DIGITS: Final = 640
"""Digits that `int()` reads under every setting of `sys.set_int_max_str_digits`."""
_GROWTH: Final = 32
"""Digits that writing a number in full may add; keeps `[1e300, 1e300, ...]` from swelling."""
_INK: Final = re.compile(r"[^ \t\n\r]")
_CLOSING: Final = {"[": "]", "{": "}"}


def value_of(text: str, layers: int = 4) -> tuple[object, bool]:
    """Return the JSON value that a text spells, or the text itself if it is not JSON.

    Text inside a JSON string is read again, as often as there are `layers`. The second item tells
    whether the encoder writes the value; it need not if only the slower reader could read it.
    Raises `UnreadableError` if that one found more than 100,000 parts.
    """
    start = text[:1]
    if start in _BLANKS:
        start = text.lstrip(_SPACE)[:1]
    ends = _ENDS.get(start)
    if ends is None or not layers:
        return _WORDS.get(text.strip(_SPACE), (text, True)) if start in _LETTERS else (text, True)
    if text[-1] not in ends and text.rstrip(_SPACE)[-1] not in ends:
        return text, True
    try:
        content = decode(text)
    except (RecursionError, UnicodeEncodeError, msgspec.ValidationError):
        return _value_of_odd(text, layers)
    except msgspec.DecodeError:
        if "NaN" in text or "Infinity" in text or "\\ud" in text or "\\uD" in text:
            return _value_of_odd(text, layers)
        return text, True
    return value_of(content, layers - 1) if type(content) is str else (content, True)


def _value_of_odd(text: str, layers: int) -> tuple[object, bool]:
    try:
        content = _read_slowly(text)
    except ValueError:
        return text, True
    return value_of(content, layers - 1) if type(content) is str else (content, False)


def _read_slowly(text: str) -> object:
    """Return the value of JSON text, without recursion. Raises `ValueError` if it is not JSON."""
    value: Any
    opened: list[tuple[str, Any]] = []  # each with the mark that closes it
    keys: list[str] = []
    position = 0
    for _ in range(PARTS):
        mark, position = _mark(text, position)
        if mark in _CLOSING:
            closing = _CLOSING[mark]
            value = [] if mark == "[" else {}
            following, position = _mark(text, position + 1)
            if following != closing:
                opened.append((closing, value))
                position = _read_key(text, position, keys) if mark == "{" else position
                continue
            position += 1
        else:
            value, position = _SCALARS.raw_decode(text, position)
        while opened:
            closing, container = opened[-1]
            if closing == "]":
                container.append(value)
            else:
                container[keys.pop()] = value
            mark, position = _mark(text, position)
            position += 1
            if mark == ",":
                position = _read_key(text, position, keys) if closing == "}" else position
                break
            if mark != closing:
                raise ValueError(position)
            value = opened.pop()[1]
        else:
            if _mark(text, position)[0]:
                raise ValueError(position)
            return value
    raise UnreadableError


def _mark(text: str, position: int) -> tuple[str, int]:
    """Return the next character that is no white space ("" at the end), and where it stands."""
    ink = _INK.search(text, position)
    return (ink[0], ink.start()) if ink else ("", len(text))


def _read_key(text: str, position: int, keys: list[str]) -> int:
    """Add the key of a member to `keys` and return the position after its colon."""
    quote, start = _mark(text, position)
    key, end = _SCALARS.raw_decode(text, start)
    colon, after = _mark(text, end)
    if quote != '"' or colon != ":":
        raise ValueError(position)
    keys.append(key)
    return after + 1


def _short_number(token: str) -> int | float:
    """Return the number of a token with a fraction or an exponent; `ValueError` if it is long."""
    double = float(token)
    if not double.is_integer() and abs(double) != inf:
        return double
    digits = number_text(token)
    if len(digits) > len(token) + _GROWTH:
        raise ValueError(token)
    return int(digits)


def _number(token: str) -> int | float | Decimal:
    try:
        return _short_number(token)
    except ValueError:
        return Decimal(token)


def _integer(token: str) -> int | Decimal:
    return int(token) if len(token) <= _INT_DIGITS else Decimal(token)


decode: Final = msgspec.json.Decoder(float_hook=_short_number).decode
"""Reads JSON text, integral floats as integers; raises where the slower reader must read it."""
_SCALARS: Final = json.JSONDecoder(parse_float=_number, parse_int=_integer)

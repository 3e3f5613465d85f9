"""The canonical text of single values: strings, numbers, bytes, ranges, `true`, `false`, `null`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from math import inf
from typing import Any, Final
from unicodedata import normalize

import msgspec

ZEROS: Final = 400
"""An integer that ends in more zeros is written with an exponent."""

_SHORT: Final = 1024
"""Bits of an integer that is written at once: within every limit, with fewer than 400 zeros."""
_NUMBER: Final = re.compile(r"(-?)([0-9]*)\.?([0-9]*)(?:[eE]([-+]?[0-9]+))?")

encode: Final = msgspec.json.Encoder(order="sorted").encode
"""Writes JSON with sorted keys."""


def number_text(token: str) -> str:
    """Return the canonical text of a number: an integer exactly, any other as the nearest double.

    Takes what JSON, `repr` of a float and `str` of a `Decimal` write.
    """
    match = _NUMBER.fullmatch(token)
    if match is None:
        return "NaN" if "nan" in token.lower() else "-Infinity" if "-" in token else "Infinity"
    sign, whole, fraction, exponent = match.groups(default="")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    zeros = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    if 0 <= zeros <= ZEROS:
        return sign + significant + "0" * zeros
    double = float(token)
    if zeros < 0 and abs(double) != inf:
        return number_text(repr(double)) if double.is_integer() else encode(double).decode()
    return f"{sign}{significant}e{zeros}"


def string(value: str) -> bytes:
    """Return the text of a string, in NFC."""
    text = normalize("NFC", value)
    try:
        return encode(text)
    except UnicodeEncodeError:  # lone surrogates: as escapes, which the encoder writes for none
        return json.dumps(text).encode()


def _integer(value: int) -> bytes:
    if value.bit_length() <= _SHORT:
        return encode(value)
    return number_text(str(Decimal(value))).encode()  # no digit limit, as `str` of `int` has


def _octets(value: Any) -> bytes:
    content = memoryview(value).tobytes()
    return b'@"bytes"%d:%b' % (len(content), content)


def _range(value: Any) -> bytes:
    """Return what tells one sequence of numbers from another: the first, second and last."""
    return f'@"range"{[*value[:1], *value[1:2], *value[-1:]]}'.encode()


SCALARS: Final[dict[type, Callable[[Any], bytes]]] = {
    str: string,
    int: _integer,
    float: lambda value: number_text(repr(value)).encode(),
    Decimal: lambda value: number_text(str(value)).encode(),
    bool: encode,
    type(None): encode,
    bytes: _octets,
    bytearray: _octets,
    memoryview: _octets,
    range: _range,
}
"""The text of an instance of each class, subclasses excluded."""

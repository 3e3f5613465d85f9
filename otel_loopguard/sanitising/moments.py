"""The form of a moment in a text: what may stand at each of its places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import digits
from typing import Final

_DIGITS: Final = re.compile(r"[0-9]+")
_TIME: Final = re.compile(r"[0-9]:[0-9]{2}(?P<seconds>:[0-9]{2}(?:[.,](?P<fraction>[0-9]{1,9}))?)?")
_LONGEST: Final = 9
"""Digits of a fraction of a second."""
_FRACTION: Final = 6
"""Digits of one that is added."""

_ANY: Final = "\x01"
_PLACES: Final = {"\x00": "01", _ANY: digits, "\x02": "2", "\x03": "0", "\x04": "012345"}
_YEAR: Final = "\x02\x03\x01\x01"
_PAIR: Final = "\x00\x01"
"""Of a month, a day, or an hour."""
_SIXTIETHS: Final = "\x04\x01"


def alphabets_of(shown: str) -> list[str]:
    """Return what may stand at each place of a moment: any that its form allows."""
    marked = _DIGITS.sub(_places_of, shown)
    return [_PLACES.get(mark, own) for mark, own in zip(marked, shown, strict=True)]


def longer(shown: str, alphabets: Sequence[str]) -> list[str]:
    """Return what may stand in a moment that is told more exactly than `shown` is."""
    time = _TIME.search(shown)
    if time is None:
        return [*alphabets, digits]
    if time["fraction"] is not None:
        added = [digits] * (_LONGEST - len(time["fraction"]))
    elif time["seconds"] is not None:
        added = [".", *[digits] * _FRACTION]
    else:
        added = [":", "012345", digits, ".", *[digits] * _FRACTION]
    return [*alphabets[: time.end()], *added, *alphabets[time.end() :]]


def _places_of(match: re.Match[str]) -> str:
    """Return marks for what may stand in place of digits of a moment."""
    count = len(match[0])
    before = match.string[max(match.start() - 1, 0) : match.start()]
    if before in (".", ",") and ":" in match.string[: match.start()]:
        return _ANY * count
    if before == ":":
        return _SIXTIETHS if count == len(_SIXTIETHS) else _ANY * count
    year = _YEAR if count in (4, 8, 14) else ""
    clock = _SIXTIETHS * 2 if count in (6, 14) else ""
    rest = count - len(year) - len(clock)
    return year + (_ANY if rest % 2 else "") + _PAIR * (rest // 2) + clock

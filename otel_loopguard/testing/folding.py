"""What repeats in a row, folded: the first ones, then how many more there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

PERIOD = 8
"""Things that repeat together, at most."""

_TIMES = 3
"""How often something comes in a row before it is folded."""

_Thing = TypeVar("_Thing")


def folded(things: Sequence[_Thing]) -> list[_Thing | str]:
    """Return things with a text in place of those that repeat what stands before it.

    Of `abababab` the first `ab` is left, then `... 3 more like these 2`.
    """
    parts: list[_Thing | str] = []
    at = 0
    while at < len(things):
        period, times = _repetition(things, at)
        parts += things[at : at + period]
        if times > 1:
            which = "this" if period == 1 else f"these {period}"
            parts.append(f"... {times - 1:,} more like {which}")
        at += period * times
    return parts


def _repetition(things: Sequence[object], at: int) -> tuple[int, int]:
    """Return how many things repeat together from here on, and how often: the most, then fewest."""
    best = (1, 1)
    for period in range(1, min(PERIOD, (len(things) - at) // _TIMES) + 1):
        times = _times(things, at, period)
        if times >= _TIMES and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def _times(things: Sequence[object], at: int, period: int) -> int:
    end = at + period
    while end < len(things) and things[end] == things[end - period]:
        end += 1
    return (end - at) // period

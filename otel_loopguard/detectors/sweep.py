"""One tool called with a number that goes up and up."""

from __future__ import annotations

import re
from math import inf
from typing import ClassVar, NamedTuple

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind

_NUMBER = re.compile(rb"(?:(?<![0-9A-Za-z])-)?[0-9]{1,15}")
"""Digits, by themselves or in a word; a hyphen in a word is no sign."""


class _Row(NamedTuple):
    """Calls in a row that differ in one number, by the same stride each time."""

    name: str
    rest: bytes | None
    """The arguments without their numbers."""
    numbers: tuple[int, ...]
    place: int = 0
    """Which of the numbers goes up."""
    stride: int = 0
    length: int = 1


class Sweep:
    """One tool called with a number that goes up and up.

    What it sees
        Consecutive calls of one tool by one agent whose arguments are equal but for one whole
        number, which goes up by the same stride each time: page 1, 2, 3; offset 0, 50, 100.
    Why it matters
        An agent that reads every page of something endless repeats nothing. Off by default: going
        through pages is also how work is done.
    What it does not see
        Numbers that go down or jump, and arguments of more than 1,024 bytes.
    """

    rule: ClassVar[str] = "sweep"
    reason: ClassVar[str] = "SWEEP_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "call"
    on_news: bool = True
    rests: bool = False

    __slots__ = ("_lowest", "_row", "_thresholds")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self._row = _Row("", None, ())

    @classmethod
    def of(cls, settings: Settings, /) -> Sweep | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call if its number goes on from those before."""
        if facts.asked is None:
            return None
        count = self._row_with(facts).length
        if count < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, count)

    def commit(self, facts: Facts, /) -> None:
        """Lengthen the row, or start a new one."""
        self._row = self._row_with(facts)

    def _row_with(self, facts: Facts) -> _Row:
        text, row = facts.asked, self._row
        if text is None:
            return _Row("", None, ())
        numbers = tuple(map(int, _NUMBER.findall(text)))
        fresh = _Row(facts.name, _NUMBER.sub(b"#", text), numbers)
        if (fresh.name, fresh.rest) != (row.name, row.rest):
            return fresh
        strides = [number - before for number, before in zip(numbers, row.numbers, strict=True)]
        moved = [(place, stride) for place, stride in enumerate(strides) if stride]
        if len(moved) != 1 or moved[0][1] < 0:
            return fresh
        place, stride = moved[0]
        goes_on = (place, stride) == (row.place, row.stride)
        return fresh._replace(place=place, stride=stride, length=row.length + 1 if goes_on else 2)

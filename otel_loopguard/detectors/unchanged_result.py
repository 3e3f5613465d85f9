"""A tool keeps giving the same answer although it is asked differently."""

from __future__ import annotations

from math import inf
from typing import ClassVar, NamedTuple

from otel_loopguard.detectors._base import REMEMBERED, Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class _Row(NamedTuple):
    """Equal answers of one tool in a row."""

    result: int
    length: int
    call: int | None
    """The last call."""
    batch: int | None = None
    """The response that asked for the last call."""


class UnchangedResult:
    """A tool keeps giving the same answer although it is asked differently.

    What it sees
        Answers of one tool to one agent that are equal and in a row, if each after the first says
        that nothing was found or comes to nearly the same arguments as the one before. The same
        call again, and calls with unknown arguments, neither add nor break; what one response of
        the model asked for counts once. Another answer, an unknown one or a failure restarts.
    Why it matters
        Rewording a question that has no answer never repeats a call. An equal result at nearly
        equal arguments is 2.8 % of the steps of recorded loops and 0.28 % of those of good runs.
    What it does not see
        Different questions with a full answer that is the same (a write that says "ok").
    """

    rule: ClassVar[str] = "unchanged_result"
    reason: ClassVar[str] = "UNCHANGED_RESULT_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    rests: bool = True

    __slots__ = ("_index", "_lowest", "_rows", "_thresholds", "on_news")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self.on_news = lowest <= 1
        self._rows: dict[str, _Row] = {}
        self._index = -1
        """Which of the agent's calls was counted last."""

    @classmethod
    def of(cls, settings: Settings, /) -> UnchangedResult | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this answer in the row of its tool."""
        row = _with(self._row(facts), facts)
        if row is None or row.length < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, row.length, row.length - 1)

    def commit(self, facts: Facts, /) -> None:
        """Add the answer to the row of its tool, or begin another."""
        rows = self._rows
        row = _with(self._row(facts), facts)
        self._index = facts.index
        rows.pop(facts.name, None)
        if row is None:
            return
        rows[facts.name] = row
        if len(rows) > REMEMBERED:
            del rows[next(iter(rows))]

    def _row(self, facts: Facts) -> _Row | None:
        """Return the row of the tool up to this call, with the last answer if that was not told."""
        row = self._rows.get(facts.name)
        if facts.index <= self._index + 1 or (row is not None and row.call == facts.before):
            return row
        return _Row(facts.result, 1, facts.before) if facts.unchanged and facts.result else None


def _with(row: _Row | None, facts: Facts) -> _Row | None:
    result, call, batch = facts.result, facts.call, facts.batch
    if facts.failed or result is None:
        return None
    if row is None or row.result != result:
        return _Row(result, 1, call, batch)
    if call is None or call == row.call:
        return row
    if not (facts.nothing or facts.near):
        return _Row(result, 1, call, batch)
    together = batch is not None and batch == row.batch
    return _Row(result, row.length if together else row.length + 1, call, batch)

"""One step after another that brings nothing new."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class NoNovelty:
    """One step after another that brings nothing new.

    What it sees
        Tool calls of one agent in a row whose call and result it has had before in this run,
        whichever they are. Anything that it has not had before ends the row, a failure too. A known
        call whose result is unknown neither adds nor breaks; different calls that one response of
        the model asked for count once.
    Why it matters
        An agent that goes through its old steps once more in another order repeats no call in a row
        and follows no cycle. On 21,365 recorded runs five in a row came up in 0.17 % of 1,732
        successful ones and in 28 of 52 loops.
    What it does not see
        Loops with one new thing in each round (`revisited_results`).
    """

    rule: ClassVar[str] = "no_novelty"
    reason: ClassVar[str] = "NO_NOVELTY_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False
    rests: bool = True

    __slots__ = ("_batch", "_call", "_count", "_index", "_lowest", "_thresholds")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self._count = 0
        self._call: int | None = None
        self._batch: int | None = None
        self._index = -1
        """Which of the agent's calls was counted last."""

    @classmethod
    def of(cls, settings: Settings, /) -> NoNovelty | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this repeat with those before it."""
        if facts.novel or facts.outcome is None:
            return None
        count = self._count_with(facts)
        if count < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, count, count)

    def commit(self, facts: Facts, /) -> None:
        """Add a repeat, or end the row."""
        if facts.novel:
            self._count, self._call, self._batch = 0, None, None
        elif facts.outcome is not None:
            self._count = self._count_with(facts)
            self._call, self._batch = facts.call, facts.batch
        self._index = facts.index

    def _count_with(self, facts: Facts) -> int:
        if facts.index > self._index + 1:  # what was not told brought news
            return 1
        together = facts.batch is not None and facts.batch == self._batch
        alike = facts.call is not None and facts.call == self._call
        return self._count if together and not alike else self._count + 1

"""The same call with the same result again and again."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, count_up, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class RepeatedResult:
    """The same call with the same result again and again.

    What it sees
        Equal calls of one agent with equal results, counted since its last other call that
        succeeded and was new. Steps between that failed or were not new neither count nor break.
    Why it matters
        The clearest sign of a loop. On 21,365 recorded runs, of those with five in a row one in a
        hundred succeeded; after three, almost half of the agents still break out by themselves.
    What it does not see
        Polling (the results differ), and calls whose results are unknown (`repeated_call`).
    """

    rule: ClassVar[str] = "repeated_result"
    reason: ClassVar[str] = "REPEATED_RESULT_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    rests: bool = True

    __slots__ = ("_counts", "_index", "_lowest", "_thresholds", "on_news")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self.on_news = lowest <= 1
        self._counts: dict[int, int] = {}
        self._index = -1
        """Which of the agent's calls was counted last."""

    @classmethod
    def of(cls, settings: Settings, /) -> RepeatedResult | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this outcome among the equal ones."""
        if facts.outcome is None:
            return None
        count = self._counted(facts).get(facts.outcome, 0) + 1
        if count < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, count, count - 1)

    def commit(self, facts: Facts, /) -> None:
        """Count the outcome; forget the others if it is news."""
        outcome, counts = facts.outcome, self._counted(facts)
        if facts.novel and not facts.failed:
            counts = {outcome: counts[outcome]} if outcome in counts else {}
        if outcome is not None:
            count_up(counts, outcome)
        self._counts, self._index = counts, facts.index

    def _counted(self, facts: Facts) -> dict[int, int]:
        """Return the counts up to this call; what was not told in between brought news."""
        missed = facts.index > self._index + 1
        return {facts.news: 1} if missed and facts.news is not None else self._counts

"""The same call again and again, while nobody can see what comes back."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, count_up, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class RepeatedCall:
    """The same call again and again, while nobody can see what comes back.

    What it sees
        Equal calls of one agent whose results are unknown, counted since its last other call that
        succeeded and was new. Steps between that failed or were not new neither count nor break.
    Why it matters
        Many instrumentations leave results off their spans; then the call is all there is. The
        thresholds are higher than those of `repeated_result`, because the evidence is weaker.
    What it does not see
        Calls whose results are known: equal ones are `repeated_result`, different ones are polling.
    """

    rule: ClassVar[str] = "repeated_call"
    reason: ClassVar[str] = "REPEATED_CALL_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = True
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
    def of(cls, settings: Settings, /) -> RepeatedCall | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call among the equal ones without a known result."""
        if facts.call is None or facts.outcome is not None:
            return None
        count = self._counted(facts).get(facts.call, 0) + 1
        if count < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, count, count - 1)

    def commit(self, facts: Facts, /) -> None:
        """Count the call if its result is unknown; forget the others if it is news."""
        call, counts = facts.call, self._counted(facts)
        if facts.novel and not facts.failed:
            counts = {call: counts[call]} if call in counts else {}
        if call is not None and facts.outcome is None:
            count_up(counts, call)
        self._counts, self._index = counts, facts.index

    def _counted(self, facts: Facts) -> dict[int, int]:
        """Return the counts up to this call; what was not told in between brought news."""
        if facts.index <= self._index + 1:
            return self._counts
        return {} if facts.news is None else {facts.news: 1}

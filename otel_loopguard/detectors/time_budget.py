"""A run that takes longer than it was given."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Settings
from otel_loopguard.steps import StepKind


class TimeBudget:
    """A run that takes longer than it was given.

    What it sees
        Seconds since the run started, whenever a step starts or has been recorded. The run is late
        when `max_duration_s` has passed, at equality too.
    Why it matters
        Slow loops stay under every count.
    What it does not see
        Anything between two steps: a call that hangs is noticed when the next fact arrives.
    """

    rule: ClassVar[str] = "time_budget"
    reason: ClassVar[str] = "MAX_DURATION_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    per_agent: ClassVar[bool] = False
    foresees: ClassVar[bool] = True
    moment: Moment = "result"

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

"""A run in which nothing happens any more."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class IdleRun:
    """A run in which nothing happens any more.

    What it sees
        Seconds in which no step of the run, sub-agents' included, started or ended. The run is
        idle when `max_idle_s` has passed, at equality too.
    Why it matters
        A call that hangs never comes back to be counted: silence is all that there is to see. A
        timer asks, so it is noticed while it lasts.
    What it does not see
        Work that makes no steps. A tool that computes for an hour is as silent as one that hangs.
    """

    rule: ClassVar[str] = "idle_run"
    reason: ClassVar[str] = "MAX_IDLE_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = True
    moment: Moment = "result"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_limit_s",)

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    @classmethod
    def of(cls, settings: Settings, /) -> IdleRun | None:
        """Make it if `max_idle_s` is set."""
        limit_s = settings.limits.max_idle_s
        return None if limit_s is None else cls(limit_s)

    def check(self, facts: Facts, /) -> Finding | None:
        """Compare the silence before this with the limit."""
        idle = facts.silent_s >= self._limit_s
        return Finding("abort", facts.silent_s, self._limit_s) if idle else None

    def commit(self, facts: Facts, /) -> None:
        """Nothing to count: the clock does."""

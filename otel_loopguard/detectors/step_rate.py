"""More steps in a minute than the run was given."""

from __future__ import annotations

from array import array
from typing import ClassVar

from otel_loopguard.detectors._base import COUNTED, Facts, Finding, Moment, Reach
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind

MINUTE_S = 60.0


class StepRate:
    """More steps in a minute than the run was given.

    What it sees
        Model calls, tool calls and custom steps, sub-agents' included, against
        `max_steps_per_minute=N`: the N+1st within 60 seconds is refused before it happens. A step
        60 seconds ago is no longer within them.
    Why it matters
        Tools that fail at once let a loop spin faster than anyone can look, or a provider allows.
    What it does not see
        Slow loops. It asks for the N steps before alone, so it never says how many more there were.
    """

    rule: ClassVar[str] = "step_rate"
    reason: ClassVar[str] = "MAX_STEP_RATE_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = COUNTED
    judges: ClassVar[frozenset[StepKind]] = COUNTED
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = False
    moment: Moment = "start"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_limit", "_next", "_starts_s")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._starts_s = array("d")
        """A ring: when the last N steps started."""
        self._next = 0
        """Where the next one goes."""

    @classmethod
    def of(cls, settings: Settings, /) -> StepRate | None:
        """Make it if `max_steps_per_minute` is set."""
        limit = settings.limits.max_steps_per_minute
        return None if limit is None else cls(limit)

    def check(self, facts: Facts, /) -> Finding | None:
        """Look when the N-th step before this one started; those on their way start now."""
        earlier = self._limit - facts.ahead
        if earlier > len(self._starts_s) or not facts.numbered:
            return None
        if earlier > 0:
            since_s = facts.elapsed_s - self._starts_s[self._next - earlier]
            if since_s >= MINUTE_S:
                return None
        return Finding("abort", self._limit + 1, self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Keep when the step started in place of the oldest."""
        if not facts.numbered:
            return
        if len(self._starts_s) < self._limit:
            self._starts_s.append(facts.elapsed_s)
        else:
            self._starts_s[self._next] = facts.elapsed_s
        self._next = (self._next + 1) % self._limit

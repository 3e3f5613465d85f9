"""More steps than the run was given."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import COUNTED, Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class StepBudget:
    """More steps than the run was given.

    What it sees
        Model calls, tool calls and custom steps of the run, sub-agents' included. With
        `max_steps=N` the N-th is allowed and the next one is refused before it happens.
    Why it matters
        The last line of defence: it needs no arguments, no results, and every runaway reaches it.
    What it does not see
        Whether the steps get anywhere.
    """

    rule: ClassVar[str] = "step_budget"
    reason: ClassVar[str] = "MAX_STEPS_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = COUNTED
    judges: ClassVar[frozenset[StepKind]] = COUNTED
    reach: ClassVar[Reach] = "totals"
    foresees: ClassVar[bool] = False
    moment: Moment = "start"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_limit", "_steps")

    def __init__(self, limit: int, steps: int = 0) -> None:
        self._limit = limit
        self._steps = steps

    @classmethod
    def of(cls, settings: Settings, /, steps: int = 0) -> StepBudget | None:
        """Make it if `max_steps` is set."""
        limit = settings.limits.max_steps
        return None if limit is None else cls(limit, steps)

    def under(self, settings: Settings, /) -> StepBudget | None:
        """Return one with other limits that goes on from what this one has counted."""
        return self.of(settings, self._steps)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this step on top of those that happened or are on their way."""
        return over(self._steps + facts.ahead + 1, self._limit) if facts.numbered else None

    def commit(self, facts: Facts, /) -> None:
        """Count the step."""
        self._steps += facts.numbered

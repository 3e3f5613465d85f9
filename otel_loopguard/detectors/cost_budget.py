"""A run that costs more than it was given."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind

_ROUNDING = 1 + 1e-9
"""Three times ten cents are thirty cents, although the sum of three floats is a little more."""


class CostBudget:
    """A run that costs more than it was given.

    What it sees
        The sum of what the steps cost in US dollars, against `max_cost_usd`. Once it is over, the
        run is stopped at the end of that step, and no step starts any more.
    Why it matters
        Money is what a runaway wastes, and calls of different models are comparable in money alone.
    What it does not see
        Steps whose cost nobody knows, and calls in flight: what starts together is let through
        together.
    """

    rule: ClassVar[str] = "cost_budget"
    reason: ClassVar[str] = "MAX_COST_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    reach: ClassVar[Reach] = "totals"
    foresees: ClassVar[bool] = True
    moment: Moment = "result"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_limit_usd", "_spent_usd")

    def __init__(self, limit_usd: float, spent_usd: float = 0.0) -> None:
        self._limit_usd = limit_usd
        self._spent_usd = spent_usd

    @classmethod
    def of(cls, settings: Settings, /, spent_usd: float = 0.0) -> CostBudget | None:
        """Make it if `max_cost_usd` is set."""
        limit_usd = settings.limits.max_cost_usd
        return None if limit_usd is None else cls(limit_usd, spent_usd)

    def under(self, settings: Settings, /) -> CostBudget | None:
        """Return one with other limits that goes on from what this one has counted."""
        return self.of(settings, self._spent_usd)

    def check(self, facts: Facts, /) -> Finding | None:
        """Add what this step cost, as far as it is known, to what the run did."""
        spent_usd = self._spent_usd + facts.cost_usd
        if spent_usd <= self._limit_usd * _ROUNDING:
            return None
        return Finding("abort", spent_usd, self._limit_usd)

    def commit(self, facts: Facts, /) -> None:
        """Add the cost."""
        self._spent_usd += facts.cost_usd

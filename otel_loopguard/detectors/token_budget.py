"""More tokens than the run was given: into models, out of them, or both together."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Limits, Settings
from otel_loopguard.steps import StepKind


class TokenBudget:
    """More tokens than the run was given: into models, out of them, or both together.

    What it sees
        The sums of the tokens that the steps report, against `max_input_tokens`,
        `max_output_tokens` and `max_total_tokens`, in that order. Once a sum is over, the run is
        stopped at the end of that step, and no step starts any more.
    Why it matters
        A context that grows with every turn makes each turn dearer than the last, long before the
        number of calls is remarkable.
    What it does not see
        Tokens that nobody reports, and those of calls in flight: what starts together is let
        through together.
    """

    rule: ClassVar[str] = "token_budget"
    reason: ClassVar[str] = "MAX_TOKENS_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    reach: ClassVar[Reach] = "totals"
    foresees: ClassVar[bool] = True
    moment: Moment = "result"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_input", "_input_limit", "_output", "_output_limit", "_total_limit")

    def __init__(self, limits: Limits, read: int = 0, written: int = 0) -> None:
        self._input_limit = limits.max_input_tokens
        self._output_limit = limits.max_output_tokens
        self._total_limit = limits.max_total_tokens
        self._input, self._output = read, written

    @classmethod
    def of(cls, settings: Settings, /, read: int = 0, written: int = 0) -> TokenBudget | None:
        """Make it if one of the three limits is set."""
        limits = settings.limits
        budgets = (limits.max_input_tokens, limits.max_output_tokens, limits.max_total_tokens)
        return None if budgets == (None, None, None) else cls(limits, read, written)

    def under(self, settings: Settings, /) -> TokenBudget | None:
        """Return one with other limits that goes on from what this one has counted."""
        return self.of(settings, self._input, self._output)

    def check(self, facts: Facts, /) -> Finding | None:
        """Add the tokens of this step, as far as they are known, to those of the run."""
        read = self._input + facts.input_tokens
        written = self._output + facts.output_tokens
        return (
            over(read, self._input_limit)
            or over(written, self._output_limit)
            or over(read + written, self._total_limit)
        )

    def commit(self, facts: Facts, /) -> None:
        """Add the tokens."""
        self._input += facts.input_tokens
        self._output += facts.output_tokens

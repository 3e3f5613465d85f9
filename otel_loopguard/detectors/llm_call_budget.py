"""More model calls than the run was given."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class LlmCallBudget:
    """More model calls than the run was given.

    What it sees
        Every attempted model call of the run, failed ones and those of sub-agents included. With
        `max_llm_calls=N` the N-th is allowed and the next one is refused before it leaves.
    Why it matters
        Model calls are what a runaway pays for.
    What it does not see
        Requests that an SDK repeats by itself below one model call.
    """

    rule: ClassVar[str] = "llm_call_budget"
    reason: ClassVar[str] = "MAX_LLM_CALLS_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    reach: ClassVar[Reach] = "totals"
    foresees: ClassVar[bool] = False
    moment: Moment = "start"
    on_news: bool = False
    rests: bool = True

    __slots__ = ("_calls", "_limit")

    def __init__(self, limit: int, calls: int = 0) -> None:
        self._limit = limit
        self._calls = calls

    @classmethod
    def of(cls, settings: Settings, /, calls: int = 0) -> LlmCallBudget | None:
        """Make it if `max_llm_calls` is set."""
        limit = settings.limits.max_llm_calls
        return None if limit is None else cls(limit, calls)

    def under(self, settings: Settings, /) -> LlmCallBudget | None:
        """Return one with other limits that goes on from what this one has counted."""
        return self.of(settings, self._calls)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call on top of those that happened or are on their way."""
        return over(self._calls + facts.ahead + 1, self._limit)

    def commit(self, facts: Facts, /) -> None:  # noqa: ARG002 -- every call counts alike
        """Count the call."""
        self._calls += 1

"""A model call that read more than one call may."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class ContextBudget:
    """A model call that read more than one call may.

    What it sees
        The input tokens of each model call by itself, against `max_context_tokens`. Cached tokens
        were read too.
    Why it matters
        Models get worse and dearer long before their window is full, and a conversation that
        nobody compacts only grows.
    What it does not see
        A call before it happens: how long a prompt is, is known when the model has read it.
    """

    rule: ClassVar[str] = "context_budget"
    reason: ClassVar[str] = "MAX_CONTEXT_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False
    rests: bool = True

    __slots__ = ("_limit",)

    def __init__(self, limit: int) -> None:
        self._limit = limit

    @classmethod
    def of(cls, settings: Settings, /) -> ContextBudget | None:
        """Make it if `max_context_tokens` is set."""
        limit = settings.limits.max_context_tokens
        return None if limit is None else cls(limit)

    def check(self, facts: Facts, /) -> Finding | None:
        """Compare what this call read with the limit."""
        return over(facts.input_tokens, self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Nothing to count: each call stands for itself."""

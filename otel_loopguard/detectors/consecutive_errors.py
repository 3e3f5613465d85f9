"""One failure after another, whatever fails."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class ConsecutiveErrors:
    """One failure after another, whatever fails.

    What it sees
        Model and tool calls of one agent that failed in a row, against `max_consecutive_errors`,
        when they come back. A success of either breaks the row; a call that is still out, or
        never comes back, neither adds nor breaks.
    Why it matters
        When everything fails, whatever the agent tries, the fault is not in what it tries.
    What it does not see
        What went wrong (`repeated_error` compares it), and failures that a tool reports as a
        success (`error_patterns`).
    """

    rule: ClassVar[str] = "consecutive_errors"
    reason: ClassVar[str] = "MAX_CONSECUTIVE_ERRORS_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_in_a_row", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_a_row = 0

    @classmethod
    def of(cls, settings: Settings, /) -> ConsecutiveErrors | None:
        """Make it if `max_consecutive_errors` is set."""
        limit = settings.limits.max_consecutive_errors
        return None if limit is None else cls(limit)

    @property
    def rests(self) -> bool:
        """Whether there is no row that a success could end."""
        return not self._in_a_row

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this failure on top of those right before it."""
        if facts.pending or not facts.failed:
            return None
        return over(self._in_a_row + 1, self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Lengthen the row, or end it."""
        if not facts.pending:
            self._in_a_row = self._in_a_row + 1 if facts.failed else 0

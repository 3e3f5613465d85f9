"""The same call again and again, whatever comes back."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class RepeatedCallLimit:
    """The same call again and again, whatever comes back.

    What it sees
        Consecutive tool calls of one agent with the same name and arguments, against
        `max_repeated_calls`. Model turns between them do not break the row, any other tool call
        does. `compare_arguments=False` compares the names alone.
    Why it matters
        A hard cap for agents that never have a reason to ask twice.
    What it does not see
        Results: it stops polling too. The rules `repeated_result` and `repeated_call` do not.
    """

    rule: ClassVar[str] = "repeated_call_limit"
    reason: ClassVar[str] = "REPEATED_CALL_LIMIT_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_compare_arguments", "_in_a_row", "_last", "_limit")

    def __init__(self, limit: int, *, compare_arguments: bool = True) -> None:
        self._limit = limit
        self._compare_arguments = compare_arguments
        self._last: int | str | None = None
        self._in_a_row = 0

    @property
    def moment(self) -> Moment:
        """Names are known from the start, arguments may come later."""
        return "call" if self._compare_arguments else "start"

    @classmethod
    def of(cls, settings: Settings, /) -> RepeatedCallLimit | None:
        """Make it if `max_repeated_calls` is set."""
        limits = settings.limits
        if limits.max_repeated_calls is None:
            return None
        return cls(limits.max_repeated_calls, compare_arguments=limits.compare_arguments)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call if it equals the one before."""
        return over(self._row_with(self._identity(facts)), self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Lengthen the row, or start a new one."""
        identity = self._identity(facts)
        self._in_a_row = self._row_with(identity)
        self._last = identity

    def _identity(self, facts: Facts) -> int | str | None:
        return facts.call if self._compare_arguments else facts.name

    def _row_with(self, identity: int | str | None) -> int:
        if identity is None:
            return 0
        return self._in_a_row + 1 if identity == self._last else 1

"""The same tool again and again, whatever it is asked."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class SameTool:
    """The same tool again and again, whatever it is asked.

    What it sees
        Consecutive calls of one tool by one agent, against `max_same_tool_calls`. Model turns
        between them do not break the row, a call of any other tool does.
    Why it matters
        It needs nothing but names, so it acts where an instrumentation hides the arguments.
    What it does not see
        Progress: an agent with one tool calls the same tool all the time. Hence off unless set.
    """

    rule: ClassVar[str] = "same_tool"
    reason: ClassVar[str] = "SAME_TOOL_LIMIT_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "start"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_in_a_row", "_last", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last: str | None = None
        self._in_a_row = 0

    @classmethod
    def of(cls, settings: Settings, /) -> SameTool | None:
        """Make it if `max_same_tool_calls` is set."""
        limit = settings.limits.max_same_tool_calls
        return None if limit is None else cls(limit)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call if its tool is that of the call before."""
        return over(self._in_a_row + 1 if facts.name == self._last else 1, self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Lengthen the row, or start a new one."""
        self._in_a_row = self._in_a_row + 1 if facts.name == self._last else 1
        self._last = facts.name

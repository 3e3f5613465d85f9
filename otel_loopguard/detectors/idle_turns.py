"""The model talks and talks, and calls nothing."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class IdleTurns:
    """The model talks and talks, and calls nothing.

    What it sees
        Model turns of one agent in a row that neither asked for a tool nor were followed by a tool
        call, against `max_turns_without_tool`, at their end. A failed model call is no turn: it
        neither adds nor breaks.
    Why it matters
        An agent that plans aloud, or two that thank each other, make no calls that could repeat.
    What it does not see
        What is said. A conversation with a person looks the same, hence off unless set; and so do
        tool calls that no instrumentation reports.
    """

    rule: ClassVar[str] = "idle_turns"
    reason: ClassVar[str] = "MAX_TURNS_WITHOUT_TOOL_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_in_a_row", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_a_row = 0

    @classmethod
    def of(cls, settings: Settings, /) -> IdleTurns | None:
        """Make it if `max_turns_without_tool` is set."""
        limit = settings.limits.max_turns_without_tool
        return None if limit is None else cls(limit)

    @property
    def rests(self) -> bool:
        """Whether there is no row that a success could end."""
        return not self._in_a_row

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this turn on top of those right before it."""
        if facts.turn is None or facts.turn.asks:
            return None
        return over(self._in_a_row + 1, self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Lengthen the row, or end it."""
        if facts.kind == "tool" or (facts.turn is not None and facts.turn.asks):
            self._in_a_row = 0
        elif facts.turn is not None:
            self._in_a_row += 1

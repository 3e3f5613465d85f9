"""The token limit cuts off one turn of the model after another."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class TruncatedTurns:
    """The token limit cuts off one turn of the model after another.

    What it sees
        Turns of one agent in a row that the token limit ended, in the middle of a tool call too.
        Any other turn ends the row; failed model calls neither add nor break.
    Why it matters
        A turn that does not fit will not fit the next time: each attempt costs the full limit and
        does nothing. The recorded runs do not say how turns ended; the thresholds follow reports.
    What it does not see
        Turns without a known reason for their end. An answer that is meant to be continued in
        several turns looks the same; such an agent needs higher thresholds.
    """

    rule: ClassVar[str] = "truncated_turns"
    reason: ClassVar[str] = "TRUNCATED_TURNS_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False
    rests: bool = True

    __slots__ = ("_count", "_thresholds")

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._count = 0

    @classmethod
    def of(cls, settings: Settings, /) -> TruncatedTurns | None:
        """Make it if the rule can speak."""
        if settings.lowest(cls.rule) == inf:
            return None
        return cls(settings.rules.get(cls.rule) or Thresholds())

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this turn with the cut ones before it."""
        if facts.turn is None or not facts.turn.cut:
            return None
        return judge(self.rule, self._thresholds, facts, self._count + 1, self._count)

    def commit(self, facts: Facts, /) -> None:
        """Add a turn that was cut, or end the row."""
        if facts.turn is not None:
            self._count = self._count + 1 if facts.turn.cut else 0

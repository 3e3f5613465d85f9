"""The model is called again although it has finished."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class ExtraTurn:
    """The model is called again although it has finished.

    What it sees
        A model call that begins after a turn of this agent that is known to have finished the run,
        with no other step and no word of a person between; counted in a row. Only for
        agents that have asked for tools or called some in this run: others are no agent loops.
    Why it matters
        The loop's condition to stop is missing or wrong: the answer is there, and each further call
        pays for the whole context again. Not measured on the recorded runs, therefore only warned
        about.
    What it does not see
        A finishing turn whose text or requested calls are unknown. Where the messages show only at
        the end whether a person has spoken, it is judged then.
    """

    rule: ClassVar[str] = "extra_turn"
    reason: ClassVar[str] = "EXTRA_TURN_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent", "custom"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = True
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_acts", "_done", "_extra", "_thresholds")

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._acts = False
        """It has asked for a tool or called one."""
        self._done = False
        """It has finished, and nothing has happened since."""
        self._extra = 0
        """Turns since it finished first."""

    @classmethod
    def of(cls, settings: Settings, /) -> ExtraTurn | None:
        """Make it if the rule can speak."""
        if settings.lowest(cls.rule) == inf:
            return None
        return cls(settings.rules.get(cls.rule) or Thresholds())

    @property
    def rests(self) -> bool:
        """Whether it is known that the agent acts, and it has not finished."""
        return self._acts and not self._done and not self._extra

    def check(self, facts: Facts, /) -> Finding | None:
        """Say whether a call that begins now is one too many.

        At its end nothing is said, unless only that shows whether a person had spoken: what has
        finished by then may have run beside it.
        """
        asked = facts.kind == "llm" and (facts.pending or facts.unsure) and not facts.spoken
        if not (asked and self._acts and self._done):
            return None
        return judge(self.rule, self._thresholds, facts, self._extra + 1, self._extra + 1)

    def commit(self, facts: Facts, /) -> None:
        """Note what the step makes of the agent."""
        if facts.kind != "llm":
            self._acts = self._acts or facts.kind == "tool"
            self._done, self._extra = False, 0
        elif facts.turn is not None:
            self._extra = self._extra + 1 if self._done and not facts.spoken else 0
            self._acts = self._acts or facts.turn.asks
            self._done = facts.turn.final

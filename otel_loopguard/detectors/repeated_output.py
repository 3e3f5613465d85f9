"""The model says the same again and again."""

from __future__ import annotations

from math import inf
from typing import ClassVar, NamedTuple

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge, keep
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class _Row(NamedTuple):
    """Equal outputs of one agent in a row."""

    output: int
    length: int


class RepeatedOutput:
    """The model says the same again and again.

    What it sees
        Turns of one agent in a row with equal output: text and the calls that were asked for. Empty
        output equals empty output. A tool call of any agent that brought something new or that
        nobody can judge ends the row, and so does a word of a person, or another agent's output
        that is new. Turns with unknown output and failed ones neither add nor break. A tool call
        that is known from the messages alone is part of what the model said: with a new answer the
        row begins with the turn that asked for it, without an answer it goes on.
    Why it matters
        A model that announces a step and never takes it calls no tool, so no rule about calls sees
        it. Text alone says little: on 21,365 recorded runs equal text three times in a row came up
        in 0.87 % of 1,732 successful ones and in 5 of 66 failed runs that were no loops; therefore
        the row ends with everything that brings something.
    What it does not see
        The same thing in other words, and an agent that spins while others go on. It cannot tell a
        loop from a model that is asked about one item after another and gives the same verdict.
    """

    rule: ClassVar[str] = "repeated_output"
    reason: ClassVar[str] = "REPEATED_OUTPUT_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm",))
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_lowest", "_outputs", "_rows", "_thresholds")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self._rows: dict[str, _Row] = {}
        self._outputs: dict[int, None] = {}
        """The last different outputs of the run."""

    @classmethod
    def of(cls, settings: Settings, /) -> RepeatedOutput | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    @property
    def rests(self) -> bool:
        """Whether there is no row that a success could end."""
        return not self._rows

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this output with the equal ones before it."""
        if facts.turn is None or facts.turn.output is None:
            return None
        count = self._row_with(facts, facts.turn.output).length
        if count < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, count, count - 1)

    def commit(self, facts: Facts, /) -> None:
        """Add the output to its row; what brings something ends the rows that it proves wrong."""
        if facts.kind == "tool":
            if facts.outcome is None:
                self._rows = {} if facts.numbered or not facts.pending else self._rows
            elif facts.numbered and facts.novel:
                self._rows.clear()
            elif facts.novel:
                self._rows = {agent: _Row(row.output, 1) for agent, row in self._rows.items()}
            return
        if facts.turn is None or facts.turn.output is None:
            return
        output = facts.turn.output
        row = self._row_with(facts, output)
        if output not in self._outputs:
            self._rows.clear()
        keep(self._outputs, output, None)
        keep(self._rows, facts.agent, row)

    def _row_with(self, facts: Facts, output: int) -> _Row:
        row = self._rows.get(facts.agent)
        goes_on = row is not None and row.output == output and not facts.spoken
        return _Row(output, row.length + 1 if row is not None and goes_on else 1)

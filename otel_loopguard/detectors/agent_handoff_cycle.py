"""Control goes round the same agents, and nothing comes of it."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import APART, REMEMBERED, Facts, Finding, Moment, Reach, judge
from otel_loopguard.detectors._periods import Periods
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind

LONGEST_CYCLE = 8


class AgentHandoffCycle:
    """Control goes round the same agents, and nothing comes of it.

    What it sees
        A cycle of 2 to 8 hand-overs in the whole run, counted in full rounds; a hand-over is a
        model or tool call by another agent than the one before. A tool result that is new, model
        output that is not among the last 32 outputs, a word of a person, and whatever nobody can
        judge begin the count afresh. Steps without an agent's name hand nothing over.
    Why it matters
        Two agents that send a task back and forth repeat nothing as each of them sees it. The
        recorded runs have one agent each; the thresholds follow reports.
    What it does not see
        Agents that word the same refusal differently each time; tools that hand over and belong to
        one agent (`cyclic_calls`); runs in which outputs are not recorded.
    """

    rule: ClassVar[str] = "agent_handoff_cycle"
    reason: ClassVar[str] = "AGENT_HANDOFF_CYCLE_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool", "agent"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_agent", "_hands", "_lowest", "_outputs", "_thresholds")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self._hands = Periods(LONGEST_CYCLE)
        self._agent = ""
        self._outputs: dict[int, None] = {}

    @classmethod
    def of(cls, settings: Settings, /) -> AgentHandoffCycle | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    @property
    def rests(self) -> bool:
        """Whether nothing is known but who acts."""
        return self._hands.is_fresh

    def check(self, facts: Facts, /) -> Finding | None:
        """Count the rounds that this hand-over completes."""
        agent = _name_of(facts)
        goes_on = facts.pending or facts.kind == "agent" or agent in ("", self._agent)
        if goes_on or self._brings(facts):
            return None
        matched = self._hands.matched_with(hash(agent))
        rounds, period = max(
            ((count // period + 1, period) for period, count in matched.items()), default=(0, 0)
        )
        if rounds < self._lowest:
            return None
        return judge(self.rule, self._thresholds, facts, rounds, (rounds - 1) * period)

    def commit(self, facts: Facts, /) -> None:
        """Add a hand-over; what brings something begins the count afresh."""
        if facts.kind == "agent":
            return
        brings, agent = self._brings(facts), _name_of(facts) or self._agent
        if brings:
            self._hands.restart(hash(agent) if agent else None)
        elif agent and agent != self._agent:
            self._hands.push(hash(agent))
        self._agent = agent
        if facts.turn is not None and facts.turn.output is not None:
            self._outputs.pop(facts.turn.output, None)
            self._outputs[facts.turn.output] = None
            if len(self._outputs) > REMEMBERED:
                del self._outputs[next(iter(self._outputs))]

    def _brings(self, facts: Facts) -> bool:
        if facts.kind == "tool":
            return facts.novel or facts.outcome is None
        if facts.turn is None:
            return facts.spoken
        return facts.spoken or facts.turn.output not in self._outputs


def _name_of(facts: Facts) -> str:
    """Return the agent's name: invocations of one agent side by side are no hand-over."""
    return facts.agent.partition(APART)[0]

"""What the runs of one guard have taken so far, agent by agent: it grows while they go on.

These are plain numbers, because a step must not wait for a metric: they are read when metrics are
collected.
"""

from __future__ import annotations

from otel_loopguard.bounded_names import BoundedNames
from otel_loopguard.decisions import Taken
from otel_loopguard.steps import StepKind

_KINDS: tuple[StepKind, ...] = ("tool", "llm")
"""Those that stand at zero before there is a step of them."""


class Spent:
    """What one agent has spent."""

    __slots__ = ("cost_usd", "input_tokens", "output_tokens")

    def __init__(self) -> None:
        self.input_tokens = self.output_tokens = 0
        self.cost_usd = 0.0

    def add(self, input_tokens: int, output_tokens: int, cost_usd: float) -> None:
        """Add what else it has spent."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.cost_usd += cost_usd


class AgentTotals:
    """Steps, tokens and dollars by agent; they never shrink. Whoever adds holds the runs' lock.

    Args:
        agents: what agents are called.

    """

    __slots__ = ("_agents", "spent", "steps")

    def __init__(self, agents: BoundedNames) -> None:
        self._agents = agents
        self.steps: dict[tuple[str, StepKind], int] = {}
        """By agent and kind."""
        self.spent: dict[str, Spent] = {}
        """By agent."""

    def count(self, agent: str, kind: StepKind, steps: int) -> None:
        """Count so many steps of an agent."""
        key = (agent, kind)
        if key not in self.steps:  # new, or one of too many
            key = (self._agents.of(agent), kind)
        self.steps[key] = self.steps.get(key, 0) + steps

    def of(self, agent: str) -> Spent:
        """Return what an agent has spent."""
        spent = self.spent.get(agent)
        if spent is None:  # new, or one of too many
            spent = self.spent.setdefault(self._agents.of(agent), Spent())
        return spent

    def spend(self, agent: str, before: Taken, now: Taken) -> None:
        """Add what a run has come to spend by a step of an agent."""
        self.of(agent).add(now[2] - before[2], now[3] - before[3], now[4] - before[4])

    def agents(self) -> tuple[str, ...]:
        """Return the agents of which anything is known."""
        return tuple({**dict.fromkeys(agent for agent, _ in self.steps), **self.spent})

    def announce(self, agent: str) -> None:
        """Let an agent be there, with nothing if nothing is known of it."""
        self.of(agent)
        for kind in _KINDS:
            self.count(agent, kind, 0)

    def add(self, other: AgentTotals) -> None:
        """Add what the runs of another guard have taken."""
        for (agent, kind), steps in list(other.steps.items()):
            self.count(agent, kind, steps)
        for agent, spent in list(other.spent.items()):
            self.of(agent).add(spent.input_tokens, spent.output_tokens, spent.cost_usd)

    def clear(self) -> None:
        """Begin anew, in a forked child."""
        self.steps.clear()
        self.spent.clear()

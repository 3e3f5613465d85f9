"""What the runs of one guard have taken so far, agent by agent: it grows while they go on.

These are plain numbers, because a step must not wait for a metric: they are read when metrics are
collected.
"""

from __future__ import annotations

from otel_loopguard.bounded_names import BoundedNames
from otel_loopguard.decisions import Taken
from otel_loopguard.steps import StepKind


class AgentTotals:
    """Steps, tokens and dollars by agent; they never shrink. Whoever adds holds the runs' lock.

    Args:
        agents: what agents are called.

    """

    __slots__ = ("_agents", "cost_usd", "steps", "tokens")

    def __init__(self, agents: BoundedNames) -> None:
        self._agents = agents
        self.steps: dict[tuple[str, StepKind], int] = {}
        """By agent and kind."""
        self.tokens: dict[tuple[str, str], int] = {}
        """By agent, and `input` or `output`."""
        self.cost_usd: dict[str, float] = {}
        """By agent."""

    def count(self, agent: str, kind: StepKind, steps: int) -> None:
        """Count so many steps of an agent."""
        key = (self._agents.of(agent), kind)
        self.steps[key] = self.steps.get(key, 0) + steps

    def spend(self, agent: str, before: Taken, now: Taken) -> None:
        """Add what a run has come to spend by a step of an agent."""
        called = self._agents.of(agent)
        for token_type, tokens in (
            ("input", now.input_tokens - before.input_tokens),
            ("output", now.output_tokens - before.output_tokens),
        ):
            key = (called, token_type)
            self.tokens[key] = self.tokens.get(key, 0) + tokens
        self.cost_usd[called] = self.cost_usd.get(called, 0.0) + now.cost_usd - before.cost_usd

    def add(self, other: AgentTotals) -> None:
        """Add what the runs of another guard have taken."""
        for key, steps in list(other.steps.items()):
            self.steps[key] = self.steps.get(key, 0) + steps
        for pair, tokens in list(other.tokens.items()):
            self.tokens[pair] = self.tokens.get(pair, 0) + tokens
        for agent, cost_usd in list(other.cost_usd.items()):
            self.cost_usd[agent] = self.cost_usd.get(agent, 0.0) + cost_usd

    def clear(self) -> None:
        """Begin anew, in a forked child."""
        self.steps.clear()
        self.tokens.clear()
        self.cost_usd.clear()

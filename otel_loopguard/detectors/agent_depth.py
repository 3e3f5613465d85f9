"""Agents inside agents, deeper than the run was given."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class AgentDepth:
    """Agents inside agents, deeper than the run was given.

    What it sees
        How many agents are inside one another when one starts, itself included. With
        `max_agent_depth=N` the N-th is allowed and the one inside it is refused before it starts.
    Why it matters
        An agent that hands its task to a copy of itself repeats nothing that any one agent sees.
    What it does not see
        Agents without a step or span of their own, and how many run side by side.
    """

    rule: ClassVar[str] = "agent_depth"
    reason: ClassVar[str] = "MAX_AGENT_DEPTH_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("agent",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("agent",))
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = False
    moment: Moment = "start"
    on_news: bool = False
    rests: bool = True

    __slots__ = ("_limit",)

    def __init__(self, limit: int) -> None:
        self._limit = limit

    @classmethod
    def of(cls, settings: Settings, /) -> AgentDepth | None:
        """Make it if `max_agent_depth` is set."""
        limit = settings.limits.max_agent_depth
        return None if limit is None else cls(limit)

    def check(self, facts: Facts, /) -> Finding | None:
        """Compare the depth of this agent with the limit."""
        return over(facts.depth, self._limit)

    def commit(self, facts: Facts, /) -> None:
        """Nothing to count: the tree of agents does."""

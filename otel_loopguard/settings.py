"""What a policy settles, as data: limits, thresholds, and what it says of tools and agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from otel_loopguard.pricing import Usage
from otel_loopguard.steps import Step
from otel_loopguard.values.volatile import Masking

Scope: TypeAlias = Literal["run", "agent", "conversation"]
"""What the totals (steps, calls, tokens, cost, duration) are held against."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The occurrence at which a rule warns and the one at which it aborts; `None` is never.

    Occurrences are whole numbers, the score of `stagnation` is any number.
    """

    warn: float | None = None
    abort: float | None = None

    @property
    def lowest(self) -> float:
        """The first occurrence at which the rule can speak."""
        never = float("inf")
        warn, abort = self.warn, self.abort
        return min(never if warn is None else warn, never if abort is None else abort)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a run; `None` is off. Of N the N-th is allowed and the next one is not."""

    max_steps: int | None = None
    max_llm_calls: int | None = None
    max_tool_calls: int | None = None
    max_calls_per_tool: Mapping[str, int] = {}
    max_duration_s: float | None = None
    max_idle_s: float | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    max_context_tokens: int | None = None
    max_cost_usd: float | None = None
    max_agent_depth: int | None = None
    max_steps_per_minute: int | None = None
    max_consecutive_errors: int | None = None
    max_turns_without_tool: int | None = None
    max_repeated_calls: int | None = None
    compare_arguments: bool = True
    max_same_tool_calls: int | None = None
    loop_pattern_window: int | None = None

    @property
    def are_timed(self) -> bool:
        """Whether any of them can be reached while nothing happens."""
        return self.max_duration_s is not None or self.max_idle_s is not None


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of one tool."""

    poll: bool = False
    """Asking again is what it is for: the rules about repetition are off, limits are on."""
    exempt: bool = False
    """Neither rules nor limits are held against its calls."""
    writes: bool | Callable[[Step], object] = False
    """It changes the state of the world, so what was seen before may be read again. A callable
    says what state there is after a call: then only a state that differs counts as a change."""
    ignore_arguments: bool | tuple[str, ...] = False
    """Arguments that do not tell one call from another: all of them, or those with these names."""
    finish: bool = False
    """Calling it ends the run."""
    error_patterns: tuple[str, ...] = ()
    """Regular expressions; a result in which one is found is a failure."""
    rules: Mapping[str, Thresholds] = {}


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of the agents whose name matches a pattern."""

    limits: Limits | None = None
    """Held against each invocation of the agent with all below it, beside those of the run."""
    rules: Mapping[str, Thresholds | None] = {}
    """Thresholds over those of the run; `None` is off."""
    tools: Mapping[str, ToolOptions] = {}


class Settings(NamedTuple):
    """All that the engine is told by a policy."""

    limits: Limits
    rules: Mapping[str, Thresholds]
    scope: Scope = "run"
    tools: Mapping[str, ToolOptions] = {}
    """By the tool's name, or a pattern for it (`*`, `?`, `[...]`): a name counts before a pattern,
    patterns in their order, and `*` last."""
    agents: Mapping[str, AgentOptions] = {}
    """By a pattern for the agent's name (`*`, `?`, `[...]`); the first that matches counts."""
    usage: Usage = Usage()
    masking: Masking = Masking()
    weights: Mapping[str, float] = {}
    """Weights of the classes of `stagnation` that are not the built-in ones."""
    steer: str = ""
    """What a model is told when a rule warns, where a framework can tell it; empty for nothing."""

    def of_tool(self, name: str) -> ToolOptions | None:
        """Return what is said of a tool."""
        named = self.tools.get(name)
        if named is not None or not self.tools:
            return named
        patterns = (o for p, o in self.tools.items() if p != "*" and fnmatchcase(name, p))
        return next(patterns, self.tools.get("*"))

    def of_agent(self, agent: str) -> AgentOptions | None:
        """Return what is said of an agent."""
        return next((o for p, o in self.agents.items() if fnmatchcase(agent, p)), None)

    def for_agent(self, agent: str) -> Settings:
        """Return the settings by which the steps of an agent go."""
        own = self.of_agent(agent)
        if own is None:
            return self
        laid_over = {**self.rules, **own.rules}
        rest = {name: options for name, options in self.tools.items() if name not in own.tools}
        rules = {rule: line for rule, line in laid_over.items() if line is not None}
        return self._replace(rules=rules, tools={**own.tools, **rest})

    @property
    def is_timed(self) -> bool:
        """Whether any limit, of a run or of an agent, can be reached while nothing happens."""
        of_agents = (options.limits for options in self.agents.values())
        return any(limits.are_timed for limits in (self.limits, *of_agents) if limits is not None)

    @property
    def tells_more(self) -> bool:
        """Whether a rule is in force that looks at silence, or at the words of ordinary calls."""
        of_words = ("similar_calls", "similar_results", "sweep")
        compares = any(self.lowest(rule) != float("inf") for rule in of_words)
        return compares or self.limits.max_idle_s is not None

    def lowest(self, rule: str) -> float:
        """Return the first occurrence at which a rule can speak, for any tool."""
        own = (options.rules.get(rule) for options in self.tools.values())
        lines = (self.rules.get(rule), *own)
        return min((line.lowest for line in lines if line is not None), default=float("inf"))

"""All detectors of one run: the run's own, and those of each of its agents."""

from __future__ import annotations

from typing import NamedTuple

from otel_loopguard.detectors import APART
from otel_loopguard.engine.agent_rules import INNER, AgentRules
from otel_loopguard.engine.readings import NOBODY, Identity, identify
from otel_loopguard.engine.rule_kits import Detectors, afresh, continued, made
from otel_loopguard.engine.rule_plans import TIMED, RuleSet
from otel_loopguard.settings import Limits, Settings, ToolOptions
from otel_loopguard.steps import Step

AGENTS = 32
"""Agents of one run that have counters of their own at a time; the least recent goes first."""


class Carried(NamedTuple):
    """What the runs of a conversation have used up of its limits."""

    totals: Detectors
    spent_s: float
    settings: Settings
    """What they went by."""

    def totals_under(self, settings: Settings) -> Detectors:
        """Return the totals of the next run: with other limits if that goes by other settings."""
        return self.totals if settings is self.settings else continued(settings, self.totals)


class RuleSets:
    """All detectors of one run: the run's own, and those of each of its agents."""

    __slots__ = (
        "_of_run",
        "_settings",
        "agents",
        "newest",
        "totals",
    )

    def __init__(self, settings: Settings, totals: Detectors | None = None) -> None:
        self._settings = settings
        if totals is None:  # of single invocations, where that is the policy's scope
            totals = {} if settings.scope == "agent" else made(settings, "totals")
        self.totals = totals
        """The limits that the policy's scope is about."""
        self._of_run: Detectors = {**totals, **made(settings, "run")}
        self.agents: dict[str, AgentRules] = {}
        self.newest: AgentRules | None = None
        """What was kept last."""

    def of(self, agent: str) -> AgentRules:
        """Return the rules of an agent, or of one of its invocations, the run's own included."""
        known = self.agents.get(agent)
        if known is not None:
            return known
        if agent == INNER:
            own = {r: d for r, d in self._of_run.items() if r in self.totals or r in TIMED}
            return AgentRules(INNER, Settings(Limits(), {}), own)
        name, _, _ = agent.partition(APART)
        return AgentRules(agent, self._settings.for_agent(name), self._of_run)

    def of_call(
        self, step: Step, owner: AgentRules, rules: RuleSet
    ) -> tuple[RuleSet, ToolOptions | None, Identity]:
        """Return the rules for a tool call, what the policy says of the tool, and its identity.

        `rules` are those of its agent, which hold unless the call may be repeated.
        """
        if step.inner:
            known = self._settings.for_agent(step.agent).of_tool(step.name)
            exempt = known is not None and known.exempt
            return owner.unjudged({}, exempt=True) if exempt else rules, None, NOBODY
        if not owner.tools and not step.approved:
            return rules, None, identify(step, None, owner.key)
        options = owner.options_of(step.name)
        exempt = options is not None and options.exempt
        if exempt or step.approved or (options is not None and options.poll):
            return owner.unjudged(self._of_run, exempt=exempt), options, NOBODY
        return rules, options, identify(step, options, owner.key)

    def keep(self, rules: AgentRules) -> None:
        """Make these the rules of their agent, and the agent the most recent."""
        if self.agents.pop(rules.key, None) is None and len(self.agents) == AGENTS:
            del self.agents[next(iter(self.agents))]
        self.agents[rules.key] = self.newest = rules

    def forget_results(self) -> None:
        """Begin all that advances with the results of tool calls afresh."""
        self._of_run = afresh(self._of_run, made(self._settings, "run"))
        for rules in self.agents.values():
            if rules.key != INNER:
                rules.forget_results(self._of_run)

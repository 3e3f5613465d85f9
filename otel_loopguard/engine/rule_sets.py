"""The detectors of a run, arranged by when they are asked."""

from __future__ import annotations

from collections.abc import Iterable

from otel_loopguard.detectors import DETECTORS, Detector, Settings
from otel_loopguard.steps import StepKind

AGENTS = 32
"""Agents of one run that have counters of their own at a time; the least recent goes first."""

KINDS: tuple[StepKind, ...] = ("llm", "tool", "agent", "custom")


class RuleSet:
    """Some detectors, arranged by when they are asked and when they advance."""

    __slots__ = (
        "at_result",
        "at_start",
        "early",
        "early_blind",
        "every",
        "late",
        "started",
    )

    def __init__(self, detectors: Iterable[Detector]) -> None:
        self.every = every = tuple(detectors)
        self.at_start = tuple(d for d in every if d.moment == "start")
        self.at_result = tuple(d for d in every if d.moment == "result")
        self.early = tuple(d for d in every if d.moment != "result" or d.foresees)
        """Asked before a step whose arguments are known."""
        self.early_blind = tuple(d for d in self.early if d.moment != "call")
        """Asked before a step whose arguments are not known yet."""
        self.started = tuple(d for d in every if d.moment != "result")
        """Advance with a step whose arguments are known."""
        self.late = tuple(d for d in every if d.moment != "start")
        """Asked when a step comes back whose arguments were not known before."""

    def without_results(self, settings: Settings) -> RuleSet:
        """Return the same detectors, but those that advance with results begun afresh."""
        return RuleSet(type(d).of(settings) or d if d.moment == "result" else d for d in self.every)


class RuleSets:
    """All detectors of one run: the run's own, and those of each of its agents."""

    __slots__ = ("_agents", "_of_run", "_settings", "by_kind", "newest")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._of_run = _made(settings, per_agent=False)
        self.by_kind = {k: RuleSet(d for d in self._of_run if k in d.kinds) for k in KINDS}
        """The rules that look at the run as a whole, for each kind of step."""
        self._agents: dict[str, RuleSet] = {}
        self.newest: RuleSet | None = None
        """What was kept last."""

    def of_kind(self, kind: StepKind) -> RuleSet:
        """Return the rules that look at the run as a whole, for a step of this kind.

        Raises:
            ValueError: if there is no such kind.

        """
        rules = self.by_kind.get(kind)
        if rules is None:
            raise ValueError(f"Step.kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        return rules

    def of_tool(self, agent: str) -> RuleSet:
        """Return the rules for a tool call of this agent, the run's own included."""
        rules = self._agents.get(agent)
        if rules is None:
            of_run = (d for d in self._of_run if "tool" in d.kinds)
            rules = RuleSet((*of_run, *_made(self._settings, per_agent=True)))
        return rules

    def keep(self, agent: str, rules: RuleSet) -> None:
        """Make these the rules of the agent, and the agent the most recent."""
        if self._agents.pop(agent, None) is None and len(self._agents) == AGENTS:
            del self._agents[next(iter(self._agents))]
        self._agents[agent] = self.newest = rules

    def forget_results(self) -> None:
        """Begin all that advances with results afresh."""
        for agent, rules in self._agents.items():
            self._agents[agent] = rules.without_results(self._settings)


def _made(settings: Settings, *, per_agent: bool) -> tuple[Detector, ...]:
    made = (kind.of(settings) for kind in DETECTORS if kind.per_agent is per_agent)
    return tuple(detector for detector in made if detector is not None)

"""One agent's rules, and what is known of what it does."""

from __future__ import annotations

from collections.abc import Mapping

from otel_loopguard.canonical import Unknown
from otel_loopguard.detectors import RULES, Detector, Facts
from otel_loopguard.engine.rule_kits import KINDS, Detectors, RulesByKind, afresh, made, ordered
from otel_loopguard.engine.rule_plans import RuleSet
from otel_loopguard.settings import Settings, ToolOptions
from otel_loopguard.steps import UNKNOWN, Step, StepKind

RECALLED = 8
"""Calls of an agent that are known in their order."""

TOOLS = 32
"""Tools of an agent whose last call is known."""

LARGEST_BATCH = 16
"""Calls that are taken as asked for by one response; where there are more after it, the turns that
asked for them were not recorded."""


class AgentRules:
    """One agent's counters, beside those of the run, and what is known of what it does."""

    __slots__ = (
        "_asked",
        "_detectors",
        "_ordered",
        "_settings",
        "_unjudged",
        "answers",
        "batch",
        "by_kind",
        "calls",
        "latest_news",
        "news",
        "offered",
        "results",
        "sees",
        "tools",
        "turns",
    )

    def __init__(self, settings: Settings, of_run: Detectors) -> None:
        self._settings = settings
        self.tools: Mapping[str, ToolOptions] = settings.tools
        self._detectors: Detectors = made(settings, "agent")
        self._ordered = ordered({**of_run, **self._detectors})
        self.by_kind: RulesByKind = {}
        """The rules for steps of the kinds that there have been."""
        self.news = 0
        """How many tool calls have brought something new."""
        self.latest_news: int | None = None
        """What the last success that brought something new brought."""
        self.results = 0
        """How many tool calls have come back."""
        self.sees = True
        """All results since the last news are known."""
        self.calls: list[int | None] = []
        """The last ones of them; a deque of eight takes ten times the space."""
        self.answers: dict[str, tuple[int | None, int | None]] = {}
        """The last call of each tool, and what it answered."""
        self.turns = 0
        """How many model calls the agent has made."""
        self.batch: int | None = None
        """Which response of the model asked for the calls that come next."""
        self._asked = 0
        """How many have come back of those that it asked for."""
        self._unjudged: dict[bool, RuleSet] = {}
        self.offered: frozenset[str] | Unknown = UNKNOWN
        """The tools that its last model call could ask for."""

    def of_kind(self, kind: StepKind) -> RuleSet:
        """Return the rules for a step of this kind.

        Raises:
            ValueError: if there is no such kind.

        """
        rules = self.by_kind.get(kind)
        if rules is None:
            if kind not in KINDS:
                raise ValueError(f"Step.kind: expected one of {', '.join(KINDS)}, got {kind!r}")
            rules = self.by_kind[kind] = RuleSet(self._ordered, kind)
        return rules

    def unjudged(self, of_run: Detectors, *, exempt: bool) -> RuleSet:
        """Return the rules for a tool call that may be repeated: the limits of the run alone.

        Rules about model turns hear of it all the same: it ends a row of idle or equal turns.
        """
        rules = self._unjudged.get(exempt)
        if rules is None:
            rules = self._unjudged[exempt] = RuleSet((), "tool", compares=False)
            self._arrange_unjudged(of_run)
        return rules

    def _arrange_unjudged(self, of_run: Detectors) -> None:
        hearing = _hearing_of_tools({**of_run, **self._detectors})
        for exempt, rules in self._unjudged.items():
            limits = () if exempt else _limits_on_tools(of_run)
            rules.arrange((*limits, *hearing), "tool")

    def begin_turn(self) -> None:
        """Take note that the model is asked: what it asks for belongs together."""
        self.turns += 1
        self.batch = hash((id(self), self.turns))
        self._asked = 0

    def after(self, kind: StepKind, step: Step, facts: Facts) -> None:
        """Take note of what a model call brought."""
        if kind != "llm":
            return
        if step.offered_tools is not UNKNOWN:
            self.offered = step.offered_tools
        if facts.turn is not None and (facts.turn.final or step.tool_calls == ()):
            self.batch = None  # it asked for nothing: what follows is somebody else's idea

    def wake(self) -> None:
        """After a step that is no tool call, let all hear of the next tool call."""
        tools = self.by_kind.get("tool")
        if tools is not None:
            tools.awake = tools.moving

    def count(self, facts: Facts) -> None:
        """Take note of a tool call that has come back, or will not."""
        call, name, answers = facts.call, facts.name, self.answers
        self.results += 1
        if self.batch is not None:
            self._asked += 1
            if self._asked == LARGEST_BATCH:
                self.batch = None
        self.calls.append(call)
        if len(self.calls) > RECALLED:
            del self.calls[0]
        if name not in answers and len(answers) == TOOLS:
            del answers[next(iter(answers))]
        answers[name] = call, facts.result
        if facts.outcome is None:
            self.sees = False
        if facts.novel:
            self.news += 1
            if not facts.failed:
                self.sees = facts.outcome is not None
                self.latest_news = call if facts.outcome is None else facts.outcome

    def options_of(self, name: str) -> ToolOptions | None:
        """Return what the policy says of a tool."""
        return self.tools.get(name) or self.tools.get("*")

    def forget_results(self, of_run: Detectors) -> None:
        """Begin all that advances with the results of tool calls afresh."""
        self._detectors = afresh(self._detectors, made(self._settings, "agent"))
        self.news = self.results = 0
        self.latest_news = None
        self.sees = True
        self.calls.clear()
        self.answers.clear()
        self._ordered = ordered({**of_run, **self._detectors})
        for kind, rules in self.by_kind.items():
            rules.arrange(self._ordered, kind)
        self._arrange_unjudged(of_run)


def _hearing_of_tools(detectors: Detectors) -> tuple[Detector, ...]:
    return tuple(d for d in detectors.values() if "tool" in d.kinds and "tool" not in d.judges)


def _limits_on_tools(detectors: Detectors) -> tuple[Detector, ...]:
    return tuple(d for d in detectors.values() if d.rule not in RULES and "tool" in d.kinds)

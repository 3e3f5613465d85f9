"""One agent's rules, and what is known of what it does."""

from __future__ import annotations

from collections.abc import Mapping

from otel_loopguard.canonical import Unknown
from otel_loopguard.detectors import APART, RULES, Detector, Facts
from otel_loopguard.engine.rule_kits import KINDS, Detectors, RulesByKind, afresh, made, ordered
from otel_loopguard.engine.rule_plans import RuleSet
from otel_loopguard.settings import Settings, ToolOptions
from otel_loopguard.steps import UNKNOWN, Step, StepKind

RECALLED = 8
"""Calls of an agent that are known in their order."""

TOOLS = 32
"""Tools of an agent whose last call is known."""

HAND_OVERS = (
    "transfer_to_",
    "transfer_back_to_",
    "transfer_control",
    "hand_off",
    "handoff",
    "hand_over",
    "handover",
    "delegate_to_",
    "delegate_work",
)
"""How tools are called by which one agent leaves the work to another: what such a call brings is
what the others have brought since."""

INNER = APART
"""Whose the steps are of runs inside the run, as if they were those of one agent more."""

LARGEST_BATCH = 16
"""Calls that are taken as asked for by one response; where there are more after it, the turns that
asked for them were not recorded."""


class AgentRules:
    """One agent's counters, beside those of the run, and what is known of what it does."""

    __slots__ = (
        "_asked",
        "_asks",
        "_detectors",
        "_ordered",
        "_settings",
        "_unjudged",
        "answers",
        "batch",
        "by_kind",
        "calls",
        "key",
        "latest_news",
        "news",
        "offered",
        "results",
        "sees",
        "tools",
        "turns",
        "work",
    )

    def __init__(self, key: str, settings: Settings, of_run: Detectors) -> None:
        self.key = key
        """The agent's name, or what stands for one of its invocations."""
        self._settings = settings
        self.tools: Mapping[str, ToolOptions] = settings.tools
        self._detectors: Detectors = made(settings, "agent")
        self._ordered = ordered({**of_run, **self._detectors})
        self.by_kind: RulesByKind = {}
        """The rules for steps of the kinds that there have been."""
        self.news = 0
        """How many tool calls have brought something new."""
        self.work = 0
        """How many of them, hand-overs left out."""
        self.latest_news: int | None = None
        """What the last success that brought something new brought."""
        self.results = 0
        """How many tool calls have come back."""
        self.sees = True
        """All results since the last news are known."""
        self.calls: list[int | None] = []
        """The last ones of them; a deque of eight takes ten times the space."""
        self.answers: dict[str, tuple[int | None, int | None, bool]] = {}
        """The last call of each tool, what it answered, and whether it is a hand-over."""
        self.turns = 0
        """How many model calls the agent has made."""
        self.batch: int | None = None
        """Which response of the model asked for the calls that come next."""
        self._asked = 0
        """How many have come back of those that it asked for."""
        self._asks = False
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
            compares = self.key != INNER
            rules = self.by_kind[kind] = RuleSet(self._ordered, kind, compares=compares)
        return rules

    def unjudged(self, of_run: Detectors, *, exempt: bool) -> RuleSet:
        """Return the rules for a tool call that may be repeated: the limits of the run alone.

        Who counts in a row hears of it all the same: it ends rows of other calls, errors and turns.
        """
        rules = self._unjudged.get(exempt)
        if rules is None:
            rules = self._unjudged[exempt] = RuleSet((), "tool", compares=False)
            self._arrange_unjudged(of_run)
        return rules

    def _arrange_unjudged(self, of_run: Detectors) -> None:
        for exempt, rules in self._unjudged.items():
            asked = frozenset(r for r in of_run if r not in RULES) | {"consecutive_errors"}
            asked = frozenset[str]() if exempt else asked
            told = [d for d in self._ordered if d.rule in asked or _counts_in_a_row(d)]
            rules.arrange(told, "tool", asked=asked)

    @property
    def acts(self) -> bool:
        """Whether it has called a tool, or asked for one."""
        return self.results > 0 or self._asks

    def begin_turn(self) -> None:
        """Take note that the model is asked: what it asks for belongs together."""
        self.turns += 1
        self.batch = hash((id(self), self.turns))
        self._asked = 0

    def after(self, step: Step, facts: Facts) -> None:
        """Take note of what a model call brought."""
        if step.offered_tools is not UNKNOWN:
            self.offered = step.offered_tools
        self._asks = self._asks or (facts.turn is not None and facts.turn.asks)
        if facts.turn is not None and (facts.turn.final or step.tool_calls == ()):
            self.batch = None  # it asked for nothing: what follows is somebody else's idea

    def wake(self) -> None:
        """After a step that is no tool call, let all who heard of it hear of the next tool call."""
        tools = self.by_kind.get("tool")
        if tools is not None and tools.awake is not tools.moving:
            stirred = tools.stirred
            tools.awake = (*stirred, *(each for each in tools.awake if each not in stirred))

    def count(self, facts: Facts) -> bool:
        """Take note of a tool call that has come back, or will not; say whether it was new work."""
        call, name, answers = facts.call, facts.name, self.answers
        self.results += 1
        if self.batch is not None:
            self._asked += 1
            if self._asked == LARGEST_BATCH:
                self.batch = None
        self.calls.append(call)
        if len(self.calls) > RECALLED:
            del self.calls[0]
        known = answers.get(name)
        if known is None and len(answers) == TOOLS:
            del answers[next(iter(answers))]
        hands_over = name.startswith(HAND_OVERS) if known is None else known[2]
        answers[name] = call, facts.result, hands_over
        if facts.outcome is None:
            self.sees = False
        if not facts.novel:
            return False
        self.news += 1
        if not facts.failed:
            self.sees = facts.outcome is not None
            self.latest_news = call if facts.outcome is None else facts.outcome
        self.work += not hands_over
        return not hands_over

    def options_of(self, name: str) -> ToolOptions | None:
        """Return what the policy says of a tool."""
        return self._settings.of_tool(name)

    def forget_results(self, of_run: Detectors) -> None:
        """Begin all that advances with the results of tool calls afresh."""
        self._detectors = afresh(self._detectors, made(self._settings, "agent"))
        self.news = self.results = self.work = 0
        self.latest_news = None
        self.sees = True
        self.calls.clear()
        self.answers.clear()
        self._ordered = ordered({**of_run, **self._detectors})
        for kind, rules in self.by_kind.items():
            rules.arrange(self._ordered, kind)
        self._arrange_unjudged(of_run)


_ROWS = frozenset(
    (
        "agent_handoff_cycle",
        "consecutive_errors",
        "loop_pattern",
        "repeated_call_limit",
        "repeated_error",
        "same_tool",
    )
)
"""Rules that judge tool calls in a row, which any other call ends."""


def _counts_in_a_row(detector: Detector) -> bool:
    return "tool" in detector.kinds and ("tool" not in detector.judges or detector.rule in _ROWS)

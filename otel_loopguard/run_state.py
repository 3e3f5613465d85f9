"""What one run has done so far, and what its rules make of the next step."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from otel_loopguard.canonical import UNKNOWN, fingerprint
from otel_loopguard.decisions import Phase, RunReport, Stats, Violation
from otel_loopguard.detectors import COUNTED, Detector, Facts, Settings
from otel_loopguard.endings import Status, ending_of, finished
from otel_loopguard.open_steps import OpenStep, OpenSteps
from otel_loopguard.rule_sets import RuleSet, RuleSets
from otel_loopguard.steps import Step

SEEN = 256
"""How many different outcomes a run remembers; what is older counts as new again."""

TRACED = 32
"""How many labels of past steps a report shows."""

TOOL_NAMES = 256
"""How many different tool names are counted."""


class Findings(NamedTuple):
    """What the rules say about a step."""

    refusal: Violation | None = None
    """The first violation that says stop."""
    news: tuple[Violation, ...] = ()
    """Violations that have not been reported in this run, each rule once per level."""


class Begun(NamedTuple):
    """A step that may be about to happen, and what the rules say about it."""

    step: Step
    facts: Facts
    rules: RuleSet
    number: int
    findings: Findings


_NOTHING = Findings()


class RunState:
    """One run's counters and rules. Everything in it is bounded."""

    def __init__(self, settings: Settings, started_s: float) -> None:
        self.steps = 0
        self.last_s = started_s
        """When something last happened."""
        self._started_s = started_s
        self._rules = RuleSets(settings)
        self._open = OpenSteps()
        self._records = False
        self._seen: dict[int, None] = {}
        self._reported: dict[tuple[str, str], Violation] = {}
        self._status: Status = "running"
        self._model_calls = self._tool_calls = self._repeated_calls = 0
        self._input_tokens = self._output_tokens = 0
        self._cost_usd = 0.0
        self._tools: dict[str, None] = {}
        self._last_tool = ""
        self._trace: deque[tuple[str, str]] = deque(maxlen=TRACED)

    def begin(self, step: Step, now_s: float, *, ahead: int = 0, phase: Phase = "pre") -> Begun:
        """Ask the rules about a step before it happens. Changes nothing."""
        kind, call = step.kind, None
        if kind == "tool" and not step.approved:
            rules = self._rules_before(step)
            if step.arguments is not UNKNOWN:
                call = _identity(step.name, step.arguments)
        else:
            rules = self._rules.by_kind[kind]
        facts = Facts(kind, step.name, now_s - self._started_s, call, ahead=ahead)
        number = self.steps + 1 if kind in COUNTED else self.steps
        asked = rules.early_blind if call is None else rules.early
        return Begun(step, facts, rules, number, self._ask(asked, facts, step, number, phase))

    def commit(self, begun: Begun, now_s: float, *, refused: bool) -> OpenStep:
        """Count a step that happens, and wait for its record."""
        step, facts, rules = begun.step, begun.facts, begun.rules
        for detector in rules.at_start:
            detector.commit(facts)
        if facts.call is not None:
            for detector in rules.at_call:
                detector.commit(facts)
        if step.kind == "tool":
            self._tool_calls += 1
            self._last_tool = step.name
            if len(self._tools) < TOOL_NAMES:
                self._tools[step.name] = None
            if not step.approved:
                self._rules.keep(step.agent, rules)
        elif step.kind == "llm":
            self._model_calls += 1
        self.steps, self.last_s = begun.number, now_s
        self._status = "running"
        self._trace.append((step.kind, step.name))
        opened = OpenStep(step, begun.number, facts.call, refused=refused)
        self._open.add(opened)
        return opened

    def find_open(self, step: Step) -> OpenStep | None:
        """Return the open step that this one completes, if there is one."""
        return self._open.find(step)

    def finish(self, opened: OpenStep, step: Step, now_s: float) -> Findings:
        """Record what came out of an open step, and say what the rules make of it."""
        self._records = True
        self._open.remove(opened)
        started = opened.step
        tool = started.kind == "tool" and not started.approved
        call, late = opened.call, opened.call is None and not opened.settled
        if tool and late and step.arguments is not UNKNOWN:
            call = _identity(started.name, step.arguments)
        facts = self._facts_after(opened, step, call, now_s)
        rules = self._rules.of_tool(started.agent) if tool else self._rules.by_kind[started.kind]
        asked = rules.late if late else rules.at_result
        findings = self._ask(
            asked, facts, step, opened.number, "post", forgiven=finished(step), agent=started.agent
        )
        for detector in asked:
            detector.commit(facts)
        if tool:
            self._rules.keep(started.agent, rules)
            self._remember(started.agent, facts)
        self._input_tokens += step.input_tokens or 0
        self._output_tokens += step.output_tokens or 0
        self._cost_usd += step.cost_usd or 0.0
        if started.kind != "agent":  # its last turn has said how it ended
            self._status = ending_of(step)
        self.last_s = now_s
        return findings

    def settle(self) -> None:
        """Take the newest step's result as unknown, in a loop where nobody records results."""
        opened = self._unsettled()
        if opened is not None:
            opened.settled = True
            agent, rules = opened.step.agent, self._rules.of_tool(opened.step.agent)
            self._remember(agent, self._settle_in(rules, opened))

    def note(self, news: Iterable[Violation]) -> None:
        """Keep what is reported, so that it is not reported again."""
        for violation in news:
            self._reported[violation.rule, violation.action] = violation

    def stats(self, now_s: float, failed_callbacks: int) -> Stats:
        """Return the counts so far."""
        return Stats(
            steps=self.steps,
            tool_calls=self._tool_calls,
            model_calls=self._model_calls,
            duration_s=now_s - self._started_s,
            distinct_tools=len(self._tools),
            repeated_calls=self._repeated_calls,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd,
            open_steps=len(self._open),
            evicted_steps=self._open.evicted,
            failed_callbacks=failed_callbacks,
        )

    def report(self, now_s: float, status: Status | None) -> RunReport:
        """Return what became of the run; `status` overrides how its last step ended it."""
        violations = tuple(self._reported.values())
        return RunReport(
            status=status or self._status,
            rule=next((v.rule for v in violations if v.action == "abort"), None),
            steps=self.steps,
            model_calls=self._model_calls,
            tool_calls=self._tool_calls,
            last_tool=self._last_tool,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd,
            duration_s=now_s - self._started_s,
            violations=violations,
            open_call_ids=self._open.call_ids(),
            trace=tuple(f"{kind}:{name}" for kind, name in self._trace),
        )

    def _rules_before(self, step: Step) -> RuleSet:
        rules = self._rules.of_tool(step.agent)
        opened = self._unsettled()
        if opened is None or opened.step.agent != step.agent:
            return rules
        foreseen = copy.deepcopy(rules)
        self._settle_in(foreseen, opened)
        return foreseen

    def _unsettled(self) -> OpenStep | None:
        opened = None if self._records else self._open.newest()
        if opened is None or opened.settled:
            return None
        return opened if opened.step.kind == "tool" and not opened.step.approved else None

    def _settle_in(self, rules: RuleSet, opened: OpenStep) -> Facts:
        facts = self._facts_after(opened, opened.step, opened.call, self.last_s)
        for detector in rules.late if opened.call is None else rules.at_result:
            detector.commit(facts)
        return facts

    def _facts_after(self, opened: OpenStep, step: Step, call: int | None, now_s: float) -> Facts:
        failed = step.error is not None
        outcome = None
        if call is not None:
            value = step.error if failed else step.result
            result = None if value is UNKNOWN else fingerprint(value)
            outcome = None if result is None else hash((call, failed, result))
        return Facts(
            opened.step.kind,
            opened.step.name,
            now_s - self._started_s,
            call,
            outcome,
            pending=False,
            failed=failed,
            novel=not opened.refused
            and (call is None or _seen_as(opened.step.agent, call, outcome) not in self._seen),
        )

    def _remember(self, agent: str, facts: Facts) -> None:
        if facts.call is None:
            return
        key = _seen_as(agent, facts.call, facts.outcome)
        if key in self._seen:
            self._repeated_calls += 1
            del self._seen[key]
        self._seen[key] = None
        if len(self._seen) > SEEN:
            del self._seen[next(iter(self._seen))]

    def _ask(
        self,
        detectors: tuple[Detector, ...],
        facts: Facts,
        step: Step,
        number: int,
        phase: Phase,
        *,
        forgiven: bool = False,
        agent: str | None = None,
    ) -> Findings:
        refusal: Violation | None = None
        news: list[Violation] = []
        for detector in detectors:
            finding = detector.check(facts)
            if finding is None:
                continue
            violation = Violation(
                rule=detector.rule,
                reason=detector.reason,
                action="warn" if forgiven else finding.action,
                phase=phase,
                step=number,
                count=finding.count,
                threshold=finding.threshold,
                kind=facts.kind,
                tool=facts.name if facts.kind == "tool" else "",
                agent=step.agent if agent is None else agent,
                wasted_steps=finding.wasted_steps,
                span=step.span,
            )
            if refusal is None and violation.action == "abort":
                refusal = violation
            if (violation.rule, violation.action) not in self._reported:
                news.append(violation)
        return Findings(refusal, tuple(news)) if news or refusal else _NOTHING


def _identity(name: str, arguments: object) -> int | None:
    value = fingerprint(arguments)
    return None if value is None else hash((name, value))


def _seen_as(agent: str, call: int, outcome: int | None) -> int:
    return hash((agent, call if outcome is None else outcome))

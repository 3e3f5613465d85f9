"""What the rules make of the next step of a run, and what they know of the steps before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from otel_loopguard.canonical import UNKNOWN, fingerprint
from otel_loopguard.decisions import Phase, RunReport, Stats, Violation
from otel_loopguard.detectors import COUNTED, Detector, Facts, Settings
from otel_loopguard.endings import Status, finished
from otel_loopguard.open_steps import OpenStep, OpenSteps, call_of
from otel_loopguard.rule_sets import RuleSet, RuleSets
from otel_loopguard.run_totals import RunTotals
from otel_loopguard.steps import SpanKey, Step

SEEN = 256
"""How many different outcomes a run remembers; what is older counts as new again."""

WAITING = 32
"""How many tool calls wait for the first result of a run."""

_COMPACTED = 64
"""A dictionary that loses its oldest key for each new one doubles in size unless it is copied."""

Found: TypeAlias = tuple[Violation | None, tuple[Violation, ...]]
"""The first violation that says stop, and the violations that this run has not reported yet."""


class Begun(msgspec.Struct, frozen=True, gc=False):
    """A step that may be about to happen, and what the rules say about it."""

    step: Step
    facts: Facts
    rules: RuleSet
    number: int
    now_s: float
    refusal: Violation | None
    news: tuple[Violation, ...]


class RunState:
    """One run's rules and figures. Everything in it is bounded.

    Where nothing is ever recorded, each tool call counts at once as one whose result stays unknown.
    Where only model calls are, it counts so when the next of them begins. With the first result of
    a tool call, what was concluded without results is forgotten: calls count when they come back.
    """

    __slots__ = (
        "_forgotten",
        "_open",
        "_records_come",
        "_reported",
        "_results_come",
        "_rules",
        "_seen",
        "_waiting",
        "totals",
    )

    def __init__(self, settings: Settings, started_s: float) -> None:
        self.totals = RunTotals(started_s)
        self._rules = RuleSets(settings)
        self._open = OpenSteps()
        self._records_come = self._results_come = False
        self._waiting: list[tuple[Facts, RuleSet, bool]] = []
        self._seen: dict[int, None] = {}
        self._forgotten = 0
        self._reported: dict[tuple[str, str], Violation] = {}

    def begin(
        self,
        step: Step,
        now_s: float,
        *,
        ahead: int = 0,
        phase: Phase = "pre",
        forgiven: bool = False,
    ) -> Begun:
        """Ask the rules about a step before it happens. Changes nothing."""
        kind, name, agent, call = step.kind, step.name, step.agent, None
        if kind == "tool" and not step.approved:
            rules = self._rules.of_tool(agent)
            if step.arguments is not UNKNOWN:
                call = call_of(agent, name, fingerprint(step.arguments))
        else:
            rules = self._rules.of_kind(kind)
        novel = call is None or call not in self._seen
        elapsed_s = now_s - self.totals.started_s
        facts = Facts(kind, name, elapsed_s, call, novel=novel, ahead=ahead)
        number = self.totals.steps + 1 if kind in COUNTED else self.totals.steps
        asked = rules.early_blind if call is None else rules.early
        refusal, news = self._ask(asked, facts, number, phase, agent, step.span, forgiven=forgiven)
        return Begun(step, facts, rules, number, now_s, refusal, news)

    def commit(self, begun: Begun, *, refused: bool) -> OpenStep:
        """Count a step that happens, and wait for its record."""
        step, facts, rules = begun.step, begun.facts, begun.rules
        repeatable = step.kind == "tool" and not step.approved
        self.totals.begin(step.kind, step.name, begun.number, begun.now_s)
        if repeatable and rules is not self._rules.newest:
            self._rules.keep(step.agent, rules)
        if refused:
            facts = msgspec.structs.replace(facts, novel=False)
        if self._records_come:
            for detector in rules.at_start if facts.call is None else rules.started:
                detector.commit(facts)
            if not self._results_come and (repeatable or step.kind == "llm"):
                self._await_result(facts, rules, refused=refused)
        else:
            for detector in rules.early:
                detector.commit(facts)
            self._remember(facts)
        opened = OpenStep(
            step.kind,
            step.name,
            step.agent,
            step.approved,
            step.span,
            step.call_id,
            begun.number,
            facts.call,
            refused,
        )
        self._open.add(opened, step.arguments)
        return opened

    def find_open(self, step: Step) -> OpenStep | None:
        """Return the open step that this one completes, if there is one."""
        return self._open.find(step)

    def finish(self, opened: OpenStep, step: Step, now_s: float) -> Found:
        """Record what came out of an open step, and say what the rules make of it."""
        self._open.remove(opened)
        kind, agent, call = opened.kind, opened.agent, opened.call
        repeatable = kind == "tool" and not opened.approved
        late = call is None
        self._records_come = True
        if kind == "tool" and not self._results_come:
            self._expect_results()
        if repeatable and late and step.arguments is not UNKNOWN:
            call = call_of(agent, opened.name, fingerprint(step.arguments))
        facts = self._facts_after(opened, step, call, now_s)
        rules = self._rules.of_tool(agent) if repeatable else self._rules.by_kind[kind]
        asked = rules.late if late else rules.at_result
        span = opened.span or step.span
        forgiven = finished(step)
        found = self._ask(asked, facts, opened.number, "post", agent, span, forgiven=forgiven)
        for detector in asked:
            detector.commit(facts)
        if repeatable:
            self._rules.keep(agent, rules)
            self._remember(facts)
        self.totals.end(kind, opened.number, step, now_s)
        return found

    def note(self, news: Iterable[Violation]) -> None:
        """Keep what is reported, so that it is not reported again."""
        for violation in news:
            self._reported[violation.rule, violation.action] = violation

    def stats(self, now_s: float, failed_callbacks: int) -> Stats:
        """Return the counts so far."""
        return self.totals.stats(now_s, self._open, failed_callbacks)

    def report(self, now_s: float, status: Status | None) -> RunReport:
        """Return what became of the run; `status` overrides how its last step ended it."""
        violations = tuple(self._reported.values())
        return self.totals.report(now_s, status, violations, self._open.call_ids())

    def _await_result(self, facts: Facts, rules: RuleSet, *, refused: bool) -> None:
        if facts.kind == "tool":
            self._waiting.append((facts, rules, refused))
            del self._waiting[:-WAITING]
        else:
            for earlier, its_rules, was_refused in self._waiting:
                novel = not was_refused and earlier.call not in self._seen
                known = msgspec.structs.replace(earlier, novel=novel)
                for detector in its_rules.late if known.call is None else its_rules.at_result:
                    detector.commit(known)
                self._remember(known)
            self._waiting.clear()

    def _expect_results(self) -> None:
        self._results_come = True
        self._rules.forget_results()
        self._seen.clear()
        self._waiting.clear()
        self.totals.repeated_calls = 0

    def _facts_after(self, opened: OpenStep, step: Step, call: int | None, now_s: float) -> Facts:
        failed = step.error is not None
        outcome = None
        if call is not None:
            value = step.error if failed else step.result
            result = None if value is UNKNOWN else fingerprint(value)
            outcome = None if result is None else hash((call, failed, result))
        seen_as = call if outcome is None else outcome
        return Facts(
            opened.kind,
            opened.name,
            now_s - self.totals.started_s,
            call,
            outcome,
            pending=False,
            failed=failed,
            novel=not opened.refused and (seen_as is None or seen_as not in self._seen),
        )

    def _remember(self, facts: Facts) -> None:
        seen_as = facts.call if facts.outcome is None else facts.outcome
        if seen_as is None:
            return
        seen = self._seen
        if not facts.novel:
            self.totals.repeated_calls += 1
            seen.pop(seen_as, None)
        seen[seen_as] = None
        if len(seen) > SEEN:
            del seen[next(iter(seen))]
            self._forgotten += 1
            if self._forgotten % _COMPACTED == 0:
                self._seen = dict.fromkeys(seen)

    def _ask(
        self,
        detectors: tuple[Detector, ...],
        facts: Facts,
        number: int,
        phase: Phase,
        agent: str,
        span: SpanKey | None,
        *,
        forgiven: bool = False,
    ) -> Found:
        refusal: Violation | None = None
        news: tuple[Violation, ...] = ()
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
                agent=agent,
                wasted_steps=finding.wasted_steps,
                span=span,
            )
            if refusal is None and violation.action == "abort":
                refusal = violation
            if (violation.rule, violation.action) not in self._reported:
                news = (*news, violation)
        return refusal, news

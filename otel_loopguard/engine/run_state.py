"""What the rules make of the next step of a run, and what they know of the steps before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from otel_loopguard.decisions import Phase, RunReport, Stats, Violation
from otel_loopguard.detectors import COUNTED, Facts
from otel_loopguard.endings import Status, finished
from otel_loopguard.engine.agent_rules import AgentRules
from otel_loopguard.engine.asking import Heard, hear, heard, tell_around, violations_of
from otel_loopguard.engine.invocations import Invocation, Invocations
from otel_loopguard.engine.open_steps import OpenStep, OpenSteps
from otel_loopguard.engine.outcomes import Outcomes
from otel_loopguard.engine.parties import parties
from otel_loopguard.engine.readings import NOBODY, identify
from otel_loopguard.engine.reports import NOTHING, Found, Reports
from otel_loopguard.engine.rule_sets import Carried, RuleSets
from otel_loopguard.engine.run_totals import RunTotals
from otel_loopguard.engine.sight import Sight
from otel_loopguard.pricing import Pricing
from otel_loopguard.settings import Settings, ToolOptions
from otel_loopguard.steps import Step

Begun: TypeAlias = tuple[OpenStep, Facts, Violation | None, tuple[Violation, ...]]
"""A step that may be about to happen, what is known of it, and what the rules say about it."""


class RunState:
    """One run's rules and figures. Everything in it is bounded."""

    __slots__ = (
        "_acted_last",
        "_earlier_s",
        "_invocations",
        "_looks_around",
        "_on_facts",
        "_open",
        "_outcomes",
        "_reports",
        "_rules",
        "_settings",
        "_sight",
        "_spoken",
        "totals",
    )

    def __init__(
        self,
        settings: Settings,
        pricing: Pricing,
        started_s: float,
        carried: Carried | None = None,
        on_facts: Callable[[Facts], object] | None = None,
    ) -> None:
        self.totals = RunTotals(started_s)
        self._earlier_s = 0.0 if carried is None else carried.spent_s
        self._settings = settings
        self._rules = RuleSets(settings, None if carried is None else carried.totals)
        self._invocations = Invocations(settings)
        self._looks_around = self._invocations.watched or settings.tells_more
        self._on_facts = on_facts
        self._open = OpenSteps()
        self._outcomes = Outcomes(settings, pricing)
        self._sight = Sight()
        self._spoken = False
        self._reports = Reports()
        self._acted_last: AgentRules | None = None
        """The agent whose step was the last to come back."""

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
        kind, name, who = step.kind, step.name, step.agent
        owner = self._rules.agents.get(who) or self._rules.of(who)
        rules, options, identity = owner.by_kind.get(kind) or owner.of_kind(kind), None, NOBODY
        if kind == "tool":
            if owner.tools or step.approved:
                rules, options = self._rules.for_tool(owner, step)
            if rules.compares:
                identity = identify(step, options)
        call = identity[0]
        elapsed_s = now_s - self.totals.started_s + self._earlier_s
        # Where results are known, a call says nothing before its result is there.
        novel = (
            (self._sight.results_come and owner.sees)
            or call is None
            or not self._outcomes.has(call)
        )
        batch = owner.batch if step.batch is None else hash(step.batch)
        facts = Facts(
            kind,
            name,
            who,
            elapsed_s,
            call,
            None,
            True,  # noqa: FBT003 -- by position: one of the hottest constructors there is
            False,  # noqa: FBT003
            novel,
            None,
            batch,
            owner.results,
            owner.latest_news,
            owner.calls,
        )
        within: tuple[Invocation, ...] = ()
        if kind != "tool" or ahead or options is not None or self._looks_around:
            facts, within = self._looked_around(step, facts, options, now_s, ahead)
            facts = msgspec.structs.replace(facts, asked=identity[2])
        number = self.totals.steps + (kind in COUNTED)
        opened = OpenStep(
            kind,
            name,
            who,
            step.span,
            step.call_id,
            number,
            identity,
            batch,
            owner,
            rules,
            within,
            call is None,
        )
        found: list[Heard] = []
        asked = rules.early_blind if call is None else rules.early
        for detector in rules.early_seeing if novel and call is not None else asked:
            finding = detector.check(facts)
            if finding is not None:
                found.append((detector, finding, who))
        if within:
            for limits, its_facts, its_agent in parties(within, kind, facts):
                moment = limits.early_blind if call is None else limits.early
                found += heard(moment, its_facts, its_agent)
        if not found:
            return opened, facts, None, ()
        refusal, news = self._told(found, opened, phase, forgiven=forgiven)
        return opened, facts, refusal, news

    def _looked_around(
        self, step: Step, facts: Facts, options: ToolOptions | None, now_s: float, ahead: int
    ) -> tuple[Facts, tuple[Invocation, ...]]:
        """Add what is of no use to an ordinary tool call; return the invocations around it too."""
        is_agent, exempt = step.kind == "agent", options is not None and options.exempt
        more = msgspec.structs.replace(
            facts,
            ahead=ahead,
            silent_s=self._silent_s(now_s),
            depth=self._invocations.depth_of(step) if is_agent else 0,
            spoken=self._spoken,
            own=None if options is None else options.rules,
        )
        watched = is_agent or (self._invocations.watched and not exempt)
        return more, self._invocations.around(step, facts.elapsed_s) if watched else ()

    def commit(
        self, opened: OpenStep, facts: Facts, step: Step, now_s: float, *, refused: bool
    ) -> OpenStep:
        """Count a step that happens, and wait for its record."""
        owner, rules, within = opened.owner, opened.rules, opened.within
        self.totals.begin(opened, now_s)
        if owner is not self._rules.newest:
            self._rules.keep(opened.agent, owner)
            self._open.hold()
        if opened.kind == "llm":
            owner.begin_turn()
            opened.spoken, self._spoken = self._spoken, False
        if refused:
            opened.refused = True
            facts = msgspec.structs.replace(facts, novel=False)
        known, at_once = facts.call is not None, not self._sight.records_come
        told = rules.started if known else rules.at_start
        for detector in rules.early if at_once and not (facts.novel and known) else told:
            detector.commit(facts)
        if within:
            self._invocations.keep(within, begins=opened.kind == "agent")
            tell_around(opened, facts, at_once=at_once)
        if not self._sight.results_come:
            self._sight.do_without(opened, facts, self._outcomes)
        self._open.add(opened, step.arguments)
        return opened

    def find_open(self, step: Step) -> OpenStep | None:
        """Return the open step that this one completes, if there is one."""
        return self._open.find(step)

    def finish(self, opened: OpenStep, step: Step, now_s: float) -> Found:
        """Record what came out of an open step, and say what the rules make of it."""
        owner, totals = opened.owner, self.totals
        is_ordinary = opened.kind == "tool" and not self._looks_around
        silent_s = 0.0 if is_ordinary else self._silent_s(now_s)
        self._open.remove(opened)
        opened.span = opened.span or step.span
        elapsed_s = now_s - totals.started_s + self._earlier_s
        self._sight.records_come = True
        if opened.kind == "tool":
            if not self._sight.results_come:
                self._sight.expect_results(self._rules, self._outcomes)
            options = owner.options_of(opened.name) if owner.tools else None
            facts = self._outcomes.of_tool(opened, step, options, elapsed_s)
            if not is_ordinary:
                facts = self._outcomes.with_words(facts, opened, step, silent_s)
            ends = options is not None and options.finish and not facts.failed
        else:
            owner.wake()
            facts = self._outcomes.of_other(opened, step, elapsed_s, silent_s)
            ends = finished(step) if opened.kind == "llm" else totals.is_complete
        if facts.failed:  # failures side by side are no repetition: say what had started by then
            facts = msgspec.structs.replace(facts, number=opened.number, started=totals.steps)
        if self._on_facts is not None:
            self._on_facts(facts)
        found = hear(opened, facts, acts_on=owner is self._acted_last)
        if opened.kind != "tool":
            owner.after(opened.kind, step, facts)
        elif opened.rules.compares:
            self._outcomes.keep(facts, owner)
        self._acted_last = owner
        if owner is not self._rules.newest:
            self._rules.keep(opened.agent, owner)
        totals.end(opened, step, facts, now_s, ends=ends)
        return self._told(found, opened, "post", forgiven=ends) if found else NOTHING

    def _silent_s(self, now_s: float) -> float:
        """Return for how long nothing has happened in the run.

        A call of a sub-agent that is open alone may work by itself: that is no silence.
        """
        return 0.0 if self._open.holds else self.totals.silent_s(now_s)

    def tick(self, now_s: float) -> Found:
        """Say what it means that nothing has happened until now."""
        opened = self._open.latest() or self.totals.latest
        if opened is None:
            return NOTHING
        facts = Facts(
            opened.kind,
            opened.name,
            opened.agent,
            now_s - self.totals.started_s + self._earlier_s,
            None,
            silent_s=self._silent_s(now_s),
        )
        found = heard(opened.owner.of_kind(opened.kind).timed, facts, opened.agent)
        for invocation in dict.fromkeys((*opened.within, *self._invocations.open_ones())):
            for limits, its_facts, its_agent in parties((invocation,), opened.kind, facts):
                found += heard(limits.timed, its_facts, its_agent)
        return self._told(found, opened, "post", forgiven=self.totals.is_complete)

    def due_s(self) -> float | None:
        """Return when a limit on time will be reached if nothing happens; `None` for never."""
        limits, totals = self._settings.limits, self.totals
        if totals.is_complete or totals.latest is None:
            return None
        began_s = totals.started_s - self._earlier_s
        silent_from_s = float("inf") if self._open.holds else totals.last_s
        of_run = limits.max_duration_s is not None and self._settings.scope != "agent"
        moments = (
            began_s + (limits.max_duration_s or 0.0) if of_run else None,
            None if limits.max_idle_s is None else silent_from_s + limits.max_idle_s,
            *(began_s + due_s for due_s in self._invocations.due_s(silent_from_s - began_s)),
        )
        known = [moment for moment in moments if moment is not None and moment != float("inf")]
        return min(known, default=None)

    def carried(self) -> Carried:
        """Return what the run, and those before it, have used up."""
        spent_s = self.totals.last_s - self.totals.started_s + self._earlier_s
        return Carried(self._rules.totals, spent_s)

    def person_spoke(self) -> None:
        """Take note that a person said something: the next model call answers it."""
        self._spoken = True

    def note(self, news: Iterable[Violation]) -> None:
        """Keep what is reported, so that it is not reported again."""
        self._reports.note(news)

    def stats(self, now_s: float, failed_callbacks: int) -> Stats:
        """Return the counts so far."""
        return self.totals.stats(now_s, self._open, self._outcomes, failed_callbacks)

    def report(self, now_s: float, status: Status | None) -> RunReport:
        """Return what became of the run; `status` overrides how its last step ended it."""
        return self.totals.report(now_s, status, self._reports.all(), self._open.call_ids())

    def _told(self, found: list[Heard], opened: OpenStep, phase: Phase, *, forgiven: bool) -> Found:
        spent = self.totals.spent_with_next if phase == "pre" else self.totals.spent_in
        return self._reports.told(violations_of(found, opened, phase, spent, forgiven=forgiven))

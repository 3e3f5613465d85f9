"""What the rules make of the next step of a run, and what they know of the steps before it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nextafter

import msgspec

from otel_loopguard.decisions import Phase
from otel_loopguard.detectors import COUNTED, Facts
from otel_loopguard.engine import asking
from otel_loopguard.engine.agent_rules import AgentRules
from otel_loopguard.engine.deadlines import due_s
from otel_loopguard.engine.invocations import Invocation, Invocations
from otel_loopguard.engine.open_steps import OpenStep, OpenSteps
from otel_loopguard.engine.outcomes import Outcomes
from otel_loopguard.engine.readings import NOBODY
from otel_loopguard.engine.reports import NOTHING, Begun, Found, Reports
from otel_loopguard.engine.rule_sets import Carried, RuleSets
from otel_loopguard.engine.run_totals import RunTotals
from otel_loopguard.engine.sight import Sight
from otel_loopguard.pricing import Pricing
from otel_loopguard.settings import Settings, ToolOptions
from otel_loopguard.steps import UNKNOWN, Step


class RunState:
    """One run's rules and figures. Everything in it is bounded."""

    __slots__ = (
        "_acted_last",
        "_earlier_s",
        "_invocations",
        "_looks_around",
        "_on_facts",
        "_rules",
        "_settings",
        "_sight",
        "open",
        "outcomes",
        "reports",
        "spoken",
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
        self._rules = RuleSets(
            settings, None if carried is None else carried.totals_under(settings)
        )
        self._invocations = Invocations(settings)
        self._looks_around = self._invocations.watched or settings.tells_more
        self._on_facts = on_facts
        self.open = OpenSteps()
        self.outcomes = Outcomes(settings, pricing)
        self._sight = Sight()
        self.spoken = False
        """A person has said something since the last model call."""
        self.reports = Reports()
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
        begun: OpenStep | None = None,
    ) -> Begun:
        """Ask the rules about a step before it happens, or has just `begun`. Changes nothing."""
        kind, name = step.kind, step.name
        is_plain = step.agent_id is None and not step.inner
        who = step.agent if is_plain else self._invocations.counters_of(step)
        owner = self._rules.agents.get(who) or self._rules.of(who)
        rules, options, identity = owner.by_kind.get(kind) or owner.of_kind(kind), None, NOBODY
        if kind == "tool":
            rules, options, identity = self._rules.of_call(step, owner, rules)
        call = identity[0]
        elapsed_s = now_s - self.totals.started_s + self._earlier_s
        # Where results are known, a call says nothing before its result is there.
        seen = self._sight.results_come and owner.sees
        novel = seen or call is None or not self.outcomes.has(call)
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
        looks = self._looks_around or step.spanless
        if kind != "tool" or ahead or options is not None or looks:
            facts, within = self._looked_around(step, facts, options, now_s, ahead)
            words = identity[2]
            facts = facts if words is None else msgspec.structs.replace(facts, asked=words)
        number = self.totals.steps + (kind in COUNTED and not step.spanless)
        opened = OpenStep(
            kind,
            name,
            step.agent,
            step.span,
            step.call_id,
            number,
            identity,
            batch,
            owner,
            rules,
            within,
            call is None,
            unsure=step.spoken is UNKNOWN and not self.spoken,
            spanless=step.spanless,
            found_by=step.found_by,
            metered=0 if step.agent_id is None else self.outcomes.metered,
        )
        found: list[asking.Heard] = []
        asked = rules.early_blind if call is None else rules.early
        asked = rules.early_seeing if novel and call is not None else asked
        if begun is not None:
            asked, within = asking.late_ones(asked), ()
            opened.number, opened.batch = begun.number, begun.batch
        for detector in asked:
            finding = detector.check(facts)
            if finding is not None:
                found.append((detector, finding, step.agent))
        if within:
            found += asking.heard_around(within, facts, may_repeat=not rules.compares)
        answers = self.spoken or step.spoken is True
        due = None if self.reports.due is None or answers else self.reports.due_at(opened)
        if not found and due is None:
            return opened, facts, None, ()
        ends = options is not None and options.finish and phase == "post" and step.error is None
        spent = self.totals.spent_with_next
        violations = asking.violations_of(found, opened, phase, spent, forgiven=forgiven or ends)
        refusal, news = self.reports.told(violations if due is None else [*violations, due])
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
            spoken=self.spoken or step.spoken is not False,
            numbered=not step.spanless,
            own=None if options is None else options.rules,
        )
        watched = not step.inner and (is_agent or (self._invocations.watched and not exempt))
        return more, self._invocations.around(step, facts.elapsed_s) if watched else ()

    def commit(
        self, opened: OpenStep, facts: Facts, step: Step, now_s: float, *, refused: bool
    ) -> OpenStep:
        """Count a step that happens, and wait for its record."""
        owner, rules, within = opened.owner, opened.rules, opened.within
        self.totals.begin(opened, now_s)
        if owner is not self._rules.newest:
            self._rules.keep(owner)
            self.open.hold()
        if opened.kind == "llm":
            owner.begin_turn()
            opened.spoken, self.spoken = self.spoken or step.spoken is not False, False
            answers = opened.spoken and not opened.unsure
            self.reports.due = None if answers else self.reports.due
        if refused:
            opened.refused = True
            facts = msgspec.structs.replace(facts, novel=False)
        known, at_once = facts.call is not None, not self._sight.records_come
        told = rules.started if known else rules.at_start
        for detector in rules.telling_early if at_once and not (facts.novel and known) else told:
            detector.commit(facts)
        if within:
            self._invocations.keep(within)
            if opened.kind == "agent":
                self._invocations.begin(within[0], owner.key)
            asking.tell_around(opened, facts, at_once=at_once)
        if not self._sight.results_come:
            self._sight.do_without(opened, facts, self.outcomes)
        self.open.add(opened, step.arguments)
        if step.delegated:
            self.totals.take_back()
        return opened

    def finish(self, opened: OpenStep, step: Step, now_s: float) -> Found:
        """Record what came out of an open step, and say what the rules make of it."""
        owner, totals = opened.owner, self.totals
        is_ordinary = opened.kind == "tool" and not self._looks_around
        silent_s = 0.0 if is_ordinary else self._silent_s(now_s)
        self.open.remove(opened)
        opened.span = opened.span or step.span
        totals.name(opened, step)
        elapsed_s = now_s - totals.started_s + self._earlier_s
        opened.spoken = step.spoken is not False if opened.unsure else opened.spoken
        self._sight.records_come = True
        if opened.kind != "tool":
            owner.wake()
        elif not self._sight.results_come:
            self._sight.expect_results(self._rules, self.outcomes)
            self.open.results_come = True
        ended: bool | None
        if is_ordinary:
            facts, ended = self.outcomes.of_tool(opened, step, elapsed_s)
        else:
            facts, ended = self.outcomes.of(opened, step, elapsed_s, silent_s)
        ends = (totals.is_complete if ended is None else ended) and not self.open.is_working
        if facts.failed or opened.spanless:
            facts = asking.placed(facts, opened, totals.steps)
        if self._on_facts is not None:
            self._on_facts(facts)
        found = asking.hear(opened, facts, acts_on=owner is self._acted_last)
        if opened.rules.compares and opened.kind == "tool":
            self.outcomes.keep(facts, owner)
        elif opened.kind == "llm":
            owner.after(step, facts)
        elif opened.kind == "agent" and opened.within:
            self._invocations.end(opened.within[0])
        self._acted_last = owner
        if owner is not self._rules.newest:
            self._rules.keep(owner)
        totals.end(opened, step, facts, now_s, ends=ends)
        return self._told_at_end(found, opened, ends=ends) if found else NOTHING

    def _told_at_end(self, found: list[asking.Heard], opened: OpenStep, *, ends: bool) -> Found:
        """Say what was found of a step that has come back; a finished run is not failed."""
        spent = self.totals.spent_in
        if ends:
            due = asking.violations_of(found, opened, "post", spent, forgiven=False)
            self.reports.put_off(due, acts=opened.owner.acts)
        return self.reports.told(asking.violations_of(found, opened, "post", spent, forgiven=ends))

    def _silent_s(self, now_s: float) -> float:
        """Return for how long nothing has happened in the run.

        A call of a sub-agent that is open alone may work by itself: that is no silence.
        """
        is_silent = not self._is_over and not self.open.holds
        return now_s - self.totals.last_s if is_silent else 0.0

    @property
    def _is_over(self) -> bool:
        """Whether the last turn finished the run, and nothing is under way."""
        return self.totals.is_complete and not self.open.is_working

    def tick(self, now_s: float) -> Found:
        """Say what it means that nothing has happened until now."""
        opened, found = self._late(now_s)
        if opened is None:
            return NOTHING
        spent, over = self.totals.spent_in, self._is_over
        return self.reports.told(asking.violations_of(found, opened, "post", spent, forgiven=over))

    def due_s(self) -> float | None:
        """Return when a limit on time will be reached if nothing happens; `None` for never."""
        since_s = inf if self.open.holds else self.totals.last_s
        first = due_s(self._settings, self.totals, self._invocations, self._earlier_s, since_s)
        if first is None or self._is_over:
            return None
        # A sum may be rounded down: the limit is reached at one of the next numbers then.
        near = (first, nextafter(first, inf), nextafter(nextafter(first, inf), inf))
        return next((moment for moment in near if self._late(moment)[1]), first)

    def _late(self, now_s: float) -> tuple[OpenStep | None, list[asking.Heard]]:
        """Return the step that is open, or the last one, and what is late."""
        opened = self.open.latest() or self.totals.latest
        if opened is None:
            return None, []
        elapsed_s = now_s - self.totals.started_s + self._earlier_s
        silent_s = self._silent_s(now_s)
        return opened, asking.heard_late(opened, elapsed_s, silent_s, self._invocations)

    def carried(self) -> Carried:
        """Return what the run, and those before it, have used up."""
        spent_s = self.totals.last_s - self.totals.started_s + self._earlier_s
        return Carried(self._rules.totals, spent_s, self._settings)

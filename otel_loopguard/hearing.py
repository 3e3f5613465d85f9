"""A run is told of steps, and the runs around it are: what the guards of all of them say.

To a run, another one inside it is what a sub-agent is, but that nothing is held against its steps
except the totals, and silence.
"""

from __future__ import annotations

import msgspec

from otel_loopguard.agent_totals import AgentTotals
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.detectors import COUNTED
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step
from otel_loopguard.verdicts import Verdict


class Hearing:
    """What one span, or one model request, shows of a run's steps, and what is said to it."""

    __slots__ = ("_parties", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self._parties = [] if run.ended else [_Party(run)]
        if run.outer is not None:
            self._parties += [_Party(outer, is_outer=True) for outer in run.around()]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run and those around it, nearest first, as far as they go on."""
        return tuple([party.run for party in self._parties])

    def begin(self, step: Step, *, prevented: bool) -> bool:
        """Tell of a step that starts; say whether it is refused and so does not happen.

        One that can be `prevented` is counted by all of the runs, or by none.
        """
        # One run alone says so when it is told.
        alone = len(self._parties) == 1
        refused = prevented and (self.run.trip is not None if alone else self._refuses(step))
        for party in self._parties:
            party.begin(step, prevented=prevented, refused=refused)
        return refused or (prevented and any(party.is_against for party in self._parties))

    def ask(self, step: Step) -> bool:
        """Say whether a step would be refused; if so that is told, as of one that is prevented."""
        refused = self._refuses(step)
        for party in self._parties if refused else ():
            party.begin(step, prevented=True, refused=True)
        return refused

    def admit(self, request: object, step: Step) -> None:
        """Ask for a place for a model request, as the step that it will become."""
        if not self.ask(step):
            for party in self._parties:
                party.run.places.hold(request)

    def learn(self, step: Step, *, prevented: bool, against: bool) -> bool:
        """Tell what a call that is open shows before it is made; say whether it is not made.

        That is where it is refused, or where it has started `against` what its runs say, if it can
        be `prevented`. What has stopped a run since then, on account of other calls, is no matter
        of this one; what has come out of one is.
        """
        refused = prevented and against
        for party in self._parties:
            decision = party.run.guard.learn(party.seen(step), commit=not prevented)
            party.take(step, decision)
            refused = refused or (prevented and not decision.allowed)
        for party in self._parties if refused else ():
            party.run.guard.not_executed()
        return refused

    def count(self, step: Step) -> None:
        """Tell of a step that nobody was asked about."""
        for party in self._parties:
            party.take(step, party.run.guard.check(party.seen(step), commit=True))

    def give_up_place(self, started_ns: int) -> bool:
        """Give up the place of the request that has become a step; say whether it held one."""
        gave_up = [party.run.places.give_up(started_ns) for party in self._parties]
        return any(gave_up)

    def record(
        self, step: Step, *, started_ns: int = 0, refused: bool = False, is_late: bool = False
    ) -> None:
        """Tell what came out of a step; one that was `refused` has happened all the same.

        One that `is_late` shows only now that it is a step.
        """
        for party in self._parties:
            party.record(step, started_ns, refused=refused, is_late=is_late)

    @property
    def is_behind(self) -> bool:
        """Whether more steps are counted than the totals have, as for one that was forgotten."""
        for party in self._parties:
            decision = party.decision
            if decision is not None and decision.step_count > party.run.counted_steps:
                return True
        return False

    def settle(self, step: Step, totals: AgentTotals, *, over: bool) -> None:
        """Add what the step has brought to the totals of its agent, else of its run's.

        Once, although the runs around that have counted it too; `over` says that it has come back.
        """
        to: AgentTotals | None = totals
        for party in self._parties:
            run, decision = party.run, party.decision
            if decision is not None:
                more = decision.step_count - run.counted_steps
                if more > 0:
                    run.counted_steps += more
                    if to is not None:
                        to.count(step.agent or run.agent, step.kind, more)
            if over:
                before, run.taken = run.taken, run.guard.taken()
                if to is not None:
                    to.spend(step.agent or run.agent, before, run.taken)
            to = None

    def verdict(
        self, node: Node | None, step: Step | None = None, *, opened: bool, vetoed: bool = False
    ) -> Verdict:
        """Return what it all meant for the run, and for those around it."""
        first, *outer = self._parties
        around = tuple([each.verdict(node, step, opened=each.is_new()) for each in outer])
        verdict = first.verdict(node, step, opened=opened, around=around)
        if not vetoed:
            return verdict
        return msgspec.structs.replace(verdict, vetoed_by=self._refused_by())

    def _refused_by(self) -> Run:
        """Return the run that refuses what was asked, the nearest one: it has tripped."""
        run = next((run for run, _ in self.stops), self.run)
        if run is not self.run:
            self.run.refused_by = run
        return run

    @property
    def stops(self) -> tuple[tuple[Run, Violation], ...]:
        """Which of the runs have tripped, and by what, nearest first."""
        return tuple([(each.run, each.trip) for each in self._parties if each.trip is not None])

    @property
    def is_stopped(self) -> bool:
        """Whether any of the runs has tripped."""
        return any(party.trip is not None for party in self._parties)

    def refuse_request(self, *, let_through: bool) -> Run | None:
        """Return the run that refuses a model request, the nearest one that has tripped; count it.

        A request whose step was `let_through` before a limit was reached may still be made.
        """
        stops = (run for run, trip in self.stops if not (let_through and trip.phase == "pre"))
        refused_by = next(stops, None)
        if refused_by is not None:
            refused_by.refused_requests += 1
            if refused_by is not self.run:
                self.run.refused_by = refused_by
        return refused_by

    @property
    def is_news(self) -> bool:
        """Whether anything was said, or a run was opened of which nobody has been told."""
        return any(party.decision is not None or party.run.is_new for party in self._parties)

    def _refuses(self, step: Step) -> bool:
        return any(party.refuses(step) for party in self._parties)


class _Party:
    """One of the runs."""

    __slots__ = ("_is_outer", "decision", "ran_on", "run", "tripped", "went_on")

    def __init__(self, run: Run, *, is_outer: bool = False) -> None:
        self.run = run
        self.decision: Decision | None = None
        self.tripped = self.went_on = self.ran_on = False
        self._is_outer = is_outer
        if is_outer and run.gives_way:  # what it was stopped for is no matter of this loop's
            run.guard.go_on()

    def seen(self, step: Step) -> Step:
        """Return a step as it is for this run."""
        return msgspec.structs.replace(step, inner=True) if self._is_outer else step

    @property
    def trip(self) -> Violation | None:
        """What it was stopped for, unless others below its span go on and this is of one."""
        return None if self._is_outer and self.run.gives_way else self.run.trip

    @property
    def is_against(self) -> bool:
        """Whether it refuses what it was asked."""
        return self.decision is not None and not self.decision.allowed

    def is_new(self) -> bool:
        """Say whether nobody has been told of the run; from now on somebody has."""
        is_new, self.run.is_new = self.run.is_new, False
        return is_new

    def refuses(self, step: Step) -> bool:
        """Say whether the run would refuse a step; nothing is told."""
        run = self.run
        return (
            self.trip is not None or not run.guard.preview(self.seen(step), ahead=run.ahead).allowed
        )

    def begin(self, step: Step, *, prevented: bool, refused: bool) -> None:
        """Tell of a step that starts, or would if it were not `refused`."""
        run = self.run
        self.went_on = self.trip is not None and step.kind in COUNTED
        self.ran_on = self.went_on and not refused
        run.steps_after_trip += self.ran_on
        if refused and self.trip is not None:
            self.take(step, Decision(allowed=False, step_count=0, refusal=self.trip))
        elif not refused or self.refuses(step):  # else it is another run that refuses
            ahead = run.ahead
            decision = run.guard.check(self.seen(step), commit=not prevented, ahead=ahead)
            self.take(step, decision)
        if prevented and step.kind == "tool" and (refused or self.is_against):
            run.guard.not_made(step.call_id)

    def record(self, step: Step, started_ns: int, *, refused: bool, is_late: bool) -> None:
        """Tell what came out of a step."""
        run = self.run
        if self.trip is not None:
            is_after = started_ns > run.tripped.wall_ns
            is_trip = self.trip.span == step.span
            # It may have been another run that refused it, before this one tripped.
            escaped = refused and (is_after or is_trip or not self._is_outer)
            run.escaped = run.escaped or escaped
            self.went_on = is_late and is_after and step.kind in COUNTED
            # The call that tripped the run by itself did not start after the trip.
            self.ran_on = self.went_on or (escaped and not is_trip)
            run.steps_after_trip += self.ran_on
        self.take(step, run.guard.record(self.seen(step)))

    def take(self, step: Step, decision: Decision) -> None:
        """Add what the guard says of a step to what it has said before."""
        before = self.decision
        self.tripped = self.run.trips_by(decision, step) or self.tripped
        if before is None or (before.refusal is None and not before.violations):
            self.decision = decision
            return
        refusal = before.refusal or decision.refusal
        violations: tuple[Violation, ...] = before.violations + decision.violations
        self.decision = msgspec.structs.replace(
            decision, allowed=refusal is None, refusal=refusal, violations=violations
        )

    def verdict(
        self,
        node: Node | None,
        step: Step | None,
        *,
        opened: bool,
        around: tuple[Verdict, ...] = (),
    ) -> Verdict:
        """Return what it meant for this run."""
        return Verdict(
            self.run,
            node,
            step,
            self.decision,
            opened=opened,
            tripped=self.tripped,
            went_on=self.went_on,
            ran_on=self.ran_on,
            around=around,
        )

"""What is done about a verdict: it is written down, and the run is stopped if it says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace
from opentelemetry.context import Context

from otel_loopguard.abort.cancel_task import RootTask
from otel_loopguard.abort.ladder import Ladder
from otel_loopguard.aside import Aside
from otel_loopguard.blind_spots import warn_if_unseen
from otel_loopguard.contexts import NOWHERE, context_of
from otel_loopguard.decisions import RunReport, Violation
from otel_loopguard.listeners import LISTENERS, Said, tell
from otel_loopguard.options.kinds import BuiltIn
from otel_loopguard.runs import Run
from otel_loopguard.sampling import DropWarning
from otel_loopguard.telemetry import Telemetry
from otel_loopguard.timer import Timer
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

if TYPE_CHECKING:
    from otel_loopguard.abort.hooks import AbortHook


class Reactions:
    """What one guard does about what its runs are told. Nothing is ever raised.

    Args:
        tracker: whose runs they are.
        telemetry: where it is written down.
        drops: told of the spans that runs begin with.
        aside: entered while something is done.
        fault: told of what went wrong meanwhile.
        hooks: those of the `Ladder`, as are `built_in` and `timeout_s`.
        enforces: runs are stopped.

    """

    def __init__(
        self,
        tracker: RunTracker,
        telemetry: Telemetry,
        drops: DropWarning,
        aside: Aside,
        fault: Callable[[Exception], object],
        *,
        hooks: tuple[AbortHook, ...],
        built_in: frozenset[BuiltIn],
        timeout_s: float,
        enforces: bool,
    ) -> None:
        self._spans = tracker.runs.spans
        self._telemetry = telemetry
        self._drops = drops
        self._aside = aside
        self._fault = fault
        self._enforces = enforces
        self.ladder = Ladder(hooks, built_in, timeout_s=timeout_s, tell=self._came_out)
        """What stops runs."""
        self.timer = Timer(tracker, self.act, fault)
        """Says when a limit on time is reached."""
        telemetry.announce(hooks=self.ladder.names if enforces else ())

    def act(self, verdict: Verdict) -> None:
        """Write down what a verdict says, then stop the run if it says so; so for those around."""
        if verdict.opened and verdict.run.slot.task is None:
            verdict.run.slot.task = RootTask.running()
        for part in (self._expect, self._write, self._stop, self._count):
            try:
                with self._aside:
                    part(verdict)
            except Exception as error:  # noqa: BLE001 -- what cannot be written must be stopped
                self._fault(error)
        if LISTENERS:
            self._say(verdict)
        for outer in verdict.around:
            self.act(outer)

    def _expect(self, verdict: Verdict) -> None:
        if verdict.report is None:
            starts = verdict.step is not None and verdict.step.kind == "agent"
            self.timer.expect(verdict.run, sooner=starts)

    def _write(self, verdict: Verdict) -> None:
        run, decision = verdict.run, verdict.decision
        if verdict.opened:
            self._drops.seen(run.top and run.top.live)
            self._telemetry.run_opened(run.agent)
        for violation in () if decision is None else decision.violations:
            self._telemetry.violation(
                violation, run.id, run.agent, verdict.spans(), sampled=verdict.is_sampled
            )
            if self._enforces and run.guard.policy.settings.steer:
                run.hints.note(violation)
        if verdict.ran_on:
            self._telemetry.step_after_trip(run.agent)
        goes_on = run.trip is not None and verdict.step is not None
        if verdict.tripped or verdict.is_last_turn or goes_on:
            self._describe(run)

    def _stop(self, verdict: Verdict) -> None:
        if not self._enforces:
            return
        if verdict.tripped:
            self.ladder.tripped(verdict.run)
        if verdict.timed and verdict.run.trip is not None:
            self.ladder.hung(verdict.run)
        if verdict.went_on:
            self.ladder.went_on(verdict.run, ran=verdict.ran_on)
        if verdict.vetoed_by is not None and verdict.step is not None:
            self.ladder.kept(verdict.vetoed_by, verdict.step.kind, verdict.kept_by)

    def _count(self, verdict: Verdict) -> None:
        if verdict.report is not None:
            self.timer.forget(verdict.run)
            self._tell_ended(verdict.run, verdict.report)

    def _say(self, verdict: Verdict) -> None:
        said = self._said_of(verdict.run)
        with self._aside:
            if verdict.decision is not None:
                tell(replace(said, step=verdict.step, decision=verdict.decision))
            if verdict.report is not None:
                tell(replace(said, report=verdict.report))

    def _said_of(self, run: Run) -> Said:
        return Said(guard=run.guard, run_id=run.id, agent=run.agent, enforces=self._enforces)

    def hinted(self, run: Run, violation: Violation) -> None:
        """Hear that the model of a run is given a hint."""
        with self._aside:
            self._telemetry.hint(violation, run.agent)

    def closed(self, run: Run, report: RunReport) -> None:
        """Hear that a run has ended that no span ended."""
        try:
            with self._aside:
                self._tell_closed(run, report)
        except Exception as error:  # noqa: BLE001 -- called from the user's own code
            self._fault(error)

    def _tell_closed(self, run: Run, report: RunReport) -> None:
        self.timer.forget(run)
        self._describe(run)
        self._tell_ended(run, report)
        if LISTENERS:
            tell(replace(self._said_of(run), report=report))
        warn_if_unseen(run, report)

    def _came_out(self, run: Run, stop: str, result: str) -> None:
        """Hear that a stop is asked for, or what became of it, on any thread."""
        try:
            with self._aside:
                taken_s = time.monotonic() - run.tripped.monotonic_s
                self._telemetry.abort(stop, result, taken_s, self._offending(run))
                if not run.ended:
                    self._describe(run)
        except Exception as error:  # noqa: BLE001 -- there is nobody on that thread to tell
            self._fault(error)

    def _tell_ended(self, run: Run, report: RunReport) -> None:
        top = NOWHERE if run.top is None else context_of(run.top.key, sampled=run.top.is_sampled)
        self._telemetry.run_ended(run.agent, report, run.gaps, top, self._offending(run))

    def _offending(self, run: Run) -> Context:
        """Return the context of the span that tripped a run, as far as it is remembered."""
        span = None if run.trip is None else run.trip.span
        node = None if span is None else self._spans.get(span.span_id)
        return NOWHERE if node is None else context_of(node.key, sampled=node.is_sampled)

    def _describe(self, run: Run) -> None:
        self._telemetry.describe(run.top and run.top.live, run.id, run.report())

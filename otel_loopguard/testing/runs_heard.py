"""What guards have said of each run, as tests ask for it. Bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from opentelemetry import trace

from otel_loopguard.decisions import Decision, RunReport, Violation
from otel_loopguard.guard import LoopGuard
from otel_loopguard.listeners import Said
from otel_loopguard.steps import Step

RUNS = 1_000
"""Runs that are kept; past that the oldest is forgotten."""

_STEPS = 1_000
_TRACES = 100


class RunHeard:
    """One run, as one guard speaks of it."""

    def __init__(self, said: Said) -> None:
        self.run_id = said.run_id
        """Empty where a loop asks its engine itself."""
        self.guard = said.guard
        self.enforces = said.enforces
        """Whether the guard stops what it refuses; `None` where that is up to the loop."""
        self.agent = ""
        self.violations: list[Violation] = []
        self.refusal: Violation | None = None
        """Why the first step was refused: the run has tripped."""
        self.kinds: Counter[str] = Counter()
        """How often it was told of steps, by their kinds."""
        self.said: list[Said] = []
        """The first things that an engine said to a loop: such a loop may make no spans."""
        self.trace_ids: set[int] = set()
        """The traces that it was spoken of in: few, but for runs that go on for ever."""
        self.span_ids: set[int] = set()
        """The spans of the first steps that it was told of."""
        self.heard_at = 0
        """When it was last spoken of, in things heard."""
        self._was_refused = self._went_on = False
        self._report: RunReport | None = None

    def take(self, said: Said, at: int) -> None:
        """Hear what is said of it."""
        if said.report is None or not self.heard_at:  # that its end is told is no news of its steps
            self.heard_at = at
        self.agent = said.agent or self.agent
        if said.step is not None:
            self.kinds[said.step.kind] += 1
            self._note_trace(said.step)
        if said.enforces is None and len(self.said) < _STEPS:
            self.said.append(said)
        if said.step is not None and said.decision is not None and not said.over:
            self._asked(said.step, said.decision)
        if said.decision is not None:
            self._decided(said.decision)
        self._report = said.report or self._report

    def _note_trace(self, step: Step) -> None:
        current = trace.get_current_span().get_span_context().trace_id
        trace_id = current if step.span is None else step.span.trace_id
        if trace_id and len(self.trace_ids) < _TRACES:
            self.trace_ids.add(trace_id)
        if step.span is not None and len(self.span_ids) < _STEPS:
            self.span_ids.add(step.span.span_id)

    def _asked(self, step: Step, decision: Decision) -> None:
        """Note a loop that goes on after a refusal; it may ask about calls beside that one."""
        if decision.allowed:
            self._went_on = self._went_on or self.refusal is not None
        else:
            self._went_on = self._went_on or (self._was_refused and step.kind == "llm")
            self._was_refused = True

    def _decided(self, decision: Decision) -> None:
        self.violations += decision.violations  # each rule is told of once for each level
        self.refusal = self.refusal or decision.refusal

    @property
    def has_ended(self) -> bool:
        """Whether its end was told."""
        return self._report is not None

    @property
    def report(self) -> RunReport | None:
        """What became of it; of a loop that has not ended its run, what has so far."""
        if self._report is None and self.enforces is None and isinstance(self.guard, LoopGuard):
            return self.guard.report()
        return self._report

    @property
    def trip(self) -> Violation | None:
        """The first violation whose action is abort."""
        found = None if self._report is None else self._report.trip
        return found or self.refusal

    @property
    def was_stopped(self) -> bool:
        """Whether the guard has stopped it, or a loop has heeded the refusal of a step."""
        if self.enforces is None:
            return self.trip is not None and not self._went_on
        return self._report is not None and self._report.status == "aborted"


class RunsHeard:
    """The runs of a while, oldest first."""

    def __init__(self) -> None:
        self._runs: dict[object, RunHeard] = {}
        self._ended = 0

    def take(self, said: Said, at: int) -> None:
        """Hear what a guard says of a run."""
        key = (said.run_id, id(said.guard))  # kept by the run, so that no other has its id
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = RunHeard(said)
            if len(self._runs) > RUNS:
                del self._runs[next(iter(self._runs))]
        run.take(said, at)
        if said.report is not None and not said.run_id:  # the engine's next step begins a new run
            self._ended += 1
            self._runs[self._ended] = self._runs.pop(key)

    def since(self, at: int) -> list[RunHeard]:
        """Return the runs that were spoken of after so many things were heard."""
        return [run for run in tuple(self._runs.values()) if run.heard_at > at]


def distinct(runs: Sequence[RunHeard]) -> list[RunHeard]:
    """Return each run once: where several guards have seen it, as one that stopped it has.

    Guards of spans call a run alike; an engine that a loop asks has no name for it, but shares the
    trace.
    """
    watched = [run for run in runs if run.run_id]
    found: dict[object, RunHeard] = {}
    for run in (*watched, *(run for run in runs if not run.run_id)):
        same = [each for each in watched if not run.run_id and each.trace_ids & run.trace_ids]
        key = same[-1].run_id if same else run.run_id or id(run)
        if key not in found or (run.was_stopped and not found[key].was_stopped):
            found[key] = run
    return list(found.values())


def outermost(runs: Sequence[RunHeard]) -> list[RunHeard]:
    """Return runs without those whose steps are told of as another's too: it has them around."""
    found: list[RunHeard] = []
    for run in sorted(runs, key=lambda run: len(run.span_ids), reverse=True):
        if not any(run.span_ids & each.span_ids for each in found):
            found.append(run)
    return sorted(found, key=lambda run: run.heard_at)

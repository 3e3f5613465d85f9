"""May this model request leave? The question that the model gate asks about a run."""

from __future__ import annotations

import time

from otel_loopguard.runs import Run, Verdict
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step
from otel_loopguard.tracker import RunTracker

_REQUEST = Step(kind="llm")


class Admission:
    """A model request that may leave, or may not.

    A request first claims the model step it belongs to, if that has started: the nearest one above
    the current span, else any open one of the run that no request has claimed. With none open it is
    judged as the model call that it will become, on top of the requests that are on their way, and
    holds a place until its step shows up, or until it fails without one.
    """

    __slots__ = ("_tracker", "run", "verdict")

    def __init__(self, tracker: RunTracker, span_id: int) -> None:
        self._tracker = tracker
        self.verdict: Verdict | None = None
        """Set if the request itself broke a limit: the run's trip."""
        with tracker.lock:
            node = tracker.spans.get(span_id)
            self.run = _run_of(tracker, node)
            """The run whose request this is; `None` if it belongs to none."""
            if self.run is not None and self.run.trip is None and not _claims(self.run, node):
                self._ask(self.run, node)
            if self.refused:
                self._refuse(node)

    @property
    def refused(self) -> bool:
        """Whether the request must not leave."""
        return self.run is not None and self.run.trip is not None

    def fail(self) -> None:
        """Give the place back: the request failed and left no step."""
        with self._tracker.lock:
            if self.run is not None:
                self.run.places.pop(self, None)

    def _ask(self, run: Run, node: Node | None) -> None:
        decision = run.guard.preview(_REQUEST, ahead=len(run.places))
        if decision.allowed:
            run.places[self] = None
            return
        decision = run.guard.check(_REQUEST, ahead=len(run.places))
        run.trip, run.tripped_s = decision.refusal, time.monotonic()
        self.verdict = Verdict(run, node, decision=decision, tripped=True)

    def _refuse(self, node: Node | None) -> None:
        if self.run is not None:
            self.run.refused_requests += 1
        for above in () if node is None else node.upwards():
            if above.refused and above.is_open and above.kind == "llm":
                above.prevented = True
                return


def _run_of(tracker: RunTracker, node: Node | None) -> Run | None:
    """Return the run by the context if it is explicit, else by the span, else by the context.

    What an agent or a `guarded_run` opened goes before a run that is no more than a trace's root.
    """
    by_context = tracker.in_context()
    by_span = None if node is None else node.run_above()
    if by_context is not None and by_context.kind == "explicit":
        return by_context
    for run in (by_span, by_context):
        if run is not None and run.kind != "root":
            return run
    return by_span or by_context


def _claims(run: Run, node: Node | None) -> bool:
    for above in () if node is None else node.upwards():
        if above.run is run and above.kind == "llm" and above.is_open and not above.refused:
            above.claimed = True
            return True
    for call in run.open_calls:
        if not call.claimed:
            call.claimed = True
            return True
    return False

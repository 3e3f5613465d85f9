"""May this model request leave? The question that the model gate asks about a run."""

from __future__ import annotations

import time
from contextlib import suppress
from contextvars import Token

from otel_loopguard.decisions import Decision
from otel_loopguard.runs import REQUESTS, Run
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

_REQUEST = Step(kind="llm")


class Admission:
    """A model request that may leave, or may not.

    A request first claims the model step it belongs to, if that has started: the nearest one above
    the current span, else any open one of the run that no request has claimed. With none open it is
    judged as the model call that it will become, on top of the requests that have not become steps
    yet, and holds a place until its step shows up, or until it fails without one.
    """

    __slots__ = ("_claimed", "_token", "_tracker", "refusals", "run", "verdict")

    def __init__(self, tracker: RunTracker, span_id: int) -> None:
        self._tracker = tracker
        self._claimed: Node | None = None
        self._token: Token[tuple[object, ...]] | None = None
        self.verdict: Verdict | None = None
        """Set if the request itself opened the run or broke a limit."""
        self.refusals = 0
        """How many requests of the run have been refused, this one last; 0 if it may leave."""
        with tracker.runs.lock:
            node = tracker.runs.spans.get(span_id)
            self.run, opened = _run_of(tracker, node)
            """The run whose request this is; `None` if it belongs to none."""
            if self.run is not None:
                self._decide(self.run, node, opened=opened)
        tracker.runs.tell()
        if not self.refusals:
            self._token = REQUESTS.set((*REQUESTS.get(), self))

    def over(self, *, failed: bool) -> None:
        """Hear that the request came back. One that failed and left no step never happened."""
        if self._token is not None:
            with suppress(ValueError):  # it may come back in another context
                REQUESTS.reset(self._token)
        with self._tracker.runs.lock:
            at_ns = None if self.run is None else self.run.places.pop(self, None)
            if self.run is not None and at_ns is not None and not failed:
                self.run.unseen += 1
                self.run.unseen_ns = max(self.run.unseen_ns, at_ns)
            if failed and self._claimed is not None:
                self._claimed.claimed = False

    def _decide(self, run: Run, node: Node | None, *, opened: bool) -> None:
        decision = None
        claimed = self._claim(run, node)
        if run.trip is None and not claimed:
            step = _REQUEST if node is None else node.placed(_REQUEST)
            decision = self._ask(run, step)
        # A step that was let through before the limit was reached may still be made.
        if run.trip is not None and not (claimed and run.trip.phase == "pre"):
            run.refused_requests += 1
            self.refusals = run.refused_requests
            _prevent(run, node)
        if opened or decision is not None:
            tripped = decision is not None
            self.verdict = Verdict(run, node, decision=decision, opened=opened, tripped=tripped)

    def _claim(self, run: Run, node: Node | None) -> bool:
        for above in () if node is None else node.upwards():
            if above.run is run and above.kind == "llm" and above.is_open:
                # The request of a call that was refused takes no other call's place.
                above.claimed = not above.refused
                return above.claimed
        for call in run.open_calls:
            if not (call.claimed or call.refused):
                call.claimed = True
                self._claimed = call
                return True
        return False

    def _ask(self, run: Run, step: Step) -> Decision | None:
        """Take a place; return the decision that trips the run if there is none."""
        if run.guard.preview(step, ahead=run.ahead).allowed:
            run.places[self] = time.time_ns()
            return None
        decision = run.guard.check(step, ahead=run.ahead)
        run.trips_by(decision)
        return decision


def _prevent(run: Run, node: Node | None) -> None:
    """Mark the model step, if one is open, that does not happen because its request is refused."""
    for above in () if node is None else node.upwards():
        if above.is_open and not above.read:
            above.prevented = True  # it may show only at its end that it is the one
        elif above.is_open and above.refused:
            above.prevented = True
            return
    for call in run.open_calls:
        if call.refused and not call.prevented:
            call.prevented = True
            return


def _run_of(tracker: RunTracker, node: Node | None) -> tuple[Run | None, bool]:
    """Return the run by the context if it is explicit, else by the span, else by the context.

    What an agent or a `guarded_run` opened goes before a run that is no more than a trace's root.
    Say as well whether it was opened just now.
    """
    explicit, opened = tracker.runs.explicit(node)
    if explicit is not None:
        return explicit, opened
    by_span, by_context = None if node is None else node.run_above(), tracker.runs.in_context()
    for run in (by_span, by_context):
        if run is not None and run.kind != "root":
            return run, False
    return by_span or by_context, False

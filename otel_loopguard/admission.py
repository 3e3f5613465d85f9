"""May this model request leave? The question that the model gate asks about a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Token

from otel_loopguard.hearing import Hearing
from otel_loopguard.places import REQUESTS
from otel_loopguard.request_runs import run_of
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT, Slot
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step
from otel_loopguard.told import Told
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

REQUEST = Step(kind="llm")
"""What is known of a model call before it is made."""


class Admission:
    """A model request that may leave, or may not.

    A request first claims the model step it belongs to, if that has started: the nearest one above
    the current span, else any open one of the run that no request has claimed. With none open it is
    judged as the model call that it will become, on top of the requests that have not become steps
    yet, and holds a place until its step shows up, or until it fails without one.
    """

    __slots__ = (
        "_asked",
        "_claimed",
        "_in_slot",
        "_token",
        "_tracker",
        "refusals",
        "refused_by",
        "run",
        "verdict",
    )

    def __init__(self, tracker: RunTracker, span_id: int, read: Callable[[], Told | None]) -> None:
        self._tracker = tracker
        self._claimed: Node | None = None
        self._token: Token[tuple[object, ...]] | None = None
        self._in_slot: Token[Slot | None] | None = None
        self.verdict: Verdict | None = None
        """Set if the request itself opened the run or broke a limit."""
        self.refused_by: Run | None = None
        """The run that has tripped: its own, or one around that; `None` if it may leave."""
        self.refusals = 0
        """How many requests that run has refused, this one last."""
        self._asked: tuple[Run, ...] = ()
        """The runs that it counts for."""
        told = None if tracker.runs.around(span_id) else read()
        with tracker.runs.lock:
            node = tracker.runs.spans.get(span_id)
            self.run, opened = run_of(tracker.runs, node, told)
            """The run whose request this is; `None` if it belongs to none."""
            if self.run is not None:
                self._decide(self.run, node, opened=opened)
        tracker.runs.tell()
        if self.refused_by is None:
            self._token = REQUESTS.set((*REQUESTS.get(), self))
            if self.run is not None and self.run.kind == "joined":
                self._in_slot = CURRENT.set(self.run.slot)  # spans below it start in its run

    def over(self, *, failed: bool) -> None:
        """Hear that the request came back. One that failed and left no step never happened."""
        if self._token is not None:
            with suppress(ValueError):  # it may come back in another context
                REQUESTS.reset(self._token)
        if self._in_slot is not None:
            with suppress(ValueError):
                CURRENT.reset(self._in_slot)
        with self._tracker.runs.lock:
            for run in self._asked:
                run.places.came_back(self, failed=failed)
            if failed and self._claimed is not None:
                self._claimed.claimed = False

    def _decide(self, run: Run, node: Node | None, *, opened: bool) -> None:
        hearing = Hearing(run)
        self._asked = hearing.runs
        claimed = self._claim(run, node)
        if not claimed and not hearing.is_stopped:
            hearing.admit(self, REQUEST if node is None else node.placed(REQUEST))
        self.refused_by = hearing.refuse_request(let_through=claimed)
        if self.refused_by is not None:
            self.refusals = self.refused_by.refused_requests
            prevent(run, node)
        if opened or hearing.is_news:
            around = node if node is None or not node.awaits else node.parent
            self.verdict = hearing.verdict(around or node, opened=opened)

    def _claim(self, run: Run, node: Node | None) -> bool:
        for above in () if node is None else node.upwards():
            # One around it may have begun to count the call.
            if above.run in self._asked and above.kind == "llm" and above.is_open:
                # The request of a call that was refused takes no other call's place.
                above.claimed = above.claimed or not above.refused
                return not above.refused
        for call in run.open_calls:
            if not (call.claimed or call.refused):
                call.claimed = True
                self._claimed = call
                return True
        return False


def prevent(run: Run, node: Node | None, *, above_only: bool = False) -> None:
    """Mark the model step, if one is open, that does not happen because its request is refused.

    With `above_only` none but those around the calling code are looked at.
    """
    for above in () if node is None else node.upwards():
        if above.is_open and not above.read:
            above.prevented = True  # it may show only at its end that it is the one
        elif above.is_open and above.refused:
            above.prevented = above.prevented or not above.claimed
            return
    if above_only:
        return
    for call in reversed(run.open_calls):
        # One that another request has made is no step of this one's.
        is_its = (call.refused and not call.claimed) or (call.awaits and not call.read)
        if is_its and not call.prevented:
            call.prevented = True
            return
    if node is not None:
        node.in_vain = True  # or it is one below that is not made current

"""May the model be asked, may this tool be called? What code that makes calls asks beforehand.

A model request that is let through here holds no place: the gate, or its span, counts it. A tool
call that is told of here is a step like one that a span shows; a span that shows it, too, is part
of it, or it of the span.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import msgspec
from opentelemetry.trace import SpanContext

from otel_loopguard.admission import REQUEST, prevent
from otel_loopguard.beginnings import Shown
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.hearing import Hearing
from otel_loopguard.misplaced import hang_below_call
from otel_loopguard.places import CALLS, TOLD
from otel_loopguard.request_runs import run_of
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

_IDS = random.SystemRandom()
"""Not the sequence that an application may have seeded."""


class ModelCheck:
    """Whether the model may be asked by the calling code, in the span of this id."""

    __slots__ = ("refused_by", "verdict")

    def __init__(self, tracker: RunTracker, span_id: int) -> None:
        self.verdict: Verdict | None = None
        """Set if the question itself opened the run or broke a limit."""
        self.refused_by: Run | None = None
        """The run that has tripped: the asking one, or one around it; `None` if it may."""
        with tracker.runs.lock:
            node = tracker.runs.spans.get(span_id)
            run, opened = run_of(tracker.runs, node, None)
            # Of loops that share a span, the request tells whose it is: the gate asks it.
            if run is not None and not run.has_sharers:
                run.places.are_asked_about = True
                self._decide(run, node, opened=opened)
        tracker.runs.tell()

    def _decide(self, run: Run, node: Node | None, *, opened: bool) -> None:
        hearing = Hearing(run)
        begun = _begun(hearing, node)
        if not begun and not hearing.is_stopped:
            hearing.ask(REQUEST if node is None else node.placed(REQUEST))
        self.refused_by = hearing.refuse_request(let_through=begun)
        if self.refused_by is not None:
            prevent(run, node, above_only=True)
        if opened or hearing.is_news:
            self.verdict = hearing.verdict(node, opened=opened)


def _begun(hearing: Hearing, node: Node | None) -> bool:
    """Say whether the span of the very model call is there, and was not refused."""
    for above in () if node is None else node.upwards():
        if above.kind == "llm" and above.is_open and above.run in hearing.runs:
            return not (above.refused or above.against)
    return False


class ToolCheck:
    """A tool call that the calling code, in this span, is about to make; `teller` tells of it.

    If a span shows the call already, that learns what it is called with. With `can_block` a call
    that is refused is not made. `named` is that of `RunTracker.started`.
    """

    __slots__ = ("_node", "_record", "_step", "_tracker", "verdict")

    def __init__(
        self,
        tracker: RunTracker,
        span: SpanContext,
        step: Step,
        named: Callable[[], str | None],
        teller: object,
        *,
        can_block: bool,
    ) -> None:
        self._tracker = tracker
        self._record = SpanRecord(
            name=f"execute_tool {step.name}",
            trace_id=span.trace_id,
            span_id=_IDS.getrandbits(64),
            parent_id=span.span_id if span.is_valid else None,
            parent_is_remote=span.is_remote,
            is_sampled=span.trace_flags.sampled,
            scope=TOLD,
            started_ns=time.time_ns(),
        )
        with tracker.runs.lock:
            self._node = tracker.runs.enter(self._record)
            hang_below_call(self._node, tracker.runs.spans, teller)
            self._step = msgspec.structs.replace(step, found_by=self._node.key)
            shown = Shown(self._step, self._record, None, can_block)
            self.verdict = tracker.begin(self._node, shown, named)
            """What the question meant for the run; a veto if the call is not to be made."""
            if self._node.part_of is not None:
                self.verdict = _learned(self._node.part_of, step, can_block=can_block)
        tracker.runs.tell()
        if self.refused_by is None:
            spans = tracker.runs.spans
            others = ((each, spans.get(each[0])) for each in CALLS.get())
            going_on = (each for each, call in others if call is None or call.is_open)
            CALLS.set((*going_on, (self._node.span_id, teller)))

    @property
    def refused_by(self) -> Run | None:
        """The run that refuses the call, be it one around its own; `None` if it may be made."""
        return None if self.verdict is None else self.verdict.vetoed_by

    def leave(self) -> None:
        """Hang nothing below the call any more that the calling code does."""
        own = self._node.span_id
        if any(span_id == own for span_id, _ in CALLS.get()):
            CALLS.set(tuple(each for each in CALLS.get() if each[0] != own))

    def came_back(self, result: object, error: str | None) -> Verdict | None:
        """Hear what the call has come to; one that was refused has come to nothing."""
        record = msgspec.structs.replace(self._record, ended_ns=time.time_ns())
        if self.refused_by is not None:
            result, error = UNKNOWN, None
        step = msgspec.structs.replace(self._step, result=result, error=error)
        tracker, node = self._tracker, self._node
        try:
            with tracker.runs.lock:
                return None if node.vetoed else tracker.finish(node, Shown(step, record, None))
        finally:
            left = tracker.leave(node)
            if left is not None:
                tracker.runs.over(*left)
            tracker.runs.tell()


def _learned(node: Node, step: Step, *, can_block: bool) -> Verdict | None:
    """Tell the run of a call that has a span, or that others tell of, what it is called with."""
    run = node.run
    if run is None or run.ended:
        return None
    hearing = Hearing(run)
    placed = node.placed(msgspec.structs.replace(step, span=node.key), timed=False)
    if not node.vetoed:
        node.vetoed = hearing.learn(placed, prevented=can_block, against=node.against)
        if node.vetoed:
            run.open_tools.pop(node, None)
    return hearing.verdict(node, placed, opened=False, vetoed=node.vetoed)

"""Which run a span belongs to: by its block, by what is above it, by its context, by ids."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import takewhile

from otel_loopguard.conversations import conversation_of
from otel_loopguard.decisions import RunReport
from otel_loopguard.joins import Key
from otel_loopguard.misplaced import ECHOES, caller_of
from otel_loopguard.open_runs import IDLE_S
from otel_loopguard.places import TOLD
from otel_loopguard.policy import Policy
from otel_loopguard.run_keeper import RunKeeper
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT, Slot
from otel_loopguard.span_tree import Node
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import UNKNOWN, ModelInput, Step
from otel_loopguard.told import is_one_of_many

_NANOSECONDS = 1e9


def _no_time() -> float:
    """Let no run grow old: what is recorded does so by its own time, see `RunFinder._joined`."""
    return 0.0


class RunFinder(RunKeeper):
    """The runs of one guard, and how each span finds its own.

    Args:
        policy: what each run's guard goes by.
        live: spans arrive as they happen, in the contexts of their runs.
        clock, on_closed: those of `RunTracker`.

    """

    def __init__(
        self,
        policy: Policy,
        *,
        live: bool,
        clock: Callable[[], float] = time.monotonic,
        on_closed: Callable[[Run, RunReport], object] | None = None,
    ) -> None:
        grow_old_by = clock if live else _no_time
        super().__init__(policy, clock=grow_old_by, run_clock=clock, on_closed=on_closed)
        self._live = live
        self.hears_in_context = True
        """Spans are told of in the contexts that they start in, not in those of other threads."""

    def place(self, node: Node, step: Step, record: SpanRecord) -> None:
        """Hang a span where it belongs, if its instrumentation hung it elsewhere."""
        if step.kind == "agent":
            belongs_to = caller_of(node, record)
        elif step.kind == "llm" and node.parent is None:
            context = self.in_context() if self._live else None
            belongs_to = self.unattached.leaf(context, may_stop=self._live)
        else:
            return
        if belongs_to is not None and belongs_to.run_above() is not None:
            node.hang_below(belongs_to)

    def find(
        self,
        node: Node,
        step: Step,
        record: SpanRecord,
        given: ModelInput | None,
        named: Callable[[], str | None],
    ) -> tuple[Run | None, bool]:
        """Return the run of a span that shows what it is, and whether it is opened by it.

        There is none yet for a model call that has started with nothing around it and nothing on it
        that says where it belongs: its end will. `given` is what is new in the call's input, and
        `named` tells which run the baggage names.
        """
        known, opened = self.explicit(node)
        if known is None:
            name = named()
            if name is None:
                known = self._around(node, step)
                if known is not None and known.has_sharers and self._is_begun(step, record):
                    known.guard.stir()
                    if record.scope not in ECHOES:
                        known.sharers.await_request(node)
                    return None, False  # its request tells which of the loops it is of
            else:
                known, opened = self._of_name(name, node, record)
        if known is not None:
            self.going.seen(known)
            return known, opened
        if step.kind != "agent" and (record.parent_id is None or record.parent_is_remote):
            return self._without_parent(node, step, record, given)
        return self._own(node, step), True

    def answered(self, run: Run, step: Step) -> None:
        """Take note of the ids in a model's answer, by which a later call may be found."""
        if run.kind == "explicit":
            return
        for call in () if step.tool_calls is UNKNOWN else step.tool_calls:
            if call.call_id and not is_one_of_many(call.call_id):
                self.joins.keep(("call", call.call_id), run)
        if step.response_id:
            self.joins.keep(("response", step.response_id), run)

    def explicit(self, node: Node | None) -> tuple[Run | None, bool]:
        """Return the run of the `guarded_run` around the calling code; say whether it is opened."""
        slot = CURRENT.get() if self._live else None
        if slot is None:
            return None, False
        with slot.lock:  # the block may be left on another thread at this moment
            return self._of_block(slot, node)

    def expected(self, node: Node | None) -> Run | None:
        """Return the run that a step of the calling code will be of, if that is open already."""
        slot = CURRENT.get() if self._live else None
        if slot is not None:
            with slot.lock:
                block = slot.going_on()
            if block is not None:
                return block.runs.get(self)
        return None if node is None else node.run_above()

    def _of_block(self, slot: Slot | None, node: Node | None) -> tuple[Run | None, bool]:
        block = None if slot is None else slot.going_on()
        if block is None or block.explicit_id is None:
            return None, False
        run, opened = block.runs.get(self), False
        if run is None:
            run, opened = self._opened(block, block.explicit_id, node), True
        if node is not None and (run.top is None or not run.top.is_open):
            run.top = _topmost(node, block.outside_id)
        return run, opened

    def _opened(self, block: Slot, run_id: str, node: Node | None) -> Run:
        outer, is_new = self._of_block(block.outer, node)
        if outer is not None:
            outer.is_new = outer.is_new or is_new
        conversation = None if node is None else node.conversation
        run = self.open("explicit", run_id, block, None, conversation=conversation, outer=outer)
        run.top = self.spans.get(block.span_id)
        run.agent = "" if node is None else node.agent
        return run

    def around(self, span_id: int) -> tuple[Run, ...]:
        """Return the runs that the calling code, in this span, is in: no trace's root is one."""
        with self.lock:
            node = self.spans.get(span_id)
            runs = (self.expected(node), self.in_context())
        return tuple(run for run in runs if run is not None and run.kind != "root")

    def at(self, span_id: int) -> Run | None:
        """Return the run that the calling code, in this span, is in, whatever opened it."""
        with self.lock:
            return self.expected(self.spans.get(span_id)) or self.in_context()

    def in_context(self) -> Run | None:
        """Return the run that the calling code belongs to by its context."""
        slot = CURRENT.get() if self.hears_in_context else None
        run = None if slot is None else slot.runs.get(self)
        if run is None or not run.is_abandoned:
            return run
        self.shut(run)
        return None

    def _is_begun(self, step: Step, record: SpanRecord) -> bool:
        return self._live and step.kind == "llm" and record.ended_ns is None

    def _around(self, node: Node, step: Step) -> Run | None:
        above = node.run_above()
        if above is not None and above.is_abandoned:
            self.shut(above)
            above = None
        if above is not None and (step.kind == "tool" or (node.awaits and node.run is None)):
            above = self._of_loop(above, step)
        if above is not None and above.kind != "root":
            return None if above.starts_over_at(node) else above
        if step.kind == "agent":
            return None
        context = self.in_context() if self._live else None
        if context is not None and context.kind != "root":
            return context
        return above or context

    def _of_loop(self, run: Run, step: Step) -> Run:
        """Return the run of a call that no request is made for, where loops share a span."""
        at_work = run.sharers.at_work
        if at_work is None and not run.sharers.have_told:
            return run
        named = self.joins.find([("call", step.call_id)]) if step.call_id else None
        return named or (run if at_work is None or at_work.ended else at_work)

    def _own(self, node: Node, step: Step) -> Run:
        """Open a run that its own span will end: the agent's, or the topmost one that is open."""
        root = node if step.kind == "agent" else node.local_root()
        run = self.open(
            "agent" if step.kind == "agent" else "root",
            f"{root.trace_id:032x}-{root.span_id:016x}",
            Slot(),
            root,
            at_s=None if self._live else step.started_s,
            conversation=node.conversation,
        )
        run.agent = node.agent or step.agent
        root.run = run
        if self._live and self.hears_in_context:
            CURRENT.set(run.slot)
        return run

    def _without_parent(
        self,
        node: Node,
        step: Step,
        record: SpanRecord,
        given: ModelInput | None,
    ) -> tuple[Run | None, bool]:
        """Return the run of a span with nothing around it: by ids, else its own."""
        conversation = conversation_of(record)
        known = self._joined(_keys(conversation, given, step), given, record)
        if known is not None:
            self._go_on(known, node, record)
            return known, False
        if self._is_begun(step, record):
            return None, False
        asks = step.tool_calls is not UNKNOWN and bool(step.tool_calls)
        if conversation is None and not (step.kind == "llm" and asks):
            return self._own(node, step), True
        run = self._held(f"{node.trace_id:032x}-{node.span_id:016x}", node, step, record)
        if conversation is not None:
            self.joins.keep(("conversation", conversation), run)
        return run, True

    def _joined(
        self, keys: Iterable[Key], given: ModelInput | None, record: SpanRecord
    ) -> Run | None:
        """Return the run that a span goes on with, unless that is over.

        It is over if nothing has happened for long, or if a person speaks after it has finished.
        """
        run = self.joins.find(keys)
        if run is None:
            return None
        silent_s = (record.started_ns - run.last_ns) / _NANOSECONDS
        is_over = run.guard.is_complete or run.trip is not None
        answered = is_over and given is not None and given.spoken
        if run.kind != "joined" or not (answered or silent_s >= IDLE_S):
            return run
        self.shut(run)
        return None

    def _of_name(self, name: str, node: Node, record: SpanRecord) -> tuple[Run, bool]:
        """Return the run that the baggage names."""
        known = self._joined([("run", name)], None, record)
        if known is not None:
            self._go_on(known, node, record)
            return known, False
        run = self._held(name, node, None, record)
        self.joins.keep(("run", name), run)
        return run, True

    def _held(self, run_id: str, node: Node, step: Step | None, record: SpanRecord) -> Run:
        """Open a run that is held together by ids."""
        at_s = None if self._live or not record.started_ns else record.started_ns / _NANOSECONDS
        conversation = node.conversation
        run = self.open("joined", run_id, Slot(), None, at_s=at_s, conversation=conversation)
        run.agent = node.agent or ("" if step is None else step.agent)
        self._go_on(run, node, record)
        return run

    def _go_on(self, run: Run, node: Node, record: SpanRecord) -> None:
        self.going.seen(run)
        if run.trip is None:  # one that goes on asking is not kept by that
            run.last_ns = max(run.last_ns, record.started_ns)
        if run.kind == "joined" and (run.top is None or not run.top.is_open):
            root = node.local_root()
            run.top = None if root.scope == TOLD else root


def _topmost(node: Node, outside_id: int) -> Node | None:
    """Return the topmost open span below that one, else this one; `None` if it is that one."""
    inside = takewhile(lambda above: above.span_id != outside_id, node.upwards())
    seen = (each for each in inside if each.scope != TOLD and not each.stands_in)
    return next(reversed([each for each in seen if each is node or each.is_open]), None)


def _keys(conversation: str | None, given: ModelInput | None, step: Step) -> list[Key]:
    """Return the ids that say what a span goes on with: its conversation's alone if it has one."""
    if conversation is not None:
        return [("conversation", conversation)]
    keys: list[Key] = [("call", step.call_id)] if step.call_id else []
    if given is not None:
        keys.extend(("call", answer.call_id) for answer in given.answers if answer.call_id)
        if given.previous_response_id:
            keys.append(("response", given.previous_response_id))
    return keys

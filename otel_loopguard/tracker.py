"""Spans to runs to decisions: which run a span belongs to, and what the run's guard says.

Live spans and recorded ones go through here alike. Nothing here has an effect outside: telemetry
and abort are the processor's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import msgspec

from otel_loopguard.conversations import Conversations, conversation_of
from otel_loopguard.decisions import Decision, RunReport
from otel_loopguard.detectors import COUNTED
from otel_loopguard.dialects import read_step
from otel_loopguard.forks import renew_in_children
from otel_loopguard.open_runs import OpenRuns
from otel_loopguard.policy import Policy
from otel_loopguard.runs import CURRENT, Run, RunKind, Slot, Verdict
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step, StepKind


class RunTracker:
    """Follows spans to their runs and asks each run's guard. Safe to call from many threads.

    Args:
        policy: what each run's guard goes by.
        live: spans arrive as they happen, in the contexts of their runs, and the guards go by their
            own clock. Otherwise they come from a record and bring their own time.
        prevented_kinds: the kinds of steps that do not happen when they are refused. Refused steps
            of other kinds are counted, because nothing keeps them from happening.
        on_closed: told of each run that ended otherwise than by a span.

    """

    def __init__(
        self,
        policy: Policy,
        *,
        live: bool = False,
        prevented_kinds: frozenset[StepKind] = frozenset(),
        on_closed: Callable[[Run, RunReport], object] | None = None,
    ) -> None:
        self.policy = policy
        self.lock = threading.RLock()
        self.spans = SpanTree(self._lost)
        self.conversations = Conversations()
        self._live = live
        self._prevented_kinds = prevented_kinds
        self._on_closed = on_closed
        self._runs = OpenRuns()
        self._converses = policy.settings.scope == "conversation"
        renew_in_children(self, "lock")

    def started(self, record: SpanRecord, live: object = None) -> Verdict | None:
        """Take in a span that starts; `live` is the span itself."""
        with self.lock:
            node = self.spans.enter(record, live)
            self._hear_conversation(node, record)
        step = read_step(record)
        if step is None:
            return None
        with self.lock:
            return self._begin(node, step, record.started_ns)

    def ended(self, record: SpanRecord) -> Verdict | None:
        """Take in a span that has ended."""
        node, verdict = self.spans.get(record.span_id), None
        if node is not None and not node.is_open:
            return None
        try:
            step = read_step(record)
            if step is not None:
                with self.lock:
                    node = self.spans.enter(record) if node is None else node
                    self._hear_conversation(node, record)
                    verdict = self._finish(node, step, record.started_ns)
        except Exception:
            ended = None if node is None else self._leave(node)
            if ended is not None and self._on_closed is not None:
                self._on_closed(*ended)
            raise
        ended = None if node is None else self._leave(node)
        if ended is None:
            return verdict
        if verdict is None:
            return Verdict(ended[0], node, report=ended[1])
        return msgspec.structs.replace(verdict, report=ended[1])

    def tick(self, run: Run, at_s: float | None = None) -> Verdict | None:
        """Ask what it means that nothing has happened in a run, as of `at_s` seconds.

        Returns `None` if it means nothing, or nothing new.
        """
        with self.lock:
            decision = run.guard.tick(at_s)
            if not decision.violations:
                return None
            span = decision.violations[0].span
            node = None if span is None else self.spans.get(span.span_id)
            trips = run.trips_by(decision)
            return Verdict(run, node, decision=decision, tripped=trips, timed=True)

    def open(
        self,
        kind: RunKind,
        run_id: str,
        slot: Slot,
        root: Node | None,
        *,
        at_s: float | None = None,
        conversation: str | None = None,
    ) -> Run:
        """Open a run and put it into the slot; `root` is the span that will end it."""
        with self.lock:
            run = Run(run_id, kind, self.policy, slot, self.conversations.carried(conversation))
            run.conversation = conversation
            run.guard.start(at_s)
            run.root = run.top = root
            for idle in self._runs.idle():
                self.close(idle)
            slot.runs[self] = run
            too_many = self._runs.add(run)
            if too_many is not None:
                self.close(too_many)
            return run

    def close(self, run: Run) -> RunReport:
        """End a run that no span ends, and return what became of it."""
        with self.lock:
            if run.final is not None:
                return run.final
            report = self._end(run)
        if self._on_closed is not None:
            self._on_closed(run, report)
        return report

    def explicit(self, node: Node | None) -> tuple[Run | None, bool]:
        """Return the run of the `guarded_run` around the calling code; say whether it is opened."""
        slot = CURRENT.get() if self._live else None
        if slot is None:
            return None, False
        with slot.lock:  # the block may be left on another thread at this moment
            if slot.explicit_id is None:
                return None, False
            run = slot.runs.get(self)
            if run is not None:
                return run, False
            conversation = None if node is None else node.conversation
            run = self.open("explicit", slot.explicit_id, slot, None, conversation=conversation)
        run.top = self.spans.get(slot.span_id)
        if node is not None:
            run.top, run.agent = run.top or node.local_root(), node.agent
        return run, True

    def in_context(self) -> Run | None:
        """Return the run that the calling code belongs to by its context."""
        slot = CURRENT.get()
        run = None if slot is None else slot.runs.get(self)
        if run is None or not run.is_abandoned:
            return run
        self.close(run)
        return None

    def open_runs(self) -> tuple[Run, ...]:
        """Return the runs that have not ended, oldest first."""
        with self.lock:
            return tuple(self._runs)

    def evicted(self) -> Mapping[str, int]:
        """Return how much was forgotten because a store was full, by store."""
        stores = {"spans": self.spans.evicted, "runs": self._runs.evicted}
        return stores | {"conversations": self.conversations.evicted} if self._converses else stores

    def _lost(self, node: Node) -> None:
        """End the run of a span whose end will not be known for it any more."""
        run = node.run
        if run is not None and run.root is node and not run.ended:
            self._runs.evicted += 1
            self.close(run)

    def _leave(self, node: Node) -> tuple[Run, RunReport] | None:
        """Close a span; return the run that ends with it, and what became of that."""
        with self.lock:
            self.spans.close(node)
            run = node.run
            if run is None or run.root is not node or run.ended:
                return None
            return run, self._end(run)

    def _end(self, run: Run) -> RunReport:
        run.slot.runs.pop(self, None)
        self._runs.remove(run)
        run.final, run.ended = run.report(), True
        self.conversations.keep(run.conversation, run.guard.carried())
        run.guard.reset()  # spans of the run are remembered for a while, its counters need not be
        return run.final

    def _begin(self, node: Node, step: Step, started_ns: int) -> Verdict:
        run, opened = self._join(node, step)
        if node.kind is None:
            return Verdict(run, node, opened=opened)
        placed = node.placed(step, timed=not self._live)
        prevented = step.kind in self._prevented_kinds
        went_on = run.trip is not None and step.kind in COUNTED
        if step.kind == "llm":
            run.keep_open(node)
            run.use_place(started_ns)
        if run.trip is not None and prevented:
            node.refused = True
            refused = Decision(allowed=False, step_count=0, refusal=run.trip)
            return Verdict(run, node, placed, refused, opened, went_on=went_on)
        decision = run.guard.check(placed, commit=not prevented, ahead=run.ahead)
        node.refused = prevented and not decision.allowed
        if not node.refused:
            run.steps_after_trip += went_on
        trips = run.trips_by(decision)
        return Verdict(run, node, placed, decision, opened, trips, went_on)

    def _finish(self, node: Node, step: Step, started_ns: int) -> Verdict | None:
        opened = False
        if node.run is not None:
            node.run.open_calls.pop(node, None)
        if node.prevented and step.kind == "llm":
            return None
        if not node.read:
            if step.kind == "agent":
                return None
            joined, opened = self._join(node, step)
            if node.kind == "llm":
                joined.use_place(started_ns)
        run = node.run
        if run is None or run.ended or node.kind is None:
            return None if run is None or not opened else Verdict(run, node, opened=True)
        run.steps_after_trip += node.refused
        run.escaped = run.escaped or node.refused
        placed = node.placed(step, timed=not self._live)
        decision = run.guard.record(placed)
        return Verdict(run, node, placed, decision, opened, run.trips_by(decision))

    def _join(self, node: Node, step: Step) -> tuple[Run, bool]:
        """Find or open the run of a span that shows what it is; say whether it was opened."""
        node.read = True
        if step.kind == "agent":
            node.invoke(step.name or step.agent)
        node.step_name = step.name
        explicit, opened = self.explicit(node)
        known = explicit or self._implicit(node, step)
        if known is not None:
            self._runs.seen(known)
            node.run = known
            node.kind = None if node.repeats_one_above(step) else step.kind
            return known, opened
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
        node.run = root.run = run
        node.kind = step.kind
        if self._live:
            CURRENT.set(run.slot)
        return run, True

    def _implicit(self, node: Node, step: Step) -> Run | None:
        above = node.run_above()
        if above is not None and above.is_abandoned:
            self.close(above)
            above = None
        if above is not None and above.kind != "root":
            return None if above.starts_over_at(node) else above
        if step.kind == "agent":
            return None
        context = self.in_context() if self._live else None
        if context is not None and context.kind != "root":
            return context
        return above or context

    def _hear_conversation(self, node: Node, record: SpanRecord) -> None:
        if self._converses:
            node.conversation = conversation_of(record) or node.conversation
            if node.run is not None and node.run.conversation is None:
                node.run.conversation = node.conversation

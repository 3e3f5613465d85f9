"""Spans to runs to decisions: which run a span belongs to, and what the run's guard says.

Live spans and recorded ones go through here alike. Nothing here has an effect outside: telemetry
and abort are the processor's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from otel_loopguard.beginnings import Shown, before, before_late, told
from otel_loopguard.decisions import RunReport
from otel_loopguard.dialects import Dialect, read_input, read_step
from otel_loopguard.hearing import Hearing
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.misplaced import hang_below_call, in_its_place, is_prevented
from otel_loopguard.places import CALLS
from otel_loopguard.policy import Policy
from otel_loopguard.run_finder import RunFinder
from otel_loopguard.runs import Run
from otel_loopguard.seen_twice import add_up, shown_by, waits_for_span
from otel_loopguard.span_tree import Node
from otel_loopguard.spanless_calls import SpanlessCalls
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step, StepKind
from otel_loopguard.verdicts import Verdict


def _no_name() -> str | None:
    return None


class RunTracker:
    """Follows spans to their runs and asks each run's guard. Safe to call from many threads.

    Args:
        policy: what each run's guard goes by.
        live: spans arrive as they happen, in the contexts of their runs, and the guards go by their
            own clock. Otherwise they come from a record and bring their own time.
        dialects: how spans are read; those installed and built in if `None`.
        prevented_kinds: the kinds of steps that do not happen when they are refused. Refused steps
            of other kinds are counted, because nothing keeps them from happening.
        vetoes: says whether a step whose span starts does not happen if it is refused there; if
            `None`, none is kept from happening that way.
        clock: seconds, for runs that happen now.
        on_closed: told of each run that ended otherwise than by a span; see `RunFinder`.

    """

    def __init__(
        self,
        policy: Policy,
        *,
        live: bool = False,
        dialects: Iterable[Dialect] | None = None,
        prevented_kinds: frozenset[StepKind] = frozenset(),
        vetoes: Callable[[SpanRecord, Step], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_closed: Callable[[Run, RunReport], object] | None = None,
    ) -> None:
        self.runs = RunFinder(policy, live=live, clock=clock, on_closed=on_closed)
        self._live = live
        self._dialects = chosen(dialects)
        self._prevented_kinds = prevented_kinds
        self._vetoes = vetoes

    def started(
        self,
        record: SpanRecord,
        live: object = None,
        named: Callable[[], str | None] = _no_name,
    ) -> Verdict | None:
        """Take in a span that starts; `live` is the span itself.

        `named` tells which run its baggage names; it is asked only if that may matter.
        """
        try:
            with self.runs.lock:
                if self.runs.spans.is_known(record):
                    return None  # the guard has been added twice
                node = self.runs.enter(record, live)
                if CALLS.get() and self.runs.hears_in_context:
                    hang_below_call(node, self.runs.spans)
            step = read_step(in_its_place(record, node), self._dialects)
            if step is None or node.vetoed:
                return None
            can_veto = self._vetoes is not None and self._vetoes(record, step)
            shown = Shown(step, record, self._given(node, step, record), can_veto)
            with self.runs.lock:
                return self.begin(node, shown, named)
        finally:
            self.runs.tell()

    def ended(self, record: SpanRecord) -> Verdict | None:
        """Take in a span that has ended."""
        try:
            return self._end(record)
        finally:
            self.runs.tell()

    def _end(self, record: SpanRecord) -> Verdict | None:
        node, verdict = self.runs.spans.get(record.span_id), None
        if node is not None and not node.is_open:
            return None
        try:
            step = read_step(in_its_place(record, node), self._dialects)
            if step is not None:
                shown = Shown(step, record, self._given(node, step, record))
                with self.runs.lock:
                    node = self._known(node, record)
                    verdict = None if node.vetoed else self.finish(node, shown)
        except Exception:
            left = None if node is None else self.leave(node)
            if left is not None:
                self.runs.over(*left)
            raise
        left = None if node is None else self.leave(node)
        if left is None:
            return verdict
        run, report = left
        if verdict is None:
            return Verdict(run, node, report=report)
        return msgspec.structs.replace(verdict, report=report)

    def tick(self, run: Run, at_s: float | None = None) -> Verdict | None:
        """Ask what it means that nothing has happened in a run, as of `at_s` seconds.

        Returns `None` if it means nothing, or nothing new.
        """
        with self.runs.lock:
            decision = run.guard.tick(at_s)
            if not decision.violations:
                return None
            span = decision.violations[0].span
            node = None if span is None else self.runs.spans.get(span.span_id)
            trips = run.trips_by(decision)
            return Verdict(run, node, decision=decision, tripped=trips, timed=True)

    def _given(self, node: Node | None, step: Step, record: SpanRecord) -> ModelInput | None:
        """Read what is new in a model call's input, where that matters; outside the lock."""
        if step.kind != "llm":
            return None
        if node is not None and node.read:
            matters = node.unsure  # else what it was told has been taken in at its start
        else:
            run = self.runs.expected(node)
            matters = run is None or run.waits_for_input
        return read_input(record, self._dialects) if matters else None

    def _known(self, node: Node | None, record: SpanRecord) -> Node:
        if node is None:
            return self.runs.enter(record)
        self.runs.hear_conversation(node, record)
        return node

    def leave(self, node: Node) -> tuple[Run, RunReport] | None:
        """Close a span; return the run that ends with it, and what became of that."""
        with self.runs.lock:
            run = self.runs.leave(node)
            return None if run is None else (run, self.runs.end(run))

    def _join(
        self, node: Node, shown: Shown, named: Callable[[], str | None]
    ) -> tuple[Run | None, bool]:
        """Find the run of a span that shows what it is; say whether it was opened.

        Its kind stays unknown if another span shows the same step already.
        """
        step, record, given, _ = shown
        self.runs.place(node, step, record)
        if step.kind == "agent":
            node.invoke(step.name or step.agent)
        node.step_name, node.call_id = step.name, step.call_id
        waiting = node.awaiting() if step.kind == "llm" else None
        if waiting is not None:
            node.read, node.part_of = True, waiting
            return None, False
        run, opened = self.runs.find(node, step, record, given, named)
        if run is None:
            node.awaits = True
            return None, False
        node.read, node.run = True, run
        node.part_of = shown_by(node, step, record, run)
        if node.part_of is None:
            node.kind = step.kind
            node.mark_above()
        elif step.kind == "agent":
            node.hang_below(node.part_of)
        elif waits_for_span(node.part_of):
            node.part_of.claimed = True
        return run, opened

    def begin(self, node: Node, shown: Shown, named: Callable[[], str | None]) -> Verdict | None:
        """Take in what shows what it is and begins; in the lock. `named` is that of `started`."""
        step, record = shown.step, shown.record
        run, opened = self._join(node, shown, named)
        if run is None:
            return None
        hearing = Hearing(run)
        if node.kind is None:
            return hearing.verdict(node, opened=opened)
        asides, begun = before(hearing, node, shown, timed=not self._live)
        placed = node.placed(begun, timed=not self._live)
        if step.kind == "llm":
            # A call that a request has made waits for none: no other request takes its place.
            node.claimed = hearing.give_up_place(record.started_ns)
        prevented = shown.can_veto or step.kind in self._prevented_kinds
        node.refused = hearing.begin(placed, prevented=prevented)
        hearing.settle(placed, self.runs.totals, over=False)
        node.vetoed = shown.can_veto and node.refused
        node.against = hearing.is_stopped
        if step.kind in {"llm", "tool"} and not node.vetoed:
            run.keep_open(node)
        verdict = hearing.verdict(node, placed, opened=opened, vetoed=node.vetoed)
        return asides.with_them(verdict)

    def finish(self, node: Node, shown: Shown) -> Verdict | None:
        """Take in what has ended, and all that it shows then; in the lock."""
        step, record = shown.step, shown.record
        opened, is_late = False, not node.read
        if node.run is not None:
            node.run.has_come_back(node, step, record.ended_ns or 0)
        if is_prevented(node, step) or (is_late and step.kind == "agent"):
            return None
        if is_late and (node.run is None or not node.run.ended):
            _, opened = self._join(node, shown, _no_name)
        run = node.run
        if run is not None and run.ended and node.kind is not None:
            return self._outlived(run, node, step, record)
        if run is None or node.kind is None:
            if node.part_of is not None:
                node.part_of.told = add_up(node.part_of, step)
            return None if run is None or not opened else Hearing(run).verdict(node, opened=True)
        hearing = Hearing(run)
        if is_late:
            asides, known = before_late(hearing, node, shown, timed=not self._live)
        else:
            asides, known = SpanlessCalls(hearing), step
            if node.unsure:
                ended_s = None if self._live else step.ended_s
                known = told(run, node, shown, asides, ended_s)
        whole = add_up(node, known)
        placed = node.placed(whole, timed=not self._live)
        run.gaps.take(placed)
        hearing.record(placed, started_ns=record.started_ns, refused=node.refused, is_late=is_late)
        # Most tool calls have nothing to add: they were counted when they began.
        spends = placed.input_tokens or placed.output_tokens or placed.cost_usd
        if spends or is_late or node.refused or step.kind != "tool" or hearing.is_behind:
            self._settle(hearing, node, placed)
        return asides.with_them(hearing.verdict(node, placed, opened=opened))

    def _settle(self, hearing: Hearing, node: Node, placed: Step) -> None:
        """Take note of what a step that has come back took, and of what a model asks for."""
        hearing.settle(placed, self.runs.totals, over=True)
        if placed.kind == "llm":
            hearing.run.requested.ask(node, placed)
            self.runs.answered(hearing.run, placed)

    def _outlived(self, run: Run, node: Node, step: Step, record: SpanRecord) -> Verdict | None:
        """Tell the runs around one that is over what came out of a step that has outlived it."""
        hearing = Hearing(run)
        if not hearing.runs:
            return None
        placed = node.placed(add_up(node, step), timed=not self._live)
        hearing.record(placed, started_ns=record.started_ns, refused=node.refused)
        hearing.settle(placed, self.runs.totals, over=True)
        return hearing.verdict(node, placed, opened=False)

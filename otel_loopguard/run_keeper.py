"""The runs of one guard and the spans that lead to them: opened, told of, ended. Bounded."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from otel_loopguard.agent_totals import AgentTotals
from otel_loopguard.bounded_names import BoundedNames
from otel_loopguard.conversations import Conversations, conversation_of
from otel_loopguard.decisions import NOTHING_TAKEN, RunReport
from otel_loopguard.forks import in_children
from otel_loopguard.going_on import GoingOn
from otel_loopguard.guard import LoopGuard
from otel_loopguard.joins import Joins
from otel_loopguard.misplaced import Unattached
from otel_loopguard.open_runs import OpenRuns
from otel_loopguard.policy import Policy
from otel_loopguard.runs import Run, RunKind
from otel_loopguard.slots import Slot
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord


class RunKeeper:
    """The runs of one guard, and the spans that lead to them.

    Args:
        policy: what each run's guard goes by, until `go_by` names another.
        clock: seconds, by which runs that no span ends grow old.
        run_clock: that of the runs' guards.
        on_closed: told of each run that ended otherwise than by a span.

    """

    def __init__(
        self,
        policy: Policy,
        *,
        clock: Callable[[], float],
        run_clock: Callable[[], float] = time.monotonic,
        on_closed: Callable[[Run, RunReport], object] | None = None,
    ) -> None:
        self.policy = policy
        """What runs go by that begin now."""
        self.lock = threading.RLock()
        self.spans = SpanTree(self._lost)
        self._clock = clock
        self.run_clock = run_clock
        """Seconds, as the runs' guards go by them."""
        self.going = OpenRuns(clock)
        """The runs that have not ended."""
        self.joins = Joins()
        """The ids by which runs are found again."""
        self.unattached = Unattached()
        """Open spans that their instrumentation does not make current."""
        self._conversations = Conversations()
        self._converses = policy.settings.scope == "conversation"
        """Limits are held against conversations, or once were."""
        self._on_closed = on_closed
        self._untold: deque[tuple[Run, RunReport]] = deque()
        self.agents = BoundedNames()
        """What agents are called that have runs, or have broken rules."""
        self.totals = AgentTotals(BoundedNames())
        """What the runs of this process have taken so far, by them and by their sub-agents."""
        in_children(self, RunKeeper._leave_to_parent)

    def go_by(self, policy: Policy) -> None:
        """Let the runs that begin from here on go by a policy; those that go on keep theirs."""
        with self.lock:
            self.policy = policy
            self._converses = self._converses or policy.settings.scope == "conversation"

    def enter(self, record: SpanRecord, live: object = None) -> Node:
        """Take in a span that was not known."""
        node = self.spans.enter(record, live)
        self.unattached.started(node, record)
        self.hear_conversation(node, record)
        return node

    def hear_conversation(self, node: Node, record: SpanRecord) -> None:
        """Read which conversation a span belongs to, where limits are held against those."""
        if self._converses:
            node.conversation = conversation_of(record) or node.conversation
            if node.run is not None and node.run.conversation is None:
                node.run.conversation = node.conversation

    def leave(self, node: Node) -> Run | None:
        """Close a span; return the run that ends with it."""
        self.spans.close(node)
        self.unattached.ended(node)
        run = node.run
        return None if run is None or run.root is not node or run.ended else run

    def open(
        self,
        kind: RunKind,
        run_id: str,
        slot: Slot,
        root: Node | None,
        *,
        at_s: float | None = None,
        conversation: str | None = None,
        outer: Run | None = None,
    ) -> Run:
        """Open a run and put it into the slot; `root` is the span that will end it.

        One that has limits of its own, or counts for an `outer` one, has its totals to itself.
        """
        with self.lock:
            policy = self.policy
            converses = policy.settings.scope == "conversation"
            carried = self._conversations.carried(conversation) if converses else None
            if slot.limits or (converses and outer is not None):
                alone = {"scope": "run"} if converses else {}
                policy = Policy.from_mapping({"limits": slot.limits, **alone}, base=policy)
                carried = None
            guard = LoopGuard(policy, clock=self.run_clock, carried=carried)
            guard.is_asked_by_loop = False
            run = Run(run_id, kind, guard, slot)
            run.conversation, run.outer = conversation, outer
            run.guard.start(at_s)
            run.root = run.top = root
            for idle in self.going.idle():
                self.shut(idle)
            slot.runs[self] = run
            too_many = self.going.add(run)
            if too_many is not None:
                self.shut(too_many)
            return run

    def close(self, run: Run) -> RunReport:
        """End a run that no span ends, tell of it, and return what became of it."""
        with self.lock:
            report = self.shut(run)
        self.tell()
        return report

    def tell(self) -> None:
        """Tell of the runs that have ended otherwise than by a span. Never called in the lock."""
        while self._untold:
            try:
                run, report = self._untold.popleft()
            except IndexError:  # another thread was faster
                return
            if self._on_closed is not None:
                self._on_closed(run, report)

    def over(self, run: Run, report: RunReport) -> None:
        """Take note that a run has ended of which no verdict tells."""
        self._untold.append((run, report))

    def end(self, run: Run) -> RunReport:
        """End a run, and return what became of it."""
        left = run.requested.left()
        for each in (run, *run.around()):
            each.guard.called_unseen(left)
        run.gaps.tool_span = run.requested.without_spans
        for heir in run.sharers.heirs():
            self.shut(heir)
        run.slot.runs.pop(self, None)
        self.going.remove(run)
        run.final, run.ended = run.report(), True
        self._conversations.keep(run.conversation, run.guard.carried())
        # Spans of the run are remembered for a while, what was known of it need not be.
        run.guard.reset()
        run.forget()
        return run.final

    def open_runs(self) -> tuple[Run, ...]:
        """Return the runs that have not ended, oldest first."""
        with self.lock:
            return tuple(self.going)

    def going_on(self) -> list[GoingOn]:
        """Return what metrics tell of the runs that have not ended; on any thread.

        Of those that are over, although nobody has ended them, nothing is told.
        """
        with self.lock:
            # They are ended when the next run opens, which may be never.
            idle = set(self.going.idle())
            runs = [run for run in self.going if run not in idle]
        # What is read from here on are single numbers: runs may go on meanwhile.
        now_s, found = self.run_clock(), list[GoingOn]()
        for run in runs:
            taken = run.guard.taken()
            if not (run.ended or run.is_abandoned) and taken is not NOTHING_TAKEN:
                started_s, steps, _, _, cost_usd = taken
                agent, tripped = self.agents.of(run.agent), run.trip is not None
                age_s = max(0.0, now_s - started_s)
                found.append(GoingOn(agent, tripped, age_s, steps, cost_usd))
        return found

    def evicted(self) -> dict[str, int]:
        """Return how much was forgotten because a store was full, by store."""
        stores = {
            "spans": self.spans.evicted,
            "runs": self.going.evicted,
            "ids": self.joins.evicted,
        }
        return stores | ({"conversations": self._conversations.evicted} if self._converses else {})

    def shut(self, run: Run) -> RunReport:
        """End a run; what is to be told of it is told outside the lock."""
        if run.final is not None:
            return run.final
        report = self.end(run)
        self.over(run, report)
        return report

    def _leave_to_parent(self) -> None:
        """Begin anew in a forked child: runs that go on do so in the parent process."""
        self.lock = threading.RLock()
        for run in self.going:
            run.ended = True
            run.slot.runs.pop(self, None)
        self._untold.clear()
        self.totals.clear()
        self.spans.leave_to_parent()
        self.going, self.joins = OpenRuns(self._clock), Joins()
        self.unattached = Unattached()

    def _lost(self, node: Node) -> None:
        """End the run of a span whose end will not be known for it any more."""
        run = node.run
        if run is not None and run.root is node and not run.ended:
            self.going.evicted += 1
            self.shut(run)

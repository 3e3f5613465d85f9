"""Runs: what a budget applies to, and how code finds the one that it belongs to."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from otel_loopguard.decisions import NOTHING_TAKEN, Decision, RunReport, Violation
from otel_loopguard.gaps import Gaps
from otel_loopguard.guard import LoopGuard
from otel_loopguard.hints import Hints
from otel_loopguard.places import Places
from otel_loopguard.requested_calls import RequestedCalls
from otel_loopguard.sharers import Sharers
from otel_loopguard.slots import Slot
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step
from otel_loopguard.told import Told
from otel_loopguard.trips import NOT_TRIPPED, Tripped

OPEN_CALLS = 128
"""Open spans of model calls, and of tool calls, that a run knows; past that the oldest is
forgotten."""

RESPONSES = 64
"""Answers of models that a run knows by the ids that the providers gave them."""

RunKind: TypeAlias = Literal["explicit", "agent", "root", "joined"]
"""Opened by `guarded_run`, by an agent's span, by the topmost span around a step, or by one that
has nothing around it and is held together with others by ids: no span ends that."""


class Answer(NamedTuple):
    """An answer of a model: the span that shows it, and when that ended."""

    node: Node
    ended_ns: int


class Run:
    """One run of an agent, as this process sees it."""

    __slots__ = (
        "agent",
        "attempts",
        "conversation",
        "counted_steps",
        "ended",
        "escaped",
        "final",
        "gaps",
        "guard",
        "heard",
        "hints",
        "id",
        "is_new",
        "is_timed",
        "kind",
        "last_ns",
        "open_calls",
        "open_tools",
        "outcomes",
        "outer",
        "places",
        "refused_by",
        "refused_requests",
        "requested",
        "responses",
        "root",
        "sharers",
        "slot",
        "started_over",
        "steps_after_trip",
        "taken",
        "top",
        "trip",
        "tripped",
        "unheard",
        "vetoed_calls",
        "vetoed_steps",
    )

    def __init__(self, run_id: str, kind: RunKind, guard: LoopGuard, slot: Slot) -> None:
        self.id, self.kind = run_id, kind
        self.guard = guard
        self.is_timed = guard.policy.settings.is_timed
        """Whether a limit on time may be reached while nothing happens."""
        self.slot = slot
        self.outer: Run | None = None
        """The run around it: that of the `guarded_run` that its own is inside of."""
        self.is_new = False
        """It was opened for the sake of one inside it, and nobody has been told of that."""
        self.agent = ""
        self.conversation: str | None = None
        """The conversation that the run belongs to, where limits are held against those."""
        self.root: Node | None = None
        """The span whose end ends the run; a `guarded_run` ends with its block instead."""
        self.top: Node | None = None
        """The topmost span of the run: what is known about the run is written on it."""
        self.trip: Violation | None = None
        """The first violation whose action is abort."""
        self.tripped = NOT_TRIPPED
        """When it tripped, and what stopping it is called."""
        self.heard = self.escaped = False
        """An abort hook came back; a model call ran although refused: no gate is at its client."""
        self.attempts = 0
        """How often abort hooks have been asked."""
        self.outcomes: set[tuple[str, str]] = set()
        """What has become of the built-in stops: which one, and `asked` or how."""
        self.unheard: tuple[object, ...] = ()
        """Abort hooks that failed, to be asked again while steps still start."""
        self.steps_after_trip, self.started_over, self.ended = 0, False, False
        self.refused_requests = self.vetoed_steps = self.vetoed_calls = 0
        """Model requests that did not leave; steps that were kept from happening where their spans
        start, and those of them that would have asked a model."""
        self.refused_by: Run | None = None
        """The run around it whose trip has refused a request, or a step, of this one."""
        self.places = Places()
        """Model requests that are on their way."""
        self.open_calls: dict[Node, None] = {}
        """Open spans of model calls, oldest first."""
        self.open_tools: dict[Node, None] = {}
        """Open spans of tool calls, oldest first."""
        self.requested = RequestedCalls()
        """Tool calls that models have asked for and that no span has shown."""
        # The last two: its steps, and what they took, that stand in the totals of the agents.
        self.gaps, self.hints, self.counted_steps, self.taken = Gaps(), Hints(), 0, NOTHING_TAKEN
        self.responses: dict[str, Answer] = {}
        """The answers of the last model calls, by their ids."""
        self.sharers = Sharers()
        """The loops below a span of the application, told apart by their requests."""
        self.last_ns = 0
        """When the latest span started that was joined, in nanoseconds of the wall clock."""
        self.final: RunReport | None = None
        """What became of the run, once it has ended."""

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody can end the run any more: its span was never ended, and is gone."""
        root = self.root
        return root is not None and root.is_lost

    @property
    def waits_for_input(self) -> bool:
        """Whether it matters what the next model call is told: calls wait, or it has finished."""
        return bool(self.requested) or self.guard.is_complete

    @property
    def is_rootless(self) -> bool:
        """Whether perhaps no span will end the run: its topmost one was not seen to start."""
        return self.kind == "joined" or (self.root is not None and self.root.stands_in)

    @property
    def ahead(self) -> int:
        """How many model requests were let through and have not become steps."""
        return self.places.ahead

    @property
    def has_refused_calls(self) -> bool:
        """Whether it has been kept from asking a model."""
        return self.refused_requests > 0 or self.vetoed_calls > 0

    @property
    def is_stopped_by_us(self) -> bool:
        """Whether a built-in stop has reached the run, be it that of one around it."""
        return self.refused_by is not None or any(run.is_reached for run in self._stoppers)

    @property
    def stopped_by(self) -> Run | None:
        """The run whose stop keeps this one from ending by itself: it, or one around it.

        What a hook did nobody knows: it may have told somebody, no more. It counts as a stop if
        nothing has started since.
        """
        for run in self._stoppers:
            if run.is_reached or (run.heard and not run.steps_after_trip):
                return run
        return self.refused_by

    @property
    def _stoppers(self) -> tuple[Run, ...]:
        return (self, *(run for run in self.around() if not run.gives_way))

    @property
    def is_reached(self) -> bool:
        """Whether a built-in stop has reached this very run."""
        return any(result == "ok" for _, result in self.outcomes)

    def around(self) -> tuple[Run, ...]:
        """Return the runs around it that have not ended, nearest first; let go of the others."""
        found: list[Run] = []
        run = self
        while (outer := run.outer) is not None:
            if outer.ended:
                run.outer = outer.outer
            else:
                found.append(outer)
                run = outer
        return tuple(found)

    def starts_over_at(self, node: Node) -> bool:
        """Say whether a span is the next run of a framework that left this one's span open.

        Some do when a run of theirs is refused. It happens once: the run after that hangs below the
        next span that was left open.
        """
        root = self.root
        starts = (
            (self.refused_requests > 0 or self.vetoed_steps > 0)
            and not self.started_over
            and root is not None
            and node.parent is root
            and node.name == root.name
        )
        self.started_over = self.started_over or starts
        return starts

    def trips_by(self, decision: Decision, step: Step | None = None) -> bool:
        """Take a decision on a step; say whether it says stop first, or after a pattern a limit."""
        refusal, before = decision.refusal, self.trip
        if refusal is None or (before and (refusal.is_pattern or not self.gives_way)):
            return False
        self.trip = refusal
        call_ids = () if step is None else step.call_ids
        self.tripped = Tripped.now(self.guard.stats().duration_s, call_ids)
        return True

    @property
    def gives_way(self) -> bool:
        """Whether other loops below its span go on, although it has tripped."""
        trip = self.trip
        return trip is not None and trip.is_pattern and self.sharers.have_told

    @property
    def has_sharers(self) -> bool:
        """Whether there may be other loops below its span than its own."""
        return self.sharers.are_several or self.gives_way

    def goes_on_with(self, told: Told) -> bool:
        """Say whether a request is of this run; until it trips, one that tells of no call is."""
        trip = self.trip
        if trip is None:
            return self.sharers.take(told)
        return self.sharers.is_meant(trip, self.tripped.call_ids, told)

    def due_s(self) -> float | None:
        """Return when a limit on time is reached if nothing happens; `None` for never."""
        # Where nobody ends the run, silence may be all that there is of its end.
        silent = self.ended or self.is_rootless or self.is_abandoned
        return None if silent else self.guard.due_s()

    def keep_open(self, node: Node) -> None:
        """Remember a call's span while it is open."""
        calls = self.open_tools if node.kind == "tool" else self.open_calls
        calls[node] = None
        if len(calls) > OPEN_CALLS:
            del calls[next(iter(calls))]

    def has_come_back(self, node: Node, step: Step, ended_ns: int) -> None:
        """Take note that a call's span has ended."""
        self.open_calls.pop(node, None)
        self.open_tools.pop(node, None)
        if step.kind == "llm":  # its request may have been made before anything was known of it
            self.sharers.have_asked = True
        if step.response_id:
            self.responses[step.response_id] = Answer(node, ended_ns)
            if len(self.responses) > RESPONSES:
                del self.responses[next(iter(self.responses))]

    def forget(self) -> None:
        """Let go of the spans that the run has known: it has ended."""
        self.open_calls.clear()
        self.open_tools.clear()
        self.responses.clear()
        self.requested, self.sharers = RequestedCalls(), Sharers()

    def report(self) -> RunReport:
        """Return what has become of the run so far; `aborted` if a stop reached it unfinished."""
        if self.final is not None:
            report, unseen = self.final, 0
        else:
            report, unseen = self.guard.report(), self.places.unseen
        stopper = None if report.status == "complete" else self.stopped_by
        outer = None if stopper is None or stopper is self else stopper.id
        return msgspec.structs.replace(
            report,
            status=report.status if stopper is None else "aborted",
            stopped_with=report.stopped_with or outer,
            steps=report.steps + unseen,
            model_calls=report.model_calls + unseen,
            steps_after_trip=self.steps_after_trip,
            after_trip_s=max(0.0, report.duration_s - self.tripped.run_s),
        )

"""Runs: what a budget applies to, and how code finds the one that it belongs to."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Literal, Protocol, TypeAlias

import msgspec

from otel_loopguard.decisions import Decision, RunReport, Violation
from otel_loopguard.engine.rule_sets import Carried
from otel_loopguard.forks import renew_in_children
from otel_loopguard.gaps import Gaps
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.requested_calls import RequestedCalls
from otel_loopguard.span_tree import Answer, Node
from otel_loopguard.steps import Step
from otel_loopguard.trips import NOT_TRIPPED, Tripped

OPEN_CALLS = 128
"""Open spans of model calls, and of tool calls, that a run knows; past that the oldest is
forgotten."""

RESPONSES = 64
"""Answers of models that a run knows by the ids that the providers gave them."""

RunKind: TypeAlias = Literal["explicit", "agent", "root", "joined"]
"""Opened by `guarded_run`, by an agent's span, by the topmost span around a step, or by one that
has nothing around it and is held together with others by ids: no span ends that."""


class Cancellable(Protocol):
    """A task that can be asked to end, from any thread."""

    def cancel(self, wanted: Callable[[], bool], delivered: Callable[[], object]) -> bool:
        """Ask it to end, if that is `wanted` when it can hear; say whether it can be asked."""
        ...


class RunCloser(Protocol):
    """Ends runs that no span ends."""

    def close(self, run: Run) -> RunReport:
        """End a run and return what became of it."""
        ...


class Slot:
    """What the context variable holds. Contexts are copied, the slot in them is shared.

    Emptying it when a run ends therefore reaches every copy of the context.
    """

    __slots__ = ("explicit_id", "runs", "span_id", "task")

    lock = threading.RLock()
    """Held while a run is put into the slot of a `guarded_run`, and while that is left."""

    def __init__(self, explicit_id: str | None = None) -> None:
        self.explicit_id = explicit_id
        """The id of the `guarded_run` that made the slot; `None` once that is over."""
        self.span_id = 0
        """The span that was current when the `guarded_run` began; 0 if there was none."""
        self.runs: dict[RunCloser, Run] = {}
        """The run in each tracker that has one here."""
        self.task: Cancellable | None = None
        """The task in which the run began."""


renew_in_children(Slot, "lock")  # one for all: a fork finds every slot in some context

CURRENT: ContextVar[Slot | None] = ContextVar("loopguard_run", default=None)
"""The run that the code running in this context belongs to."""

REQUESTS: ContextVar[tuple[object, ...]] = ContextVar("loopguard_requests", default=())
"""The model requests, one for each guard, that code running in this context is about to make."""


class Run:
    """One run of an agent, as this process sees it."""

    __slots__ = (
        "agent",
        "attempts",
        "conversation",
        "ended",
        "escaped",
        "final",
        "gaps",
        "guard",
        "heard",
        "id",
        "kind",
        "last_ns",
        "open_calls",
        "open_tools",
        "outcomes",
        "places",
        "refused_requests",
        "requested",
        "responses",
        "root",
        "slot",
        "started_over",
        "steps_after_trip",
        "top",
        "trip",
        "tripped",
        "unheard",
        "unseen",
        "unseen_ns",
    )

    def __init__(
        self,
        run_id: str,
        kind: RunKind,
        policy: Policy,
        slot: Slot,
        carried: Carried | None = None,
    ) -> None:
        self.id = run_id
        self.kind = kind
        self.guard = LoopGuard(policy, carried=carried)
        self.slot = slot
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
        self.heard = False
        """An abort hook was called, and came back."""
        self.attempts = 0
        """How often abort hooks have been asked."""
        self.outcomes: set[tuple[str, str]] = set()
        """What has become of the built-in stops: which one, and `asked` or how."""
        self.unheard: tuple[object, ...] = ()
        """Abort hooks that failed, to be asked again while steps still start."""
        self.steps_after_trip = 0
        self.started_over = False
        self.escaped = False
        """A model call ran although it was refused: its client is not one that the gate knows."""
        self.refused_requests = 0
        self.places: OrderedDict[object, int] = OrderedDict()
        """Model requests that are on their way and have not become steps, oldest first, each with
        the time at which it was let through, in nanoseconds of the wall clock as spans have it."""
        self.unseen = 0
        """Model requests that came back and have not become steps."""
        self.unseen_ns = 0
        """When the latest of those was let through."""
        self.open_calls: dict[Node, None] = {}
        """Open spans of model calls, oldest first."""
        self.open_tools: dict[Node, None] = {}
        """Open spans of tool calls, oldest first."""
        self.requested = RequestedCalls()
        """Tool calls that models have asked for and that no span has shown."""
        self.gaps = Gaps()
        self.responses: dict[str, Answer] = {}
        """The answers of the last model calls, by their ids."""
        self.last_ns = 0
        """When the latest span started that was joined, in nanoseconds of the wall clock."""
        self.ended = False
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
    def is_stopped_by_us(self) -> bool:
        """Whether a built-in stop has reached the run."""
        return any(result == "ok" for _, result in self.outcomes)

    @property
    def stopped(self) -> bool:
        """Whether the run does not end by itself.

        What a hook did nobody knows: it may have told somebody, no more. It counts as a stop if
        nothing has started since.
        """
        return self.is_stopped_by_us or (self.heard and not self.steps_after_trip)

    @property
    def ahead(self) -> int:
        """How many model requests were let through and have not become steps."""
        return len(self.places) + self.unseen

    def use_place(self, started_ns: int) -> None:
        """Give up the place of the request that a model call's span belongs to, if it holds one.

        That is the request in which the span started, else one made while the span was there.
        """
        own = next((request for request in REQUESTS.get() if request in self.places), None)
        if own is None and self.unseen and started_ns <= self.unseen_ns:
            self.unseen -= 1
            return
        if own is None:
            own = next((each for each, at_ns in self.places.items() if started_ns <= at_ns), None)
        if own is not None:
            del self.places[own]

    def starts_over_at(self, node: Node) -> bool:
        """Say whether a span is the next run of a framework that left this one's span open.

        Some do when a run of theirs is refused. It happens once: the run after that hangs below the
        next span that was left open.
        """
        root = self.root
        starts = (
            self.refused_requests > 0
            and not self.started_over
            and root is not None
            and node.parent is root
            and node.name == root.name
        )
        self.started_over = self.started_over or starts
        return starts

    def trips_by(self, decision: Decision) -> bool:
        """Take a decision; say whether it is the first one that says stop."""
        if decision.refusal is None or self.trip is not None:
            return False
        self.trip = decision.refusal
        self.tripped = Tripped.now(self.guard.stats().duration_s)
        return True

    def due_s(self) -> float | None:
        """Return when a limit on time is reached if nothing happens; `None` for never.

        Where nobody ends the run, silence may be all that there is of its end.
        """
        silent = self.ended or self.is_rootless or self.is_abandoned
        return None if silent else self.guard.due_s()

    def keep_open(self, node: Node) -> None:
        """Remember a call's span while it is open."""
        calls = self.open_calls if node.kind == "llm" else self.open_tools
        calls[node] = None
        if len(calls) > OPEN_CALLS:
            del calls[next(iter(calls))]

    def delegate(self, node: Node) -> None:
        """Take note that the tool call around an agent, or around another tool, runs an agent."""
        caller = node.counted_above()
        if caller is not None and caller.kind == "tool" and not caller.delegates:
            caller.delegates = True
            self.guard.delegated()

    def has_come_back(self, node: Node, step: Step, ended_ns: int) -> None:
        """Take note that a call's span has ended."""
        self.open_calls.pop(node, None)
        self.open_tools.pop(node, None)
        if step.response_id:
            self.responses[step.response_id] = Answer(node, ended_ns)
            if len(self.responses) > RESPONSES:
                del self.responses[next(iter(self.responses))]

    def forget(self) -> None:
        """Let go of the spans that the run has known: it has ended."""
        self.open_calls.clear()
        self.open_tools.clear()
        self.responses.clear()
        self.requested = RequestedCalls()

    def report(self) -> RunReport:
        """Return what has become of the run so far; `aborted` if a stop reached it unfinished."""
        report = self.guard.report() if self.final is None else self.final
        unseen = self.unseen if self.final is None else 0
        stopped = self.stopped and report.status != "complete"
        return msgspec.structs.replace(
            report,
            status="aborted" if stopped else report.status,
            steps=report.steps + unseen,
            model_calls=report.model_calls + unseen,
            steps_after_trip=self.steps_after_trip,
            after_trip_s=max(0.0, report.duration_s - self.tripped.run_s),
        )

"""Runs: what a budget applies to, and how code finds the one that it belongs to."""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from typing import Literal, Protocol, TypeAlias

import msgspec

from otel_loopguard.decisions import Decision, RunReport, Violation
from otel_loopguard.endings import ending_of
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step

RunKind: TypeAlias = Literal["explicit", "agent", "root"]
"""Opened by `guarded_run`, by an agent's span, or by the topmost span around a step."""


class Cancellable(Protocol):
    """A task that can be asked to end, from any thread."""

    cancelled: bool

    def cancel(self) -> bool:
        """Ask it to end; say whether it can be asked."""
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

    __slots__ = ("explicit_id", "runs", "task")

    def __init__(self, explicit_id: str | None = None) -> None:
        self.explicit_id = explicit_id
        """The id of the `guarded_run` that made the slot; `None` once that is over."""
        self.runs: dict[RunCloser, Run] = {}
        """The run in each tracker that has one here."""
        self.task: Cancellable | None = None
        """The task in which the run began."""


CURRENT: ContextVar[Slot | None] = ContextVar("loopguard_run", default=None)
"""The run that the code running in this context belongs to."""


class Run:
    """One run of an agent, as this process sees it."""

    __slots__ = (
        "agent",
        "ended",
        "guard",
        "id",
        "kind",
        "open_calls",
        "places",
        "refused_requests",
        "root",
        "slot",
        "steps_after_trip",
        "stopped",
        "top",
        "trip",
        "tripped_s",
        "unheard",
    )

    def __init__(self, run_id: str, kind: RunKind, policy: Policy, slot: Slot) -> None:
        self.id = run_id
        self.kind = kind
        self.guard = LoopGuard(policy)
        self.slot = slot
        self.agent = ""
        self.root: Node | None = None
        """The span whose end ends the run; a `guarded_run` ends with its block instead."""
        self.top: Node | None = None
        """The topmost span of the run: what is known about the run is written on it."""
        self.trip: Violation | None = None
        """The first violation whose action is abort."""
        self.tripped_s = 0.0
        """When it tripped, in seconds of the monotonic clock."""
        self.stopped = False
        """A stop was delivered: the run does not end by itself."""
        self.unheard: tuple[object, ...] = ()
        """Abort hooks that failed, to be asked again while steps still start."""
        self.steps_after_trip = 0
        self.refused_requests = 0
        self.places: OrderedDict[object, None] = OrderedDict()
        """Model requests that were let through and have not become steps, oldest first."""
        self.open_calls: dict[Node, None] = {}
        """Open spans of admitted model calls, oldest first."""
        self.ended = False

    def report(self) -> RunReport:
        """Return what has become of the run so far; `aborted` if a stop reached it unfinished."""
        report = self.guard.report()
        if self.stopped and report.status != "complete":
            return msgspec.structs.replace(report, status="aborted")
        return report


class Verdict(msgspec.Struct, frozen=True):
    """What a span, or a model request, meant for its run."""

    run: Run
    node: Node | None
    step: Step | None = None
    decision: Decision | None = None
    opened: bool = False
    """The span opened the run."""
    tripped: bool = False
    """This was the run's first violation whose action is abort."""
    went_on: bool = False
    """A step started although the run had tripped."""
    report: RunReport | None = None
    """What became of the run, if the span ended it."""

    @property
    def is_last_turn(self) -> bool:
        """Whether a model turn came back that says how the run ends."""
        step = self.step
        return step is not None and step.kind == "llm" and ending_of(step) != "running"

    @property
    def is_sampled(self) -> bool:
        """Whether the span in question is exported."""
        return self.node is not None and self.node.is_sampled

    def spans(self) -> list[object]:
        """Return the open spans of this process on which the verdict may be written.

        Those above the one in question come first, nearest first; itself comes last.
        """
        nodes = [] if self.node is None else list(self.node.upwards())
        return [node.live for node in (*nodes[1:], *nodes[:1]) if node.live is not None]

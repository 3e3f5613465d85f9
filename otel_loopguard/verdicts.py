"""What a span, or a model request, meant for its run."""

from __future__ import annotations

import msgspec

from otel_loopguard.decisions import Decision, RunReport
from otel_loopguard.endings import ending_of
from otel_loopguard.options.kinds import BuiltIn
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step


class Verdict(msgspec.Struct, frozen=True, gc=False):
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
    ran_on: bool = False
    """Such a step happened: nothing has kept it from that."""
    timed: bool = False
    """Nothing happened, until a limit on time was reached: the span is the latest of the run."""
    report: RunReport | None = None
    """What became of the run, if the span ended it."""
    called: tuple[Step, ...] = ()
    """Tool calls without a span that have turned out to have happened."""
    answered: tuple[Step, ...] = ()
    """Those of them whose results have become known, as far as they will."""
    vetoed_by: Run | None = None
    """The run that keeps the step from happening: it has tripped."""
    kept_by: BuiltIn = "veto"
    """What keeps it from that: the veto does at the start of its span."""
    around: tuple[Verdict, ...] = ()
    """What it meant for the runs around the run, nearest first."""

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

        Those above the offending one come first, nearest first, then the run's topmost one, which
        need not be above it; itself comes last. A refused request has no span of its own.
        """
        nodes = [] if self.node is None else list(self.node.upwards())
        top = [] if self.run.top is None else [self.run.top]
        own = 1 if self.timed or self.step is not None else 0
        ordered = (*nodes[own:], *top, *nodes[:own])
        return [node.live for node in ordered if node.live is not None]

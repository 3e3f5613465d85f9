"""What a run hears of before a step of it is judged: what must have happened by then."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.hearing import Hearing
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node
from otel_loopguard.spanless_calls import SpanlessCalls
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step


class Shown(NamedTuple):
    """What a span shows: the step that it is, and what is new in a model call's input."""

    step: Step
    record: SpanRecord
    given: ModelInput | None
    can_veto: bool = False
    """It does not happen if it is refused now."""


def before(
    hearing: Hearing, node: Node, shown: Shown, *, timed: bool
) -> tuple[SpanlessCalls, Step]:
    """Ask about the calls without a span that must have happened by the time a step begins.

    Return them, and the step with what has become known of it meanwhile. If not `timed`, steps
    bring no time of their own.
    """
    run, step, asides = hearing.run, shown.step, SpanlessCalls(hearing)
    if step.kind in {"tool", "agent"}:
        _delegate(run, node)
    if step.kind == "tool":
        run.requested.show(node, step, in_turn=bool(run.open_calls))
        delegates = node.calls_tools  # it shows only now what it is
        return asides, msgspec.structs.replace(step, delegated=True) if delegates else step
    if step.kind != "llm":
        return asides, step
    if shown.given is None and shown.record.ended_ns is None:
        node.unsure = run.waits_for_input  # its end may show what it was told
        return asides, msgspec.structs.replace(step, spoken=UNKNOWN) if node.unsure else step
    return asides, told(run, node, shown, asides, step.started_s if timed else None)


def before_late(
    hearing: Hearing, node: Node, shown: Shown, *, timed: bool
) -> tuple[SpanlessCalls, Step]:
    """Do what `before` does for a step that shows only at its end that it is one."""
    if shown.step.kind == "llm":
        hearing.run.has_come_back(node, shown.step, shown.record.ended_ns or 0)
        hearing.give_up_place(shown.record.started_ns)
    return before(hearing, node, shown, timed=timed)


def told(run: Run, node: Node, shown: Shown, asides: SpanlessCalls, at_s: float | None) -> Step:
    """Take in what a model call was told by `at_s`: results of calls, or a person's word."""
    step, given = shown.step, shown.given
    if given is None:
        asides.call(run.requested.happened(node), at_s)
        return step
    asides.answer(run.requested.answered(node, given), at_s)
    return msgspec.structs.replace(step, spoken=given.spoken and not given.answers)


def _delegate(run: Run, node: Node) -> None:
    """Take note that the tool call around an agent, or around another tool, runs an agent."""
    caller = node.counted_above()
    if caller is not None and caller.kind == "tool" and not caller.delegates:
        caller.delegates = True
        owner = caller.run or run  # a run around this one may have made the call
        for each in (owner, *owner.around()):
            each.guard.not_executed()

"""What happened, as a tree of agents, model calls and tool calls, with what repeats folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from otel_loopguard.decisions import Violation
from otel_loopguard.dialects import read_step
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.live_spans import record_of
from otel_loopguard.registry import names
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from otel_loopguard.testing.folding import folded
from otel_loopguard.testing.step_labels import label_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from otel_loopguard.testing.runs_heard import RunHeard


DEPTH = 30
"""Levels that are drawn; what is deeper stands on the last of them."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One line, and those below it."""

    label: str
    below: tuple[Branch, ...] = ()


def tree_of_spans(
    spans: Iterable[ReadableSpan], offenders: Mapping[int, Violation], *, contents: bool
) -> str:
    """Draw spans, in any order; what is no step is left out. Empty if none of them is one.

    `offenders` are the trips, by the ids of the spans that they were found at.
    """
    dialects = chosen(None)
    records = sorted(map(record_of, spans), key=lambda record: record.started_ns)
    spots = [_Spot(record, read_step(record, dialects)) for record in records]
    by_id = {spot.record.span_id: spot for spot in spots}
    top: list[_Spot] = []
    for spot in spots:
        above = _above(spot, by_id)
        (top if above is None else above.below).append(spot)
    labelled = partial(_branch, offenders=offenders, contents=contents)
    return "\n".join(_drawn([labelled(spot) for spot in _shown(top, None)]))


def tree_of_engines(runs: Sequence[RunHeard], *, contents: bool) -> str:
    """Draw what loops have told their engines, run by run; empty if there are none."""
    top: list[Branch] = []
    for run in runs:
        steps = list(_told(run))
        if steps:
            below = tuple(Branch(label=label_of(step, contents=contents)) for step in steps)
            label = f"loop with an engine of its own: {_counted(steps)}"
            top.append(Branch(label=label, below=below))
    return "\n".join(_drawn(top))


class _Spot:
    """A span, and where it hangs."""

    __slots__ = ("below", "depth", "record", "step")

    def __init__(self, record: SpanRecord, step: Step | None) -> None:
        self.record = record
        self.step = step
        self.below: list[_Spot] = []
        self.depth: int | None = None

    @property
    def run_id(self) -> object:
        """The run, where this is the span of a `guarded_run` itself."""
        is_block = self.record.name == "guarded_run"
        return self.record.attributes.get(names.RUN_ID) if is_block else None

    def is_shown(self, above: _Spot | None) -> bool:
        """Say whether it is a step that does not show once more what is above it."""
        if self.step is None:
            return self.run_id is not None
        outer = None if above is None else above.step
        return outer is None or self.step.kind == "agent" or outer.kind != self.step.kind


def _above(spot: _Spot, by_id: Mapping[int, _Spot]) -> _Spot | None:
    """Return what a span is to hang below: its parent, or one above if that is deep."""
    above = by_id.get(spot.record.parent_id or 0)
    while above is not None and _depth(above, by_id) >= DEPTH:
        above = by_id.get(above.record.parent_id or 0)
    return above


def _depth(spot: _Spot, by_id: Mapping[int, _Spot]) -> int:
    """Return how many spans are above one. No recursion: runaways may nest without end."""
    chain: list[_Spot] = []
    above: _Spot | None = spot
    while above is not None and above.depth is None:
        chain.append(above)
        above = by_id.get(above.record.parent_id or 0)
    depth = -1 if above is None or above.depth is None else above.depth
    for each in reversed(chain):
        depth += 1
        each.depth = depth
    return depth


def _shown(spots: Iterable[_Spot], above: _Spot | None) -> Iterator[_Spot]:
    """Yield those that are drawn below another: what is no step is passed through."""
    for spot in spots:
        if spot.is_shown(above):
            yield spot
        else:
            yield from _shown(spot.below, above)


def _branch(spot: _Spot, *, offenders: Mapping[int, Violation], contents: bool) -> Branch:
    below = tuple(
        _branch(each, offenders=offenders, contents=contents) for each in _shown(spot.below, spot)
    )
    step = spot.step
    if step is None:
        return Branch(label=f"run {spot.run_id!r}: {_counted(_steps(spot))}", below=below)
    label = label_of(step, contents=contents, is_open=spot.record.ended_ns is None)
    if step.kind == "agent":
        label = f"{label}: {_counted(_steps(spot))}"
    trip = offenders.get(spot.record.span_id)
    if trip is not None:
        label += f"   <- {trip.rule}: {trip.count:g} against {trip.threshold:g}, step {trip.step}"
    return Branch(label=label, below=below)


def _steps(spot: _Spot) -> Iterator[Step]:
    for each in _shown(spot.below, spot):
        if each.step is not None:
            yield each.step
        yield from _steps(each)


def _counted(steps: Iterable[Step]) -> str:
    kinds = [step.kind for step in steps]
    models, tools = kinds.count("llm"), kinds.count("tool")
    return f"{_some(models, 'model call')}, {_some(tools, 'tool call')}"


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _told(run: RunHeard) -> Iterator[Step]:
    """Yield the steps of a loop: those that were let through, with what came out of them."""
    waiting: list[Step] = []
    for said in run.said:
        step, decision = said.step, said.decision
        if step is None or decision is None:
            continue
        asked = next((each for each in waiting if _is_same(each, step)), None)
        if said.over:
            waiting = [each for each in waiting if each is not asked]
            yield step
        elif decision.allowed:
            waiting.append(step)
    yield from waiting


def _is_same(asked: Step, told: Step) -> bool:
    return (asked.kind, asked.name, asked.call_id) == (told.kind, told.name, told.call_id)


def _drawn(branches: Sequence[Branch], indent: str = "") -> Iterator[str]:
    parts = folded(branches)
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        lead = "└─ " if is_last else "├─ "
        if isinstance(part, str):
            yield f"{indent}{lead}{part}"
            continue
        yield f"{indent}{lead}{part.label}"
        yield from _drawn(part.below, indent + ("   " if is_last else "│  "))

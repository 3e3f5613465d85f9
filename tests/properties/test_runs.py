"""Laws of run tracking: runs do not touch each other, and no order of events breaks anything."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard import Decision, Policy, RunReport, open_runs, runs, span_tree
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict
from tests._examples import examples

POLICY = Policy(
    max_steps=9,
    max_llm_calls=4,
    max_tool_calls=6,
    max_repeated_calls=3,
    max_same_tool_calls=4,
    loop_pattern_window=6,
    rules={
        "repeated_result": {"warn": 2, "abort": 4},
        "repeated_call": {"warn": 2, "abort": 5},
        "cyclic_calls": {"warn": 2, "abort": 3},
    },
)
FAR_APART = 1_000
"""Distance between the span ids of two runs."""


class Event(NamedTuple):
    """The start or the end of a span."""

    record: SpanRecord
    is_end: bool


class Plan(NamedTuple):
    """What one span of a run is."""

    operation: str
    tool: str
    arguments: int | None
    result: int | None
    late: bool
    """It shows only at its end what it is."""
    loose: bool
    """It has no parent: only its context tells whose it is."""
    overlaps: bool
    """It ends only after the next one has started."""


plans = st.builds(
    Plan,
    st.sampled_from(["chat", "execute_tool", "execute_tool", "invoke_agent", "GET"]),
    st.sampled_from(["a", "b"]),
    st.none() | st.integers(0, 1),
    st.none() | st.integers(0, 1),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
lives = st.lists(plans, max_size=14)
several = st.lists(lives, min_size=2, max_size=4)


def attributes_of(plan: Plan, *, is_end: bool) -> Mapping[str, object]:
    if plan.operation == "GET" or (plan.late and not is_end):
        return {}
    known: dict[str, object] = {
        "gen_ai.operation.name": plan.operation,
        "gen_ai.tool.name": plan.tool,
        "gen_ai.agent.name": plan.tool if plan.operation == "invoke_agent" else "",
    }
    if plan.arguments is not None:
        known["gen_ai.tool.call.arguments"] = f'{{"q": {plan.arguments}}}'
    if plan.result is not None and is_end:
        known["gen_ai.tool.call.result"] = f"[{plan.result}]"
    return known


def events_of(life: Sequence[Plan], number: int, *, loose: bool) -> list[Event]:
    """Lay out a run below one agent: what it does, one after the other or overlapping."""
    first = FAR_APART * (number + 1)

    def event(at: int, span_id: int, parent: int | None, holds: Plan, *, is_end: bool) -> Event:
        record = SpanRecord(
            name=f"span {span_id - first}",
            trace_id=number + 1,
            span_id=span_id,
            parent_id=parent,
            attributes=attributes_of(holds, is_end=is_end),
            started_ns=1,
            ended_ns=at + 2 if is_end else None,
        )
        return Event(record, is_end)

    agent = Plan("invoke_agent", "scout", None, None, late=False, loose=False, overlaps=False)
    events = [event(0, first, None, agent, is_end=False)]
    waiting: list[Event] = []
    for offset, plan in enumerate(life, start=1):
        parent = None if loose and plan.loose else first
        events.append(event(offset, first + offset, parent, plan, is_end=False))
        ended, waiting = waiting, []
        events += ended
        (waiting if plan.overlaps else events).append(
            event(offset, first + offset, parent, plan, is_end=True)
        )
    return [*events, *waiting, event(0, first, None, agent, is_end=True)]


class Seen(NamedTuple):
    """What was said about a run."""

    decisions: list[tuple[Decision | None, bool, bool, bool]]
    reports: list[RunReport]


def say(seen: Seen, verdict: Verdict | None) -> None:
    if verdict is None:
        return
    seen.decisions.append((verdict.decision, verdict.opened, verdict.tripped, verdict.went_on))
    if verdict.report is not None:
        seen.reports.append(
            msgspec.structs.replace(verdict.report, duration_s=0.0, after_trip_s=0.0)
        )


def feed(to: RunTracker, event: Event) -> Verdict | None:
    return to.ended(event.record) if event.is_end else to.started(event.record)


def alone(events: Sequence[Event], *, live: bool) -> Seen:
    seen, to = Seen([], []), RunTracker(POLICY, live=live)
    context = in_fresh_context()
    for event in events:
        say(seen, context.run(feed, to, event))
    return seen


def in_fresh_context() -> contextvars.Context:
    context = contextvars.copy_context()
    context.run(CURRENT.set, None)
    return context


@pytest.mark.parametrize("live", [False, True])
@examples(120)
@given(several=several, order=st.randoms(use_true_random=False))
def test_runs_do_not_touch_each_other(
    several: list[list[Plan]], order: Random, *, live: bool
) -> None:
    laid_out = [events_of(life, number, loose=live) for number, life in enumerate(several)]
    together, to = [Seen([], []) for _ in laid_out], RunTracker(POLICY, live=live)
    contexts = [in_fresh_context() for _ in laid_out]
    left = [list(events) for events in laid_out]
    while any(left):
        number = order.choice([each for each, events in enumerate(left) if events])
        say(together[number], contexts[number].run(feed, to, left[number].pop(0)))

    assert together == [alone(events, live=live) for events in laid_out]
    assert to.runs.open_runs() == ()
    assert all(context.run(to.runs.in_context) is None for context in contexts)


@examples(150)
@given(several=several, order=st.randoms(use_true_random=False), live=st.booleans())
def test_no_order_of_events_breaks_anything(
    several: list[list[Plan]], order: Random, *, live: bool
) -> None:
    every = [
        event
        for number, life in enumerate(several)
        for event in events_of(life, number, loose=True)
    ]
    closed: list[Run] = []
    with pytest.MonkeyPatch.context() as bounds:
        bounds.setattr(span_tree, "SPANS", 12)
        bounds.setattr(span_tree, "ENDED", 5)
        bounds.setattr(open_runs, "RUNS", 3)
        bounds.setattr(runs, "OPEN_CALLS", 2)
        to = RunTracker(POLICY, live=live, on_closed=lambda run, _report: closed.append(run))
        opened: dict[Run, None] = {}
        ended: list[Run] = []
        context = in_fresh_context()
        for _ in range(2 * len(every)):  # some come twice, some never, none in its place
            verdict = context.run(feed, to, order.choice(every))
            if verdict is not None:
                opened[verdict.run] = None
                ended += [verdict.run] if verdict.report is not None else []
            assert len(to.runs.spans._nodes) <= 12  # pyright: ignore[reportPrivateUsage]
            assert len(to.runs.spans._ended) <= 5  # pyright: ignore[reportPrivateUsage]
            assert len(to.runs.open_runs()) <= 3
            assert all(len(run.open_calls) <= 2 for run in to.runs.open_runs())

    over = [*closed, *ended]
    assert len(set(over)) == len(over), "a run ends once"
    assert set(over) | set(to.runs.open_runs()) >= set(opened)
    assert not set(over) & set(to.runs.open_runs())

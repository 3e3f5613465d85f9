"""Whatever arrives, in whatever order: nothing is raised, everything is bounded, runs end once."""

from __future__ import annotations

import contextvars
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard import (
    joins,
    misplaced,
    open_runs,
    requested_calls,
    runs,
    semconv,
    span_tree,
)
from otel_loopguard.replay.span_order import in_order
from otel_loopguard.run_finder import RunFinder
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT
from otel_loopguard.span_tree import Node
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict
from tests._examples import examples
from tests.properties import test_dialects
from tests.properties.test_runs import POLICY

SPANS, ENDED, RUNS, ROOTLESS, JOINS, LEAVES, CALLS, WAITING, RESPONSES = 8, 4, 4, 2, 3, 2, 2, 2, 2
"""Bounds small enough to be reached."""


class Event(NamedTuple):
    """What is told: that a span has started or ended."""

    record: SpanRecord
    is_end: bool


@contextmanager
def small_stores() -> Generator[None]:
    with pytest.MonkeyPatch.context() as bounds:
        bounds.setattr(span_tree, "SPANS", SPANS)
        bounds.setattr(span_tree, "ENDED", ENDED)
        bounds.setattr(open_runs, "RUNS", RUNS)
        bounds.setattr(open_runs, "ROOTLESS", ROOTLESS)
        bounds.setattr(joins, "JOINS", JOINS)
        bounds.setattr(misplaced, "OPEN", LEAVES)
        bounds.setattr(runs, "OPEN_CALLS", CALLS)
        bounds.setattr(runs, "RESPONSES", RESPONSES)
        bounds.setattr(requested_calls, "WAITING", WAITING)
        yield


def assert_bounded(finder: RunFinder) -> None:
    spans: Any = finder.spans
    store: Any = finder
    assert len(spans._nodes) <= SPANS
    assert len(spans._ended) <= ENDED
    assert len(store.going._runs) <= RUNS
    assert len(store.going._rootless) <= ROOTLESS
    assert len(store.joins._runs) <= JOINS
    assert len(store.unattached._leaves) <= LEAVES
    for run in finder.open_runs():
        waiting: Any = run.requested
        assert len(run.open_calls) <= CALLS
        assert len(run.open_tools) <= CALLS
        assert len(run.responses) <= RESPONSES
        assert len(waiting._waiting) <= WAITING
        assert len(waiting._early) <= WAITING
        assert not run.places.ahead, "no request was made"


def assert_no_span_hangs_below_itself(nodes: Sequence[Node]) -> None:
    for node in nodes:
        seen: set[Node] = set()
        above: Node | None = node
        while above is not None:
            assert above not in seen
            seen.add(above)
            above = above.parent


class Ends:
    """Which runs were opened, and how often each has ended."""

    def __init__(self, *, live: bool) -> None:
        self.opened: list[Run] = []
        self.ended: list[Run] = []
        self.tracker = RunTracker(
            POLICY, live=live, on_closed=lambda run, _report: self.ended.append(run)
        )

    def take(self, event: Event) -> None:
        hear = self.tracker.ended if event.is_end else self.tracker.started
        verdict: Verdict | None = hear(event.record)
        if verdict is not None:
            self.opened += [verdict.run] if verdict.opened else []
            self.ended += [] if verdict.report is None else [verdict.run]

    def assert_each_run_ends_once(self) -> None:
        going_on = self.tracker.runs.open_runs()
        for run in going_on:
            self.tracker.runs.close(run)
            self.tracker.runs.close(run)
        assert len(set(self.opened)) == len(self.opened)
        assert sorted(map(id, self.ended)) == sorted(map(id, self.opened))
        assert all(run.ended and run.final is not None for run in self.opened)
        assert self.tracker.runs.open_runs() == ()


spans_of_any_dialect = test_dialects.records
GEN_AI: tuple[Mapping[str, object], ...] = (
    {semconv.GEN_AI_OPERATION_NAME: "invoke_agent", semconv.GEN_AI_AGENT_NAME: "a"},
    {semconv.GEN_AI_OPERATION_NAME: "chat", "gen_ai.response.id": "r"},
    {
        semconv.GEN_AI_OPERATION_NAME: "chat",
        "gen_ai.conversation.id": "c",
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_call", '
        '"id": "a", "name": "t", "arguments": {}}, {"type": "tool_call", "id": "b", "name": "t", '
        '"arguments": {}}, {"type": "tool_call", "id": "c", "name": "u", "arguments": {}}]}]',
    },
    {
        semconv.GEN_AI_OPERATION_NAME: "chat",
        "gen_ai.input.messages": '[{"role": "tool", "parts": [{"type": "tool_call_response", '
        '"id": "a", "response": "x"}]}]',
    },
    {semconv.GEN_AI_OPERATION_NAME: "execute_tool", semconv.GEN_AI_TOOL_NAME: "t"},
    {semconv.MCP_METHOD_NAME: "tools/call", semconv.GEN_AI_TOOL_NAME: "t"},
    {semconv.OPENINFERENCE_SPAN_KIND: "AGENT"},
    {semconv.OPENINFERENCE_SPAN_KIND: "LLM"},
    {},
)
SCOPES = (*misplaced.UNATTACHED, *misplaced.FLAT, "com.anthropic.sdk.python", "")
ids = st.integers(1, 7)
plain_spans = st.builds(
    SpanRecord,
    name=st.just("span"),
    trace_id=st.just(1),
    span_id=st.just(2),
    scope=st.sampled_from(SCOPES),
    attributes=st.sampled_from(GEN_AI),
)


def event_of(
    record: SpanRecord,
    place: tuple[int, int, int | None],
    times: tuple[int, int],
    *,
    is_end: bool,
    shows: bool,
) -> Event:
    trace_id, span_id, parent_id = place
    changes: dict[str, Any] = {
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_id": parent_id,
        "started_ns": times[0],
        "ended_ns": times[1] if is_end else None,
    }
    if not shows:
        changes |= {"attributes": {}}
    return Event(msgspec.structs.replace(record, **changes), is_end)


def any_events(of: st.SearchStrategy[SpanRecord], size: int) -> st.SearchStrategy[list[Event]]:
    """Starts and ends that have little to do with each other: few ids, any parent, any time."""
    times = st.integers(-(10**9), 10**9) | st.sampled_from([0, 400 * 10**9, 2**63])
    event = st.builds(
        event_of,
        of,
        st.tuples(st.integers(1, 2), ids, st.none() | ids),
        st.tuples(times, times),
        is_end=st.booleans(),
        shows=st.sampled_from([True, True, True, False]),
    )
    return st.lists(event, max_size=size)


def take_all(events: Sequence[Event], *, live: bool, contexts: int, order: Random) -> None:
    ends = Ends(live=live)
    threads = [contextvars.copy_context() for _ in range(contexts)]
    for thread in threads:
        thread.run(CURRENT.set, None)
    seen: list[Node] = []
    with small_stores():
        for event in events:
            order.choice(threads).run(ends.take, event)
            assert_bounded(ends.tracker.runs)
            node = ends.tracker.runs.spans.get(event.record.span_id)
            seen += [] if node is None else [node]
            assert_no_span_hangs_below_itself(seen)
        ends.assert_each_run_ends_once()


@examples(40)
@given(
    events=any_events(spans_of_any_dialect, 12),
    live=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_spans_of_any_dialect_in_any_order(
    events: list[Event], order: Random, *, live: bool
) -> None:
    take_all(events, live=live, contexts=2, order=order)


@examples(250)
@given(
    events=any_events(plain_spans, 40),
    live=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_steps_that_are_told_in_any_order(
    events: list[Event], order: Random, *, live: bool
) -> None:
    take_all(events, live=live, contexts=2, order=order)


@examples(150)
@given(events=any_events(plain_spans, 25))
def test_any_file_is_replayed(events: list[Event]) -> None:
    written = [event.record for event in events if event.is_end]
    ends = Ends(live=False)
    with small_stores():
        for record, is_end in in_order(written):
            ends.take(Event(record, is_end))
            assert_bounded(ends.tracker.runs)
        ends.assert_each_run_ends_once()


@pytest.mark.parametrize("ids_in_use", [8, 20])
def test_every_bound_and_every_way_of_finding_a_run_is_reached(ids_in_use: int) -> None:
    """Long sequences, from a seed: hypothesis prefers short ones."""
    order = Random(7)  # noqa: S311 -- no secret
    reached: set[str] = set()
    for _ in range(250):
        ends = Ends(live=True)
        with small_stores():
            for _ in range(40):
                record = SpanRecord(
                    name="span",
                    trace_id=1,
                    span_id=order.randint(1, ids_in_use),
                    parent_id=order.choice([None, order.randint(1, ids_in_use)]),
                    scope=order.choice(SCOPES),
                    attributes=order.choice(GEN_AI),
                    started_ns=order.randint(0, 10**9),
                )
                is_end = order.random() < 0.4
                ended_ns = record.started_ns + 1 if is_end else None
                ends.take(Event(msgspec.structs.replace(record, ended_ns=ended_ns), is_end))
                assert_bounded(ends.tracker.runs)
            ends.assert_each_run_ends_once()
        reached |= {run.kind for run in ends.opened}
        reached |= {name for name, lost in ends.tracker.runs.evicted().items() if lost}
    assert reached >= {"agent", "root", "joined", "runs", "ids"}
    assert ("spans" in reached) is (ids_in_use > SPANS)


def test_time_that_goes_backwards_is_no_silence() -> None:
    ends = Ends(live=True)
    attributes = {semconv.GEN_AI_OPERATION_NAME: "execute_tool", "gen_ai.conversation.id": "c"}
    for number, started_ns in enumerate([900 * 10**9, 10, 800 * 10**9, 0, 2**63], 1):
        record = SpanRecord(
            name="t", trace_id=number, span_id=number, attributes=attributes, started_ns=started_ns
        )
        contextvars.Context().run(ends.take, Event(record, is_end=False))

    assert len(ends.opened) == 2, "only the last comes after a silence"

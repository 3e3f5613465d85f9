"""Whatever the bytes, a reader returns what it read or raises `ReplayError`."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.policy import Policy
from otel_loopguard.replay import ReplayError, read_run, read_spans, replay_run
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.replay.source import kind_of
from otel_loopguard.spans import SpanRecord

# Python's json writes NaN, infinities and lone surrogates: so do agents' recorders.
texts = st.text(st.characters() | st.sampled_from("\ud800\udfff"))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return `good`, and now and then anything at all."""
    return st.integers(0, 9).flatmap(lambda n: good if n else anything)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.fixed_dictionaries({}, optional=fields))


def lists(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.lists(items, max_size=4))


numbers = mostly(st.integers(0, 2**64) | st.integers().map(str) | st.floats())
ids = mostly(
    st.sampled_from(["", "0" * 16, "ab" * 8, "ab" * 16, "AB" * 16, "7uGbfsPBsXQ=", "zz" * 8])
)
values = st.recursive(
    objects(
        stringValue=mostly(texts),
        intValue=numbers,
        doubleValue=numbers,
        boolValue=mostly(st.booleans()),
        bytesValue=mostly(st.sampled_from(["", "aGk=", "?"])),
    ),
    lambda inner: (
        objects(arrayValue=objects(values=lists(inner)))
        | objects(kvlistValue=objects(values=lists(objects(key=mostly(texts), value=inner))))
    ),
    max_leaves=5,
)
names = st.sampled_from(
    ["gen_ai.operation.name", "gen_ai.tool.name", "openinference.span.kind", "traceloop.span.kind"]
)
attributes = lists(objects(key=mostly(names | texts), value=values))
spans = objects(
    traceId=ids,
    spanId=ids,
    parentSpanId=ids,
    flags=mostly(st.integers(0, 1023)),
    name=mostly(st.sampled_from(["chat m", "execute_tool t", "invoke_agent a"]) | texts),
    startTimeUnixNano=numbers,
    endTimeUnixNano=numbers,
    attributes=attributes,
    events=lists(objects(name=mostly(texts), attributes=attributes)),
    status=objects(code=mostly(st.sampled_from([0, 1, 2, "STATUS_CODE_ERROR"]))),
)
requests = objects(
    resourceSpans=lists(
        objects(scopeSpans=lists(objects(scope=objects(name=mostly(texts)), spans=lists(spans))))
    )
)

labels = mostly(st.none() | texts | st.integers(0, 3))
amounts = mostly(st.none() | st.floats(0, 100) | st.integers(0, 100))
counts = mostly(st.none() | st.integers(0, 10**6))
steps = objects(
    type=mostly(st.sampled_from(["tool", "llm", "agent", "custom", "user"])),
    name=mostly(st.sampled_from("abc") | texts),
    arguments=anything,
    args_sha=mostly(st.none() | st.sampled_from(["", "ab12", "xyz"])),
    result=anything,
    result_sha=mostly(st.none() | st.sampled_from(["", "ab12", "xyz"])),
    error=mostly(st.none() | st.booleans() | texts),
    finish_reason=mostly(st.none() | st.sampled_from(["stop", "length", "tool_calls"]) | texts),
    input_tokens=counts,
    output_tokens=counts,
    cost_usd=amounts,
    tool_calls=lists(objects(name=mostly(texts), arguments=anything, id=labels)),
    agent=labels,
    parent=labels,
    run=labels,
    call_id=labels,
    batch=labels,
    contains=mostly(st.lists(labels, max_size=3)),
    approved_by_user=mostly(st.booleans()),
    dt_s=amounts,
    gap_s=amounts,
    advance_s=amounts,
    ended=mostly(st.booleans()),
)
runs = objects(run_id=labels, id=labels, policy=mostly(st.none()), steps=lists(steps))


def spans_of(line: bytes | str) -> list[SpanRecord]:
    try:
        return read_spans(line)
    except ReplayError:
        return []


@given(st.binary() | texts)
def test_any_bytes_are_spans_or_an_error(line: bytes | str):
    spans_of(line)


@given(st.binary() | texts)
def test_any_bytes_are_a_run_or_an_error(line: bytes | str):
    try:
        read_run(line)
    except ReplayError:
        return


@given(st.binary())
def test_any_bytes_are_of_a_kind_or_an_error(line: bytes):
    try:
        assert kind_of(line) in ("spans", "steps", "other", "blank")
    except ReplayError:
        return


@given(requests)
def test_nearly_valid_requests_are_spans_that_can_be_replayed_or_an_error(request: Any):
    replayed = replay_spans(spans_of(json.dumps(request)), Policy(), "file")
    assert all(run.steps >= run.model_calls + run.tool_calls for run in replayed)


@given(runs)
def test_nearly_valid_runs_are_runs_that_can_be_replayed_or_an_error(run: Any):
    try:
        recorded = read_run(json.dumps(run))
        result = replay_run(recorded, Policy(), "file")
    except ReplayError:
        return
    counted = [step for entry in recorded.steps if (step := entry.step) is not None]
    assert result.steps == sum(step.kind != "agent" for step in counted)
    assert result.model_calls == sum(step.kind == "llm" for step in counted)
    assert result.tool_calls == sum(step.kind == "tool" for step in counted)
    assert result.saved.steps <= result.steps
    assert result.tripped == any(found.action == "abort" for found in result.violations)

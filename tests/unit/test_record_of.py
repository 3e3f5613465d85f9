"""A span of the SDK as plain data."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags

from otel_loopguard.dialects import read_step
from otel_loopguard.live_spans import record_of
from tests._tracing import Traced


def started(process: Traced, **options: Any) -> Any:
    return process.tracer.start_span("work", **options)


def test_what_a_span_is_when_it_starts(process: Traced) -> None:
    with process.tracer.start_as_current_span("above"):
        span = started(process, attributes={"a": 1}, start_time=5)
        record = record_of(span)

    assert (record.name, record.trace_id, record.span_id, record.parent_id) == ("work", 1, 2, 1)
    assert (record.started_ns, record.ended_ns) == (5, None)
    assert record.scope == "agents"
    assert record.is_sampled
    assert not record.parent_is_remote
    assert not record.is_error


def test_what_is_added_later_does_not_change_the_record(process: Traced) -> None:
    span = started(process, attributes={"a": 1})
    record = record_of(span)
    span.set_attribute("b", 2)

    assert record.attributes == {"a": 1}
    assert record_of(span).attributes == {"a": 1, "b": 2}


@pytest.mark.parametrize("sign", ["status", "error.type"])
def test_a_failed_span_s_exceptions_are_read(process: Traced, sign: str) -> None:
    span = started(process)
    span.record_exception(ValueError("row 7"))
    if sign == "status":
        span.set_status(Status(StatusCode.ERROR, "bad row"))
    else:
        span.set_attribute("error.type", "ValueError")
    assert not record_of(span).events, "it goes on"
    span.end()

    (event,) = record_of(span).events
    assert event.name == "exception"
    assert event.attributes["exception.message"] == "row 7"
    assert record_of(span).is_error is (sign == "status")
    assert record_of(span).status_message == ("bad row" if sign == "status" else "")


@pytest.mark.parametrize("name", ["gen_ai.choice", "gen_ai.tool.message", "tool.output"])
def test_events_that_hold_content_are_read(process: Traced, name: str) -> None:
    span = started(process)
    span.add_event("token")
    span.add_event(name, {"message": "found"})
    assert not record_of(span).events, "it goes on"
    span.end()

    assert [event.name for event in record_of(span).events] == ["token", name]
    assert record_of(span).events[1].attributes == {"message": "found"}


def test_what_strands_says_of_a_tool_call_in_events(process: Traced) -> None:
    tracer = process.provider.get_tracer("strands.telemetry.tracer")
    span: Any = tracer.start_span("execute_tool search")
    span.add_event("gen_ai.tool.message", {"role": "tool", "content": '{"q": 1}', "id": "c1"})
    span.set_attribute("gen_ai.operation.name", "execute_tool")
    span.set_attribute("gen_ai.tool.name", "search")
    span.add_event("gen_ai.choice", {"message": '[{"text": "found"}]', "id": "c1"})
    span.end()

    step = read_step(record_of(span))
    assert step is not None
    assert (step.arguments, step.result) == ('{"q": 1}', '[{"text": "found"}]')


def test_events_of_a_span_that_did_not_fail_are_left_alone(process: Traced) -> None:
    span = started(process)
    span.add_event("token")
    span.end()

    assert not record_of(span).events


def test_a_remote_parent_that_was_not_sampled(process: Traced) -> None:
    caller = SpanContext(9, 8, is_remote=True, trace_flags=TraceFlags(0))
    with trace.use_span(NonRecordingSpan(caller)):
        record = record_of(started(process))

    assert (record.trace_id, record.parent_id, record.parent_is_remote) == (9, 8, True)


def test_the_length_limit_of_values_is_known() -> None:
    provider = TracerProvider(
        span_limits=SpanLimits(max_span_attribute_length=12), shutdown_on_exit=False
    )
    span: Any = provider.get_tracer("t").start_span("work", attributes={"a": "x" * 50})

    assert record_of(span).value_length_limit == 12
    assert record_of(span).attributes == {"a": "x" * 12}


def test_a_span_that_has_nothing() -> None:
    record = record_of(ReadableSpan("bare"))

    assert (record.name, record.trace_id, record.span_id) == ("bare", 0, 0)
    assert record.attributes == {}
    assert record.scope == ""

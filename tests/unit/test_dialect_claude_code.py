"""What is read from the spans of Claude Code: one fact a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_step
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from tests.unit.written_spans import CALL_ID, OPERATION, event, read, span


def claude(
    name: str,
    attributes: Mapping[str, object] | None = None,
    events: Sequence[SpanEventRecord] = (),
) -> SpanRecord:
    scope = "com.anthropic.claude_code.tracing"
    return span(f"claude_code.{name}", attributes, events=events, scope=scope)


def tool(
    attributes: Mapping[str, object] | None = None, events: Sequence[SpanEventRecord] = ()
) -> SpanRecord:
    told = {OPERATION: "execute_tool", "gen_ai.tool.name": "search", **(attributes or {})}
    return claude("tool", told, events)


@pytest.mark.parametrize(
    ("record", "kind", "name"),
    [
        (claude("interaction", {OPERATION: "invoke_agent"}), "agent", "claude_code.interaction"),
        (claude("llm_request", {OPERATION: "chat", "gen_ai.request.model": "m"}), "llm", "m"),
        (tool({"tool_name": "mcp__srv__search"}), "tool", "mcp__srv__search"),
        (tool(), "tool", "search"),
    ],
)
def test_kind_and_name(record: SpanRecord, kind: str, name: str):
    step = read(record)
    assert (step.kind, step.name) == (kind, name)


@pytest.mark.parametrize("name", ["tool.blocked_on_user", "hook"])
def test_nobodys_step(name: str):
    assert read_step(claude(name, {CALL_ID: "c1", "span.type": name})) is None


def test_the_execution_of_a_tool_is_the_call_without_its_name():
    step = read(claude("tool.execution", {CALL_ID: "c1", "span.type": "tool.execution"}))
    assert (step.kind, step.name, step.call_id) == ("tool", "", "c1")
    assert read_step(claude("tool.execution")) is None


def test_another_s_tool_keeps_its_name():
    other = span("t", {OPERATION: "execute_tool", "gen_ai.tool.name": "a", "tool_name": "b"})
    assert read(other).name == "a"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"tool_input": '{"q": 1}', "full_command": "ls"}, '{"q": 1}'),
        ({"full_command": "ls"}, {"command": "ls"}),
        ({"gen_ai.tool.call.arguments": "{}", "tool_input": "[]"}, "{}"),
        ({"tool_input": "<REDACTED>"}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_arguments(attributes: Mapping[str, object], expected: object):
    assert read(tool(attributes)).arguments == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([event("tool.output", bash_command="ls", output="a.txt")], "a.txt"),
        ([event("tool.output", file_path="a.txt", content="A")], "A"),
        ([event("other", output="a"), event("tool.output", output="b")], "b"),
        ([event("tool.output", output="x" * 60 * 1024)], UNKNOWN),
        ([event("tool.output")], UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_result(events: Sequence[SpanEventRecord], expected: object):
    assert read(tool({}, events)).result == expected


def test_a_result_on_the_span_goes_before_the_event():
    known = tool({"gen_ai.tool.call.result": "a"}, [event("tool.output", output="b")])
    assert read(known).result == "a"


def test_a_result_that_the_sdk_may_have_cut():
    record = SpanRecord(
        name="claude_code.tool",
        trace_id=1,
        span_id=2,
        scope="com.anthropic.claude_code.tracing",
        attributes={OPERATION: "execute_tool"},
        events=[event("tool.output", output="12345")],
        value_length_limit=5,
    )
    assert read(record).result is UNKNOWN

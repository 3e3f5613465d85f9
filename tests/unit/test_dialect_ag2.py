"""What is read from the spans of AG2: one fact a row."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import GIVEN, MESSAGES, OPERATION, REASONS, RESULT, hear, read, span

CALL = '{"id": "c1", "type": "function", "function": {"arguments": "{}", "name": "search"}}'
ASKED = f'{{"content": null, "role": "assistant", "tool_calls": [{CALL}]}}'
TRUNCATED = "ag2.tool.call.result.truncated"


def ag2(name: str, attributes: Mapping[str, object] | None = None) -> SpanRecord:
    return span(name, attributes, scope="opentelemetry.instrumentation.ag2")


@pytest.mark.parametrize(
    ("record", "kind", "name"),
    [
        (ag2("chat"), "llm", ""),
        (ag2("chat m", {OPERATION: "chat", "gen_ai.request.model": "m"}), "llm", "m"),
        (ag2("execute_tool search"), "tool", "search"),
        (ag2("invoke_agent helper"), "agent", "helper"),
    ],
)
def test_kind_and_name(record: SpanRecord, kind: str, name: str):
    step = read(record)
    assert (step.kind, step.name) == (kind, name)


@pytest.mark.parametrize(
    "record",
    [
        ag2("record_usage model_call", {"gen_ai.usage.input_tokens": 7, "ag2.span.type": "usage"}),
        ag2("await_human_input a", {OPERATION: "await_human_input"}),
        span("chat"),
    ],
)
def test_nobodys_step(record: SpanRecord):
    assert read_step(record) is None


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({RESULT: "found"}, "found"),
        ({RESULT: "found", TRUNCATED: False}, "found"),
        ({RESULT: "fo...[truncated]", TRUNCATED: True}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_result(attributes: Mapping[str, object], expected: object):
    assert read(ag2("execute_tool t", attributes)).result == expected


def test_messages_as_in_openai_s_chat_api():
    step = read(
        ag2("chat m", {OPERATION: "chat", MESSAGES: f"[{ASKED}]", REASONS: ("tool_calls",)})
    )
    assert step.tool_calls == (ToolCall(name="search", arguments="{}", call_id="c1"),)
    assert step.output == ""
    given = f'[{ASKED}, {{"role": "tool", "tool_call_id": "c1", "content": "rain"}}]'
    heard = hear(ag2("chat m", {OPERATION: "chat", GIVEN: given}))
    assert heard == ModelInput(answers=(ToolAnswer(call_id="c1", result="rain"),))

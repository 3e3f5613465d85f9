"""What is read from LangSmith's export to OpenTelemetry: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_input, read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import read, span

KIND = "langsmith.span.kind"
INPUT = "gen_ai.prompt"
OUTPUT = "gen_ai.completion"


def of(
    kind: object, attributes: Mapping[str, object] | None = None, *, is_root: bool = False
) -> SpanRecord:
    parent_id = None if is_root else 3
    operation = {"gen_ai.operation.name": "chat"} if kind == "llm" else {}
    return span("run", {KIND: kind, **operation, **(attributes or {})}, parent_id=parent_id)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (of("llm"), "llm"),
        (of("tool"), "tool"),
        (of("chain", is_root=True), "agent"),
        (span("run", {KIND: "chain"}, parent_is_remote=True), "agent"),
        (of("chain"), None),
        (of("prompt", is_root=True), None),
        (of(7, is_root=True), None),
        (span("run", {"gen_ai.operation.name": "chain"}, parent_id=None), None),
    ],
)
def test_kind(record: SpanRecord, kind: str | None):
    step = read_step(record)
    assert (step and step.kind) == kind


def test_agent():
    step = read(of("chain", {"langsmith.metadata.lc_agent_name": "a"}, is_root=True))
    assert (step.name, step.agent) == ("run", "a")


def returned(value: object) -> dict[str, object]:
    return {OUTPUT: json.dumps({"output": value})}


MESSAGE = {"content": "found", "type": "tool", "tool_call_id": "c1", "status": "success"}


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.tool.name": "search"}, "name", "search"),
        ({}, "name", "run"),
        ({INPUT: '{"query":"x"}'}, "arguments", '{"query":"x"}'),
        ({}, "arguments", UNKNOWN),
        (returned("found"), "result", "found"),
        (returned({"n": 1}), "result", {"n": 1}),
        (returned(None), "result", UNKNOWN),
        (returned(MESSAGE), "result", "found"),
        (returned(MESSAGE), "call_id", "c1"),
        ({OUTPUT: '{"output":1,"more":2}'}, "result", '{"output":1,"more":2}'),
        ({OUTPUT: "found"}, "result", "found"),
        ({}, "result", UNKNOWN),
        ({**returned(MESSAGE), "gen_ai.tool.call.id": "c2"}, "call_id", "c2"),
        ({}, "call_id", None),
        ({"langsmith.metadata.lc_agent_name": "a"}, "agent", "a"),
    ],
)
def test_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(of("tool", attributes)), field) == expected


def generation(about: Mapping[str, object] | None = None, **message: object) -> dict[str, object]:
    """What LangChain answers."""
    said: dict[str, object] = {"content": "done", "tool_calls": None, **message}
    inner = {"lc": 1, "kwargs": said}
    choice = {"text": "done", "generation_info": about, "message": inner}
    return {OUTPUT: json.dumps({"generations": [[choice]]})}


def completion(**message: object) -> dict[str, object]:
    """What OpenAI's API answers."""
    return {OUTPUT: json.dumps({"choices": [{"finish_reason": "stop", "message": message}]})}


LANGCHAIN_CALL = {"name": "search", "args": {"q": 1}, "id": "c1", "type": "tool_call"}
OPENAI_CALL = {"id": "c1", "function": {"name": "search", "arguments": '{"q": 1}'}}
USAGE = json.dumps(
    {
        "input_token_details": {"cache_read": 2, "cache_creation": 3},
        "output_token_details": {"reasoning": 4},
    }
)


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.request.model": "m"}, "name", "m"),
        ({"gen_ai.response.model": "m-1", "gen_ai.request.model": "m"}, "model", "m-1"),
        ({"gen_ai.system": "openai"}, "provider", "openai"),
        ({"gen_ai.usage.input_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.usage.output_tokens": 7}, "output_tokens", 7),
        ({"langsmith.metadata.usage_metadata": USAGE}, "cache_read_tokens", 2),
        ({"langsmith.metadata.usage_metadata": USAGE}, "cache_write_tokens", 3),
        ({"langsmith.metadata.usage_metadata": USAGE}, "reasoning_tokens", 4),
        ({"langsmith.metadata.usage_metadata": "{"}, "cache_read_tokens", None),
        ({}, "cache_read_tokens", None),
        ({"gen_ai.response.id": "r1"}, "response_id", "r1"),
        (generation(response_metadata={"id": "r1"}), "response_id", "r1"),
        ({"gen_ai.response.finish_reasons": ("stop",)}, "finish_reasons", ("stop",)),
        (generation({"finish_reason": "stop"}), "finish_reasons", ("stop",)),
        (
            generation(response_metadata={"finish_reason": "length"}),
            "finish_reasons",
            ("length",),
        ),
        (
            generation(response_metadata={"stop_reason": "tool_use"}),
            "finish_reasons",
            ("tool_use",),
        ),
        (completion(content="done"), "finish_reasons", ("stop",)),
        (generation(), "finish_reasons", ()),
        ({}, "finish_reasons", ()),
        (generation(), "output", "done"),
        (generation(), "tool_calls", ()),
        (generation(content=None), "output", ""),
        (generation(content=[{"type": "text", "text": "x"}]), "output", UNKNOWN),
        (generation(content="__REDACTED__"), "output", UNKNOWN),
        (
            generation(tool_calls=[LANGCHAIN_CALL]),
            "tool_calls",
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
        ),
        (completion(content="done"), "output", "done"),
        (completion(content="done"), "tool_calls", ()),
        (
            completion(content=None, tool_calls=[OPENAI_CALL]),
            "tool_calls",
            (ToolCall(name="search", arguments='{"q": 1}', call_id="c1"),),
        ),
        # OpenAI's Responses API is not read.
        ({OUTPUT: '{"output": [{"type": "function_call"}]}'}, "tool_calls", UNKNOWN),
        ({OUTPUT: "{"}, "tool_calls", UNKNOWN),
        ({OUTPUT: "__REDACTED__"}, "output", UNKNOWN),
        ({}, "tool_calls", UNKNOWN),
        ({}, "output", UNKNOWN),
        (
            {"gen_ai.tool.definitions": '[{"type":"function","function":{"name":"a"}}]'},
            "offered_tools",
            {"a"},
        ),
        ({"gen_ai.tool.definitions": "["}, "offered_tools", UNKNOWN),
        ({}, "offered_tools", UNKNOWN),
        ({"langsmith.metadata.lc_agent_name": "a"}, "agent", "a"),
    ],
)
def test_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(of("llm", attributes)), field) == expected


LANGCHAIN_INPUT = json.dumps(
    {
        "messages": [
            [
                {"lc": 1, "kwargs": {"content": "hello", "type": "human"}},
                {"lc": 1, "kwargs": {"content": "", "type": "ai"}},
                {"lc": 1, "kwargs": MESSAGE},
            ]
        ]
    }
)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            of("llm", {INPUT: LANGCHAIN_INPUT}),
            ModelInput(answers=(ToolAnswer(call_id="c1", result="found"),)),
        ),
        (
            of("llm", {INPUT: '{"messages":[{"role":"user","content":"hello"}]}'}),
            ModelInput(spoken=True),
        ),
        (
            of("llm", {INPUT: '{"input":"hello","previous_response_id":"r1"}'}),
            ModelInput(spoken=True, previous_response_id="r1"),
        ),
        (of("llm"), None),
        (of("tool", {INPUT: '{"input":"hello"}'}), None),
        (span("run", {INPUT: '{"input":"hello"}'}), None),
    ],
)
def test_what_is_new_in_the_input(record: SpanRecord, expected: ModelInput | None):
    assert read_input(record) == expected

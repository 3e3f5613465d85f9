"""What is read from the names of the Vercel AI SDK: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_input, read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import read, span

MODEL_CALL = "ai.generateText.doGenerate"
TOOL = '{"type": "function", "name": "search", "inputSchema": {}}'


def of(
    operation: object, attributes: Mapping[str, object] | None = None, limit: int | None = None
) -> SpanRecord:
    return span("ai.span", {"ai.operationId": operation, **(attributes or {})}, limit=limit)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("ai.generateText", "agent"),
        ("ai.streamText", "agent"),
        ("ai.generateObject", "agent"),
        ("ai.streamObject", "agent"),
        (MODEL_CALL, "llm"),
        ("ai.streamText.doStream", "llm"),
        ("ai.generateObject.doGenerate", "llm"),
        ("ai.toolCall", "tool"),
        ("ai.embed", None),
        ("ai.embed.doEmbed", None),
        (7, None),
    ],
)
def test_kind(operation: object, kind: str | None):
    step = read_step(of(operation))
    assert (step and step.kind) == kind


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"ai.toolCall.name": "search"}, "name", "search"),
        ({}, "name", "ai.span"),
        ({"ai.toolCall.id": "c1"}, "call_id", "c1"),
        ({}, "call_id", None),
        ({"ai.toolCall.args": '{"q":1}'}, "arguments", '{"q":1}'),
        ({}, "arguments", UNKNOWN),
        ({"ai.toolCall.result": '"found"'}, "result", "found"),
        ({"ai.toolCall.result": '{"n":1}'}, "result", '{"n":1}'),
        ({"ai.toolCall.result": '"found'}, "result", '"found'),
        ({"ai.toolCall.result": '"__REDACTED__"'}, "result", UNKNOWN),
        ({}, "result", UNKNOWN),
        ({"ai.telemetry.functionId": "a"}, "agent", "a"),
    ],
)
def test_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(of("ai.toolCall", attributes)), field) == expected


def test_a_result_that_may_be_cut():
    assert read(of("ai.toolCall", {"ai.toolCall.result": '"fo'}, limit=3)).result is UNKNOWN


def calls(**more: object) -> str:
    return json.dumps([{"toolCallId": "c1", "toolName": "search", **more}])


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.request.model": "m", "ai.model.id": "n"}, "name", "m"),
        ({"ai.model.id": "n"}, "name", "n"),
        ({"ai.response.model": "m-1", "gen_ai.request.model": "m"}, "model", "m-1"),
        ({"ai.model.id": "n"}, "model", "n"),
        ({"gen_ai.system": "openai.responses"}, "provider", "openai"),
        ({"ai.model.provider": "anthropic"}, "provider", "anthropic"),
        ({"ai.response.finishReason": "tool-calls"}, "finish_reasons", ("tool-calls",)),
        ({}, "finish_reasons", ()),
        ({"gen_ai.response.id": "r1"}, "response_id", "r1"),
        ({"ai.response.id": "r1"}, "response_id", "r1"),
        ({"gen_ai.usage.input_tokens": 7, "ai.usage.inputTokens": 7}, "input_tokens", 7),
        ({"ai.usage.inputTokens": 7.0}, "input_tokens", 7),
        ({"ai.usage.promptTokens": 7}, "input_tokens", 7),
        ({"ai.usage.outputTokens": 7}, "output_tokens", 7),
        ({"ai.usage.completionTokens": 7}, "output_tokens", 7),
        ({"ai.usage.inputTokenDetails.cacheReadTokens": 7}, "cache_read_tokens", 7),
        ({"ai.usage.cachedInputTokens": 7}, "cache_read_tokens", 7),
        ({"ai.usage.inputTokenDetails.cacheWriteTokens": 7}, "cache_write_tokens", 7),
        ({"ai.usage.outputTokenDetails.reasoningTokens": 7}, "reasoning_tokens", 7),
        ({"ai.usage.reasoningTokens": 7}, "reasoning_tokens", 7),
        ({"ai.response.text": "done"}, "output", "done"),
        ({"ai.response.object": '{"n":1}'}, "output", '{"n":1}'),
        ({"ai.response.text": "__REDACTED__"}, "output", UNKNOWN),
        ({}, "output", UNKNOWN),
        ({"ai.response.toolCalls": calls()}, "output", ""),
        ({"ai.response.toolCalls": calls(), "ai.response.text": "wait"}, "output", "wait"),
        ({"ai.response.toolCalls": calls(), "ai.response.text": 7}, "output", UNKNOWN),
        ({"ai.response.toolCalls": "[]"}, "output", UNKNOWN),
        ({"ai.response.toolCalls": "["}, "output", UNKNOWN),
        (
            {"ai.response.toolCalls": calls(input='{"q":1}')},
            "tool_calls",
            (ToolCall(name="search", arguments='{"q":1}', call_id="c1"),),
        ),
        (
            {"ai.response.toolCalls": calls(args={"q": 1})},
            "tool_calls",
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
        ),
        (
            {"ai.response.toolCalls": calls()},
            "tool_calls",
            (ToolCall(name="search", call_id="c1"),),
        ),
        (
            {"ai.response.toolCalls": '[{"toolName": "search"}]'},
            "tool_calls",
            (ToolCall(name="search"),),
        ),
        ({"ai.response.toolCalls": "[{"}, "tool_calls", UNKNOWN),
        ({"ai.response.toolCalls": "__REDACTED__"}, "tool_calls", UNKNOWN),
        ({"ai.response.text": "done"}, "tool_calls", ()),
        ({}, "tool_calls", UNKNOWN),
        ({"ai.prompt.tools": (TOOL,)}, "offered_tools", {"search"}),
        ({"ai.prompt.tools": (TOOL, "{")}, "offered_tools", UNKNOWN),
        ({"ai.prompt.tools": TOOL}, "offered_tools", UNKNOWN),
        ({}, "offered_tools", UNKNOWN),
        ({"ai.telemetry.functionId": "a"}, "agent", "a"),
    ],
)
def test_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(of(MODEL_CALL, attributes)), field) == expected


def test_tools_that_may_be_cut():
    record = of(MODEL_CALL, {"ai.prompt.tools": (TOOL,)}, limit=len(TOOL))
    assert read(record).offered_tools is UNKNOWN


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"ai.telemetry.functionId": "a"}, "name", "a"),
        ({"ai.telemetry.functionId": "a"}, "agent", "a"),
        ({}, "name", "ai.span"),
        ({"ai.usage.inputTokens": 7}, "input_tokens", 7),
        ({"ai.model.id": "m"}, "model", "m"),
    ],
)
def test_agent(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(of("ai.generateText", attributes)), field) == expected


def tool_results(*results: Mapping[str, object]) -> str:
    return json.dumps(
        [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1"}]},
            {"role": "tool", "content": [{"type": "tool-result", **result} for result in results]},
        ]
    )


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ('[{"role":"user","content":[{"type":"text","text":"x"}]}]', ModelInput(spoken=True)),
        ('[{"role":"user","content":[{"type":"file"}]}]', ModelInput()),
        (
            tool_results(
                {"toolCallId": "c1", "output": {"type": "text", "value": "found"}},
                {"toolCallId": "c2", "output": {"type": "error-text", "value": "down"}},
            ),
            ModelInput(
                answers=(
                    ToolAnswer(call_id="c1", result="found"),
                    ToolAnswer(call_id="c2", result="down"),
                )
            ),
        ),
        (
            tool_results({"toolCallId": "c1", "result": {"n": 1}}),
            ModelInput(answers=(ToolAnswer(call_id="c1", result={"n": 1}),)),
        ),
        (tool_results({"toolCallId": "c1"}), ModelInput(answers=(ToolAnswer(call_id="c1"),))),
        (tool_results({"result": 1}), ModelInput()),
        ("[", None),
        (None, None),
    ],
)
def test_what_is_new_in_the_input(messages: str | None, expected: ModelInput | None):
    attributes = {} if messages is None else {"ai.prompt.messages": messages}
    assert read_input(of(MODEL_CALL, attributes)) == expected


def test_input_without_the_mark():
    assert read_input(span("x", {"ai.prompt.messages": '[{"role":"user","content":"x"}]'})) is None

"""What is read from OpenTelemetry's GenAI names: one fact a row."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.steps import ToolCall
from tests.unit.written_spans import (
    ARGUMENTS,
    CALL_ID,
    DEFINITIONS,
    MESSAGES,
    REASONS,
    RESULT,
    answer,
    genai_llm,
    genai_tool,
    read,
)


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({ARGUMENTS: '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({ARGUMENTS: {"q": 1}}, "arguments", {"q": 1}),
        ({ARGUMENTS: ""}, "arguments", ""),
        ({ARGUMENTS: None}, "arguments", UNKNOWN),
        ({}, "arguments", UNKNOWN),
        ({ARGUMENTS: "__REDACTED__"}, "arguments", UNKNOWN),
        ({"tool_arguments": "{}"}, "arguments", "{}"),
        ({"loopguard.arguments.hash": "0fA"}, "arguments", "hash:gvq"),
        ({ARGUMENTS: "{}", "loopguard.arguments.hash": "0fA"}, "arguments", "{}"),
        ({RESULT: "found"}, "result", "found"),
        ({"tool_response": "found"}, "result", "found"),
        ({"loopguard.result.hash": "12"}, "result", "hash:hi"),
        ({}, "result", UNKNOWN),
        ({CALL_ID: "c1"}, "call_id", "c1"),
        ({CALL_ID: "<not specified>"}, "call_id", None),
        ({CALL_ID: 7}, "call_id", None),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({}, "agent", ""),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        ({}, "agent_id", None),
        ({}, "error", None),
        ({"error.type": "Timeout"}, "error", "Timeout"),
    ],
)
def test_genai_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(genai_tool(attributes)), field) == expected


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"}, "name", "m"),
        ({"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"}, "model", "m-1"),
        ({"gen_ai.request.model": "m"}, "model", "m"),
        ({"gen_ai.provider.name": "p", "gen_ai.system": "s"}, "provider", "p"),
        ({"gen_ai.system": "s"}, "provider", "s"),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        ({REASONS: ("tool_calls",)}, "finish_reasons", ("tool_calls",)),
        ({REASONS: ["stop", "", 3]}, "finish_reasons", ("stop",)),
        ({REASONS: '["tool_calls"]'}, "finish_reasons", ("tool_calls",)),
        ({REASONS: "stop"}, "finish_reasons", ("stop",)),
        ({REASONS: "[stop"}, "finish_reasons", ("[stop",)),
        ({REASONS: ""}, "finish_reasons", ()),
        ({REASONS: 3}, "finish_reasons", ()),
        ({"gen_ai.response.finish_reason": "length"}, "finish_reasons", ("length",)),
        ({"anthropic.message.stop_reason": "end_turn"}, "finish_reasons", ("end_turn",)),
        ({MESSAGES: answer(finish_reason="stop")}, "finish_reasons", ("stop",)),
        ({MESSAGES: answer(), REASONS: ("length",)}, "finish_reasons", ("length",)),
        ({"gen_ai.usage.input_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 0}, "input_tokens", 0),
        ({"gen_ai.usage.input_tokens": "7"}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 7.0}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 7.5}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": -7}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": True}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": "many"}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": "²"}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": "9" * 5000}, "input_tokens", None),
        ({"gen_ai.usage.prompt_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.aggregated_usage.input_tokens": 7}, "input_tokens", None),
        ({"gen_ai.usage.output_tokens": 7}, "output_tokens", 7),
        ({"gen_ai.usage.completion_tokens": 7}, "output_tokens", 7),
        ({"gen_ai.usage.cache_read.input_tokens": 7}, "cache_read_tokens", 7),
        ({"gen_ai.usage.cache_read_input_tokens": 7}, "cache_read_tokens", 7),
        ({"gen_ai.usage.cache_write.input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.cache_creation.input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.cache_write_input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.cache_creation_input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.reasoning.output_tokens": 7}, "reasoning_tokens", 7),
        ({"gen_ai.usage.reasoning_tokens": 7}, "reasoning_tokens", 7),
        ({"gen_ai.usage.details.reasoning_tokens": 7}, "reasoning_tokens", 7),
        ({"operation.cost": 0.25}, "cost_usd", 0.25),
        ({"operation.cost": "0.25"}, "cost_usd", 0.25),
        ({"operation.cost": 1}, "cost_usd", 1.0),
        ({"operation.cost": 0}, "cost_usd", 0.0),
        ({"operation.cost": True}, "cost_usd", None),
        ({"operation.cost": "dear"}, "cost_usd", None),
        ({"operation.cost": float("nan")}, "cost_usd", None),
        ({"operation.cost": -1}, "cost_usd", None),
        ({"operation.cost": 10**400}, "cost_usd", None),
    ],
)
def test_genai_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(genai_llm(attributes)), field) == expected


TEXT = {"type": "text", "content": "done"}
CALL = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": 1}}


@pytest.mark.parametrize(
    ("messages", "tool_calls", "output"),
    [
        (answer(TEXT), (), "done"),
        (answer(TEXT, TEXT), (), "done\ndone"),
        (answer(), (), ""),
        (answer(CALL), (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),), ""),
        (answer({"type": "tool_call", "name": "search"}), (ToolCall(name="search"),), ""),
        (answer(TEXT, CALL), (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),), "done"),
        # Content that was not captured is not an empty text.
        (answer({"type": "text"}), (), UNKNOWN),
        (answer({"type": "text", "content": 3}), (), UNKNOWN),
        (answer({"type": "reasoning", "content": "hm"}, TEXT), (), "done"),
        # What is not text cannot be compared.
        (answer({"type": "blob", "content": "0"}, TEXT), (), UNKNOWN),
        # The v2 package for OpenAI Agents writes calls as text, and no finish reason.
        (answer(TEXT, finish_reason=None), UNKNOWN, "done"),
        (
            answer(CALL, finish_reason=None),
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
            "",
        ),
        # Not captured, or not as the convention has it
        (None, UNKNOWN, UNKNOWN),
        ("[]", UNKNOWN, UNKNOWN),
        ("not JSON", UNKNOWN, UNKNOWN),
        ("__REDACTED__", UNKNOWN, UNKNOWN),
        ('[{"role": "assistant", "content": "done"}]', UNKNOWN, UNKNOWN),
        ('[{"parts": 3}]', UNKNOWN, UNKNOWN),
        (3, UNKNOWN, UNKNOWN),
        # The structure itself, as newer SDKs allow
        (({"parts": (TEXT,), "finish_reason": "stop"},), (), "done"),
    ],
)
def test_genai_answer(messages: object, tool_calls: object, output: object):
    step = read(genai_llm({MESSAGES: messages}))
    assert (step.tool_calls, step.output) == (tool_calls, output)


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        ('[{"type": "function", "name": "a"}, {"name": "b"}]', {"a", "b"}),
        ('[{"type": "function", "function": {"name": "a"}}]', {"a"}),
        (({"name": "a"},), {"a"}),
        ("[]", set[str]()),
        # A hosted tool or a whole server of tools: what it offers is not known.
        ('[{"name": "a"}, {"type": "mcp"}]', UNKNOWN),
        ('[{"name": "a"}', UNKNOWN),
        ("__REDACTED__", UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_genai_offered_tools(definitions: object, expected: object):
    assert read(genai_llm({DEFINITIONS: definitions})).offered_tools == expected

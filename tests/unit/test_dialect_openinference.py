"""What is read from OpenInference's names: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.steps import ToolCall
from tests.unit.written_spans import (
    ANSWER,
    ARGUMENTS,
    CALL_ID,
    REASONS,
    openinference,
    read,
    tool_message,
)

COMMAND = json.dumps(
    {"graph": None, "update": {"messages": [{"data": {"content": "added", "tool_call_id": "c1"}}]}}
)
"""A LangGraph tool that changes the graph's state answers inside a command."""

NESTED = '{"output": ' * 400 + tool_message("found") + "}" * 400


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"input.value": '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({"input.value": "paris"}, "arguments", "paris"),
        ({"input.value": "__REDACTED__"}, "arguments", UNKNOWN),
        # It may hold the tool's schema.
        ({ARGUMENTS: '{"type": "object"}'}, "arguments", UNKNOWN),
        ({"output.value": "found"}, "result", "found"),
        ({"output.value": "__REDACTED__"}, "result", UNKNOWN),
        ({"output.value": tool_message("found")}, "result", "found"),
        ({"output.value": tool_message("found")}, "call_id", "c1"),
        ({"output.value": tool_message("found"), "tool_call.id": "c2"}, "call_id", "c2"),
        (
            {"output.value": tool_message("no such file", status="error")},
            "result",
            {"content": "no such file", "status": "error"},
        ),
        ({"output.value": tool_message("__REDACTED__", status="error")}, "result", UNKNOWN),
        ({"output.value": {"data": {"content": "x", "tool_call_id": "c1"}}}, "result", "x"),
        ({"output.value": COMMAND}, "result", "added"),
        ({"output.value": COMMAND}, "call_id", "c1"),
        ({"output.value": '{"tool_call_id": "c1"}'}, "result", '{"tool_call_id": "c1"}'),
        ({"output.value": '["tool_call_id", 2]'}, "result", '["tool_call_id", 2]'),
        ({"output.value": '{"tool_call_id'}, "result", '{"tool_call_id'),
        ({"output.value": NESTED}, "result", NESTED),
        (
            {"tool.id": "c1", "output.value": '{"id": "c1", "response": 1}'},
            "result",
            {"response": 1},
        ),
        ({"tool.id": "c1", "output.value": '{"id": "c11"}'}, "result", '{"id": "c11"}'),
        ({"tool.id": "c1", "output.value": "see c1"}, "result", "see c1"),
        ({"tool.id": "c1"}, "call_id", "c1"),
        ({CALL_ID: "c1"}, "call_id", "c1"),
        ({}, "call_id", None),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
    ],
)
def test_openinference_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(openinference("TOOL", attributes)), field) == expected


REQUEST = f"{ANSWER}.tool_calls.0.tool_call"


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"llm.model_name": "m"}, "model", "m"),
        ({"llm.provider": "p", "llm.system": "s"}, "provider", "p"),
        ({"llm.system": "s"}, "provider", "s"),
        ({"llm.finish_reason": "stop"}, "finish_reasons", ("stop",)),
        ({f"{ANSWER}.finish_reason": "stop"}, "finish_reasons", ("stop",)),
        ({REASONS: ("stop",)}, "finish_reasons", ("stop",)),
        ({}, "finish_reasons", ()),
        ({"llm.token_count.prompt": 7}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 7}, "input_tokens", 7),
        ({"llm.token_count.completion": 7}, "output_tokens", 7),
        ({"llm.token_count.prompt_details.cache_read": 7}, "cache_read_tokens", 7),
        ({"llm.token_count.prompt_details.cache_write": 7}, "cache_write_tokens", 7),
        ({"llm.token_count.completion_details.reasoning": 7}, "reasoning_tokens", 7),
        ({"llm.cost.total": 0.5, "operation.cost": 0.25}, "cost_usd", 0.5),
        ({"operation.cost": 0.25}, "cost_usd", 0.25),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        # The answer: nothing is known without a role, everything with one.
        ({}, "tool_calls", UNKNOWN),
        ({}, "output", UNKNOWN),
        ({f"{REQUEST}.function.name": "search"}, "tool_calls", UNKNOWN),
        ({f"{ANSWER}.role": "assistant"}, "tool_calls", ()),
        ({f"{ANSWER}.role": "assistant"}, "output", ""),
        ({f"{ANSWER}.role": "assistant", f"{ANSWER}.content": "done"}, "output", "done"),
        ({f"{ANSWER}.role": "assistant", f"{ANSWER}.content": "__REDACTED__"}, "output", UNKNOWN),
        (
            {
                f"{ANSWER}.role": "assistant",
                f"{REQUEST}.function.name": "search",
                f"{REQUEST}.function.arguments": '{"q": 1}',
                f"{REQUEST}.id": "c1",
                f"{ANSWER}.tool_calls.1.tool_call.function.name": "lookup",
            },
            "tool_calls",
            (ToolCall(name="search", arguments='{"q": 1}', call_id="c1"), ToolCall(name="lookup")),
        ),
        (
            {
                f"{ANSWER}.role": "assistant",
                f"{ANSWER}.contents.0.message_content.type": "text",
                f"{ANSWER}.contents.0.message_content.text": "done",
                f"{ANSWER}.contents.1.message_content.type": "tool_use",
            },
            "output",
            "done",
        ),
        (
            {f"{ANSWER}.role": "assistant", f"{ANSWER}.contents.0.message_content.type": "image"},
            "output",
            UNKNOWN,
        ),
        ({"llm.tools.0.tool.json_schema": '{"name": "a"}'}, "offered_tools", {"a"}),
        ({"llm.tools.0.tool.json_schema": '{"function": {"name": "a"}}'}, "offered_tools", {"a"}),
        (
            {"llm.tools.0.tool.json_schema": '{"type": "object"}', "llm.tools.0.tool.name": "a"},
            "offered_tools",
            {"a"},
        ),
        ({"llm.tools.0.tool.json_schema": "__REDACTED__"}, "offered_tools", UNKNOWN),
        ({"llm.tools.0.tool.json_schema": "{"}, "offered_tools", UNKNOWN),
        ({}, "offered_tools", UNKNOWN),
    ],
)
def test_openinference_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(openinference("LLM", attributes)), field) == expected


def test_a_result_that_contains_itself():
    circle: dict[str, object] = {}
    circle["output"] = circle
    assert read(openinference("TOOL", {"output.value": circle})).result is circle

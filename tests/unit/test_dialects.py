"""Which step a span is: one fact a row."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import BUILT_IN, read_step
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import SpanKey, Step, ToolCall

OPERATION = "gen_ai.operation.name"
KIND = "openinference.span.kind"
TRACELOOP_KIND = "traceloop.span.kind"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
CALL_ID = "gen_ai.tool.call.id"
MESSAGES = "gen_ai.output.messages"
DEFINITIONS = "gen_ai.tool.definitions"
REASONS = "gen_ai.response.finish_reasons"
ANSWER = "llm.output_messages.0.message"


class Operation(str, enum.Enum):
    """What Microsoft's Agent Framework writes: attribute values that are text and Enum."""

    EXECUTE_TOOL = "execute_tool"


def span(
    name: str = "span",
    attributes: Mapping[str, object] | None = None,
    *,
    parent_id: int | None = 3,
    parent_is_remote: bool = False,
    limit: int | None = None,
) -> SpanRecord:
    return SpanRecord(
        name=name,
        trace_id=1,
        span_id=2,
        parent_id=parent_id,
        parent_is_remote=parent_is_remote,
        attributes=attributes or {},
        ended_ns=5,
        value_length_limit=limit,
    )


def read(record: SpanRecord) -> Step:
    step = read_step(record)
    assert step is not None
    return step


def genai_tool(attributes: Mapping[str, object], limit: int | None = None) -> SpanRecord:
    return span("execute_tool t", {OPERATION: "execute_tool", **attributes}, limit=limit)


def genai_llm(attributes: Mapping[str, object], limit: int | None = None) -> SpanRecord:
    return span("chat m", {OPERATION: "chat", **attributes}, limit=limit)


def openinference(
    kind: str, attributes: Mapping[str, object], limit: int | None = None
) -> SpanRecord:
    return span("span", {KIND: kind, **attributes}, limit=limit)


def traceloop_tool(attributes: Mapping[str, object], limit: int | None = None) -> SpanRecord:
    return span("t.tool", {TRACELOOP_KIND: "tool", **attributes}, limit=limit)


def answer(*parts: Mapping[str, object], finish_reason: str | None = "stop") -> str:
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def tool_message(content: object, **more: object) -> str:
    """What OpenInference writes for the answer of a LangChain tool."""
    data = {"content": content, "tool_call_id": "c1", "status": "success", "id": None, **more}
    return json.dumps({"type": "tool", "data": data})


@pytest.mark.parametrize(
    ("record", "kind", "name"),
    [
        # GenAI, by the operation
        (span("x", {OPERATION: "execute_tool", "gen_ai.tool.name": "search"}), "tool", "search"),
        (span("x", {OPERATION: Operation.EXECUTE_TOOL}), "tool", "x"),
        (span("x", {OPERATION: "chat", "gen_ai.request.model": "m"}), "llm", "m"),
        (span("x", {OPERATION: "chat", "gen_ai.response.model": "m"}), "llm", "m"),
        (span("x", {OPERATION: "chat"}), "llm", ""),
        (span("x", {OPERATION: "generate_content"}), "llm", ""),
        (span("x", {OPERATION: "text_completion"}), "llm", ""),
        (span("x", {OPERATION: "response"}), "llm", ""),
        (span("x", {OPERATION: "invoke_agent", "gen_ai.agent.name": "a"}), "agent", "a"),
        (span("x", {OPERATION: "invoke_agent"}), "agent", "x"),
        (span("x", {OPERATION: "invoke_workflow", "gen_ai.workflow.name": "w"}), "agent", "w"),
        (span("openai.chat", {"llm.request.type": "chat"}), "llm", ""),
        (span("openai.completion", {"llm.request.type": "completion"}), "llm", ""),
        # GenAI, by the span's name, as at the start of many packages' spans
        (span("execute_tool search"), "tool", "search"),
        (span("execute_tool search files"), "tool", "search files"),
        (span("chat gpt-5-mini"), "llm", "gpt-5-mini"),
        (span("generate_content gemini"), "llm", "gemini"),
        (span("text_completion davinci"), "llm", "davinci"),
        (span("invoke_agent planner"), "agent", "planner"),
        (span("invoke_agent"), "agent", "invoke_agent"),
        (span("invoke_workflow support"), "agent", "support"),
        # OpenInference
        (openinference("TOOL", {"tool.name": "search"}), "tool", "search"),
        (openinference("TOOL", {}), "tool", "span"),
        (span("search.run", {KIND: "TOOL"}), "tool", "search"),
        (span("search.__call__", {KIND: "TOOL"}), "tool", "search"),
        (openinference("LLM", {"llm.model_name": "m"}), "llm", "m"),
        (openinference("llm", {}), "llm", ""),
        (openinference("AGENT", {"agent.name": "a"}), "agent", "a"),
        (openinference("AGENT", {"graph.node.id": "a"}), "agent", "a"),
        (openinference("AGENT", {}), "agent", "span"),
        (span("graph", {KIND: "CHAIN"}, parent_id=None), "agent", "graph"),
        (span("graph", {KIND: "CHAIN"}, parent_is_remote=True), "agent", "graph"),
        # OpenLLMetry
        (span("search.tool", {TRACELOOP_KIND: "tool"}), "tool", "search"),
        (span("x", {TRACELOOP_KIND: "tool", "traceloop.entity.name": "t"}), "tool", "t"),
        (span("x", {TRACELOOP_KIND: "agent", "gen_ai.agent.name": "a"}), "agent", "a"),
        (span("x", {TRACELOOP_KIND: "workflow", "traceloop.workflow.name": "w"}), "agent", "w"),
        (span("x", {TRACELOOP_KIND: "workflow"}), "agent", "x"),
        (span("x", {TRACELOOP_KIND: "task", OPERATION: "chat"}), "llm", ""),
        # two conventions on one span: OpenInference, then OpenLLMetry, then GenAI
        (span("x", {KIND: "LLM", TRACELOOP_KIND: "tool", OPERATION: "execute_tool"}), "llm", ""),
        (span("x.tool", {TRACELOOP_KIND: "tool", OPERATION: "chat"}), "tool", "x"),
    ],
)
def test_kind_and_name(record: SpanRecord, kind: str, name: str):
    step = read(record)
    assert (step.kind, step.name) == (kind, name)


@pytest.mark.parametrize(
    "record",
    [
        span("GET /users"),
        span("chat"),
        span("chatter about models"),
        span("execute_task tools", {OPERATION: "execute_task", TRACELOOP_KIND: "task"}),
        span("invoke_agents_in_turn"),
        span("create_agent a", {OPERATION: "create_agent"}),
        span("embeddings m", {OPERATION: "embeddings"}),
        span("chat m", {OPERATION: "unknown"}),
        span("chat m", {OPERATION: 7}),
        span("chat m", {OPERATION: ["chat"]}),
        span("plan", {OPERATION: "plan"}),
        span("retrieval", {OPERATION: "retrieval"}),
        span("x", {"llm.request.type": "rerank"}),
        span("node", {KIND: "CHAIN"}),
        span("x", {KIND: "RETRIEVER"}),
        span("x", {KIND: 3}),
        span("x", {TRACELOOP_KIND: "task"}),
        span("x", {TRACELOOP_KIND: None}),
    ],
)
def test_nobodys_step(record: SpanRecord):
    assert read_step(record) is None


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


COMMAND = json.dumps(
    {"graph": None, "update": {"messages": [{"data": {"content": "added", "tool_call_id": "c1"}}]}}
)
"""A LangGraph tool that changes the graph's state answers inside a command."""


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


def test_usage_of_an_agent_is_the_sum_of_what_is_below_and_not_read():
    usage = {"llm.token_count.prompt": 7, "gen_ai.usage.input_tokens": 7}
    assert read(openinference("AGENT", usage)).input_tokens is None
    assert read(span("invoke_agent a", usage)).input_tokens is None


LANGCHAIN_INPUT = {
    "input_str": "{'q': 1}",
    "metadata": {"langgraph_step": 2},
    "inputs": {"q": 1},
    "kwargs": {"tool_call_id": "c1"},
}
LANGCHAIN_OUTPUT = {"output": {"lc": 1, "kwargs": {"content": "found", "tool_call_id": "c2"}}}


def without(name: str) -> str:
    return json.dumps({key: value for key, value in LANGCHAIN_INPUT.items() if key != name})


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({ARGUMENTS: '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({"traceloop.entity.input": '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({}, "arguments", UNKNOWN),
        ({ARGUMENTS: json.dumps(LANGCHAIN_INPUT)}, "arguments", {"q": 1}),
        ({ARGUMENTS: LANGCHAIN_INPUT}, "arguments", {"q": 1}),
        ({ARGUMENTS: without("inputs")}, "arguments", "{'q': 1}"),
        # A tool's own arguments may have such names.
        ({ARGUMENTS: without("metadata")}, "arguments", without("metadata")),
        ({ARGUMENTS: without("input_str")}, "arguments", without("input_str")),
        ({ARGUMENTS: '{"metadata"'}, "arguments", '{"metadata"'),
        ({ARGUMENTS: json.dumps(LANGCHAIN_INPUT)}, "call_id", "c1"),
        ({ARGUMENTS: without("kwargs")}, "call_id", None),
        ({RESULT: "found"}, "result", "found"),
        ({"traceloop.entity.output": "found"}, "result", "found"),
        ({RESULT: json.dumps(LANGCHAIN_OUTPUT)}, "result", "found"),
        ({RESULT: json.dumps(LANGCHAIN_OUTPUT)}, "call_id", "c2"),
        ({RESULT: json.dumps(LANGCHAIN_OUTPUT), CALL_ID: "c3"}, "call_id", "c3"),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
    ],
)
def test_openllmetry_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(traceloop_tool(attributes)), field) == expected


def test_openllmetry_agent():
    step = read(span("a.agent", {TRACELOOP_KIND: "agent", "gen_ai.agent.name": "a"}))
    assert step.agent == "a"


@pytest.mark.parametrize(
    ("record", "field", "expected"),
    [
        (genai_tool({ARGUMENTS: "12345"}, limit=5), "arguments", UNKNOWN),
        (genai_tool({ARGUMENTS: "1234"}, limit=5), "arguments", "1234"),
        (genai_tool({ARGUMENTS: {"q": ["12345"]}}, limit=5), "arguments", UNKNOWN),
        (
            genai_tool({ARGUMENTS: {"q": ["1234", 12345]}}, limit=5),
            "arguments",
            {"q": ["1234", 12345]},
        ),
        (genai_tool({ARGUMENTS: b"12345"}, limit=5), "arguments", UNKNOWN),
        (genai_tool({RESULT: "12345"}, limit=5), "result", UNKNOWN),
        (
            genai_llm({MESSAGES: ({"parts": ({"type": "text", "content": "12345"},)},)}, 5),
            "output",
            UNKNOWN,
        ),
        (genai_llm({DEFINITIONS: '[{"name": "a"}]'}, limit=15), "offered_tools", UNKNOWN),
        (openinference("TOOL", {"input.value": "12345"}, limit=5), "arguments", UNKNOWN),
        (
            openinference("LLM", {f"{ANSWER}.role": "a", f"{ANSWER}.content": "12345"}, limit=5),
            "output",
            UNKNOWN,
        ),
        (
            traceloop_tool({ARGUMENTS: {"metadata": 1, "input_str": 2, "inputs": "1234"}}, limit=5),
            "arguments",
            "1234",
        ),
    ],
)
def test_values_that_may_have_been_cut(record: SpanRecord, field: str, expected: object):
    assert getattr(read(record), field) == expected


def test_a_value_that_contains_itself_counts_as_cut():
    circle: list[object] = []
    circle.append(circle)
    assert read(genai_tool({ARGUMENTS: circle}, limit=5)).arguments is UNKNOWN


RAISED = SpanEventRecord(
    name="exception",
    attributes={"exception.type": "ValueError", "exception.message": "no such key"},
)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        # A recorded exception may have been handled.
        ({"events": [RAISED]}, None),
        ({"is_error": True}, "error"),
        ({"is_error": True, "status_message": "backend down"}, "backend down"),
        ({"is_error": True, "events": [RAISED]}, "ValueError: no such key"),
        (
            {"is_error": True, "events": [RAISED, SpanEventRecord(name="log")]},
            "ValueError: no such key",
        ),
        ({"is_error": True, "events": [SpanEventRecord(name="exception")]}, "error"),
        ({"attributes": {"error.type": "KeyError"}}, "KeyError"),
        ({"attributes": {"error.type": "_OTHER"}}, "error"),
        ({"attributes": {"error.type": "_OTHER"}, "status_message": "down"}, "down"),
        ({"attributes": {"error.type": "KeyError"}, "status_message": "down"}, "KeyError: down"),
        (
            {"attributes": {"error.type": "KeyError"}, "status_message": "KeyError: down"},
            "KeyError: down",
        ),
        (
            {"attributes": {"error.type": "tool_error"}, "events": [RAISED]},
            "ValueError: no such key",
        ),
    ],
)
def test_error(facts: dict[str, Any], expected: str | None):
    record = SpanRecord(name="execute_tool t", trace_id=1, span_id=2, **facts)
    assert read(record).error == expected


def test_times_and_identity():
    record = SpanRecord(
        name="chat m", trace_id=1, span_id=2, started_ns=1_500_000_000, ended_ns=2_000_000_000
    )
    step = read(record)
    assert (step.started_s, step.ended_s, step.span) == (1.5, 2.0, SpanKey(1, 2))


def test_a_span_that_has_just_started_has_no_end_and_may_have_no_start():
    step = read(SpanRecord(name="chat m", trace_id=1, span_id=2))
    assert (step.started_s, step.ended_s) == (None, None)


def test_another_dialect_goes_before_the_built_in_ones():
    def mine(record: SpanRecord, /) -> Step | None:
        return Step(kind="custom", error="mine") if record.name == "chat m" else None

    step = read_step(span("chat m", {"error.type": "KeyError"}), (mine, *BUILT_IN))
    assert step == Step(kind="custom", error="mine", ended_s=5e-9, span=SpanKey(1, 2))
    other = read_step(span("chat other"), (mine, *BUILT_IN))
    assert other is not None
    assert other.kind == "llm"


def test_mappings_need_not_be_dicts():
    attributes = MappingProxyType(
        {OPERATION: "execute_tool", ARGUMENTS: MappingProxyType({"q": "12345"})}
    )
    assert read(span("x", attributes, limit=5)).arguments is UNKNOWN

"""What is read from OpenLLMetry's names: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_input, read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import (
    ARGUMENTS,
    CALL_ID,
    RESULT,
    TRACELOOP_KIND,
    read,
    span,
    traceloop_tool,
)

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


MCP_INPUT = json.dumps({"tool_name": "search", "arguments": {"q": 1}})
FAILURE = "status='failure' result=None error='down' images=None"
SUCCESS = "status='success' result='found' error=None images=None"


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        # MCP
        ({"traceloop.entity.input": MCP_INPUT}, "arguments", {"q": 1}),
        ({"traceloop.entity.input": '{"tool_name": "x"}'}, "arguments", '{"tool_name": "x"}'),
        # Agno
        ({"traceloop.entity.output": FAILURE}, "error", FAILURE),
        ({"traceloop.entity.output": FAILURE}, "result", FAILURE),
        ({"traceloop.entity.output": SUCCESS}, "error", None),
        ({"traceloop.entity.output": SUCCESS}, "result", SUCCESS),
    ],
)
def test_what_is_wrapped_around_a_tool(
    attributes: Mapping[str, object], field: str, expected: object
):
    assert getattr(read(traceloop_tool(attributes)), field) == expected


def task(attributes: Mapping[str, object], name: str = "BaseWorkflowAgent.task") -> SpanRecord:
    mark = {TRACELOOP_KIND: "task", "traceloop.entity.name": name}
    return span(name, {**mark, **attributes})


def called(text: object, *, is_error: bool = False) -> dict[str, object]:
    output = {"blocks": [{"block_type": "text", "text": text}], "is_error": is_error}
    return {
        "tool.name": "search",
        "tool.arguments": '{"q": 1}',
        "traceloop.entity.output": json.dumps({"tool_id": "c1", "tool_output": output}),
    }


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        (called("found"), "kind", "tool"),
        (called("found"), "name", "search"),
        (called("found"), "arguments", '{"q": 1}'),
        (called("found"), "call_id", "c1"),
        (called("found"), "result", "found"),
        (called("found"), "error", None),
        (called("down", is_error=True), "error", "down"),
        ({"tool.name": "search"}, "result", UNKNOWN),
        ({"tool.name": "search"}, "call_id", None),
    ],
)
def test_a_task_in_which_llama_index_calls_a_tool(
    attributes: Mapping[str, object], field: str, expected: object
):
    assert getattr(read(task(attributes)), field) == expected


def asked_by_llama_index(*blocks: object) -> dict[str, object]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "m",
        "gen_ai.response.id": "r1",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 7,
        # Its tool calls are missing.
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "stop"}]',
        "traceloop.entity.output": json.dumps({"message": {"blocks": blocks}, "raw": {}}),
    }


LLAMA_INDEX_CALL = {
    "block_type": "tool_call",
    "tool_call_id": "c1",
    "tool_name": "search",
    "tool_kwargs": '{"q": 1}',
}


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        (asked_by_llama_index(), "kind", "llm"),
        (asked_by_llama_index(), "name", "m"),
        (asked_by_llama_index(), "response_id", "r1"),
        (asked_by_llama_index(), "finish_reasons", ("tool_call",)),
        (asked_by_llama_index(), "input_tokens", 7),
        (
            asked_by_llama_index(LLAMA_INDEX_CALL),
            "tool_calls",
            (ToolCall(name="search", arguments='{"q": 1}', call_id="c1"),),
        ),
        (asked_by_llama_index(LLAMA_INDEX_CALL), "output", ""),
        (asked_by_llama_index({"block_type": "text", "text": "done"}), "tool_calls", ()),
        (asked_by_llama_index({"block_type": "text", "text": "done"}), "output", "done"),
        ({"gen_ai.operation.name": "chat"}, "tool_calls", UNKNOWN),
        ({"gen_ai.operation.name": "chat"}, "output", UNKNOWN),
    ],
)
def test_a_task_in_which_llama_index_asks_a_model(
    attributes: Mapping[str, object], field: str, expected: object
):
    assert getattr(read(task(attributes, "OpenAILike.task")), field) == expected


@pytest.mark.parametrize("name", ["OpenAILike.task", "FunctionTool.task"])
def test_other_tasks_are_no_steps(name: str):
    assert read_step(task({"traceloop.entity.input": "{}"}, name)) is None


PACKAGES = "opentelemetry.instrumentation"


@pytest.mark.parametrize(
    ("name", "scope", "expected"),
    [
        ("search.tool", f"{PACKAGES}.agno", ("tool", "search")),
        ("assistant.agent", f"{PACKAGES}.agno", ("agent", "assistant")),
        ("FunctionAgent.workflow", f"{PACKAGES}.llamaindex", ("agent", "FunctionAgent")),
        ("search.tool", "traceloop.tracer", ("tool", "search")),
        ("OpenAILike.task", f"{PACKAGES}.llamaindex", None),
        ("ResponseStreamWriter", f"{PACKAGES}.mcp.instrumentation", None),
        ("tools/list.mcp", f"{PACKAGES}.mcp.instrumentation", None),
        ("search.tool", "my.app", None),
    ],
)
def test_a_span_without_attributes(name: str, scope: str, expected: tuple[str, str] | None):
    step = read_step(span(name, scope=scope))
    assert (step and (step.kind, step.name)) == expected


CREW = "total_tokens=360 prompt_tokens=300 cached_prompt_tokens=0 completion_tokens=60"


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.name": "a"}, "name", "a"),
        ({"traceloop.entity.name": "FunctionAgent.workflow"}, "name", "FunctionAgent"),
        ({}, "name", "a"),
        ({"gen_ai.usage.input_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.usage.output_tokens": 7}, "output_tokens", 7),
        ({"gen_ai.request.model": "m"}, "model", "m"),
        ({"crewai.crew.token_usage": CREW}, "input_tokens", 300),
        ({"crewai.crew.token_usage": CREW}, "output_tokens", 60),
        ({"crewai.crew.token_usage": "none"}, "input_tokens", None),
    ],
)
def test_openllmetry_agent(attributes: Mapping[str, object], field: str, expected: object):
    record = span("a.agent", {TRACELOOP_KIND: "agent", **attributes})
    assert getattr(read(record), field) == expected


ANSWER = "gen_ai.completion.0"
ASKED = {"llm.request.type": "chat", f"{ANSWER}.role": "assistant"}


def flat(attributes: Mapping[str, object]) -> SpanRecord:
    return span("openai.chat", {**ASKED, **attributes})


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.request.model": "m"}, "name", "m"),
        ({"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"}, "model", "m-1"),
        ({"gen_ai.system": "OpenAI"}, "provider", "OpenAI"),
        ({f"{ANSWER}.finish_reason": "stop"}, "finish_reasons", ("stop",)),
        ({"gen_ai.response.finish_reasons": ("length",)}, "finish_reasons", ("length",)),
        ({}, "finish_reasons", ()),
        ({"gen_ai.usage.prompt_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.usage.completion_tokens": 7}, "output_tokens", 7),
        ({"gen_ai.usage.cache_read_input_tokens": 7}, "cache_read_tokens", 7),
        ({"gen_ai.usage.reasoning_tokens": 7}, "reasoning_tokens", 7),
        ({"gen_ai.response.id": "r1"}, "response_id", "r1"),
        ({f"{ANSWER}.content": "done"}, "output", "done"),
        ({f"{ANSWER}.content": "done"}, "tool_calls", ()),
        (
            {
                f"{ANSWER}.tool_calls.0.id": "c1",
                f"{ANSWER}.tool_calls.0.name": "search",
                f"{ANSWER}.tool_calls.0.arguments": '{"q": 1}',
            },
            "tool_calls",
            (ToolCall(name="search", arguments='{"q": 1}', call_id="c1"),),
        ),
        ({f"{ANSWER}.tool_calls.0.arguments": "{}"}, "tool_calls", UNKNOWN),
        (
            {"llm.request.functions.0.name": "a", "llm.request.functions.1.name": "b"},
            "offered_tools",
            {"a", "b"},
        ),
        ({"llm.request.functions.0.name": 7}, "offered_tools", UNKNOWN),
        (  # present names come first
            {"llm.request.functions.0.name": "a", "gen_ai.tool.definitions": '[{"name": "b"}]'},
            "offered_tools",
            frozenset("b"),
        ),
        ({}, "offered_tools", UNKNOWN),
    ],
)
def test_a_model_call_in_flat_names(attributes: Mapping[str, object], field: str, expected: object):
    step = read(flat(attributes))
    assert (step.kind, getattr(step, field)) == ("llm", expected)


def test_an_embedding_in_flat_names_is_no_step():
    assert read_step(flat({"llm.request.type": "embedding"})) is None


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            flat({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "hello"}),
            ModelInput(spoken=True),
        ),
        (
            flat(
                {
                    "gen_ai.prompt.0.role": "assistant",
                    "gen_ai.prompt.1.role": "tool",
                    "gen_ai.prompt.1.tool_call_id": "c1",
                    "gen_ai.prompt.1.content": "found",
                }
            ),
            ModelInput(answers=(ToolAnswer(call_id="c1", result="found"),)),
        ),
        (flat({}), None),
        (span("x", {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "x"}), None),
    ],
)
def test_what_is_new_in_the_input(record: SpanRecord, expected: ModelInput | None):
    assert read_input(record) == expected

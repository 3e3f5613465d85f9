"""Which step a span is, and what is read alike in all dialects: one fact a row."""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import BUILT_IN, Dialect, Dialects, _dialect, read_step
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import SpanKey, Step
from tests.unit.written_spans import (
    ANSWER,
    ARGUMENTS,
    DEFINITIONS,
    KIND,
    MESSAGES,
    OPERATION,
    RESULT,
    TRACELOOP_KIND,
    genai_llm,
    genai_tool,
    openinference,
    read,
    span,
    traceloop_tool,
)


class Operation(str, enum.Enum):
    """What Microsoft's Agent Framework writes: attribute values that are text and Enum."""

    EXECUTE_TOOL = "execute_tool"


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
        (span("search.acall", {KIND: "TOOL"}), "tool", "search"),
        (openinference("LLM", {"llm.model_name": "m"}), "llm", "m"),
        (openinference("llm", {}), "llm", ""),
        (openinference("AGENT", {"agent.name": "a"}), "agent", "a"),
        (openinference("AGENT", {"gen_ai.agent.name": "a", "graph.node.id": "n"}), "agent", "a"),
        (openinference("AGENT", {"graph.node.name": "a", "graph.node.id": "n"}), "agent", "a"),
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
        span("step 1", {OPERATION: "agent_step"}),
        span("invoke_node n", {OPERATION: "invoke_node"}),
        span("fetch_response", {OPERATION: "fetch_response"}),
        span("await_human_input a", {OPERATION: "await_human_input"}),
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


def test_usage_of_an_agent_is_the_sum_of_what_is_below():
    usage = {"llm.token_count.prompt": 7, "gen_ai.usage.input_tokens": 7}
    assert read(span("invoke_agent a", usage)).input_tokens == 7


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
    array: list[object] = []
    array.append(array)
    mapping: dict[str, object] = {}
    mapping["self"] = mapping
    assert read(genai_tool({ARGUMENTS: array}, limit=5)).arguments is UNKNOWN
    assert read(genai_tool({ARGUMENTS: mapping}, limit=5)).arguments is UNKNOWN


RAISED = SpanEventRecord(
    name="exception",
    attributes={"exception.type": "ValueError", "exception.message": "no such key"},
)

RAISED_LAST = SpanEventRecord(
    name="exception", attributes={"exception.type": "OSError", "exception.message": "gone"}
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
        ({"is_error": True, "events": [RAISED, RAISED_LAST]}, "OSError: gone"),
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
    def read_mine(record: SpanRecord) -> Step | None:
        return Step(kind="custom", error="mine") if record.name == "chat m" else None

    mine = Dialect(name="mine", read=read_mine)
    dialects = Dialects((mine, *BUILT_IN))
    step = read_step(span("chat m", {"error.type": "KeyError"}), dialects)
    assert step == Step(kind="custom", error="mine", ended_s=5e-9, span=SpanKey(1, 2))
    other = read_step(span("chat other"), dialects)
    assert other is not None
    assert other.kind == "llm"


def test_mappings_need_not_be_dicts():
    attributes = MappingProxyType(
        {OPERATION: "execute_tool", ARGUMENTS: MappingProxyType({"q": "12345"})}
    )
    assert read(span("x", attributes, limit=5)).arguments is UNKNOWN


def test_what_is_remembered_of_spans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dialect, "KNOWN", 2)
    dialects: Any = Dialects(BUILT_IN)
    for _ in range(2):
        for record in (span("chat m"), genai_tool({ARGUMENTS: "{}"}), genai_llm({}), span("other")):
            assert [each.name for each in dialects.of(record)] == [
                each.name for each in Dialects(BUILT_IN).of(record)
            ]
    assert len(dialects._known) == 2

"""Whatever is on a span: a dialect returns a sound step or nothing, and never raises."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import BUILT_IN, Dialects, read_step
from otel_loopguard.dialects._inputs import model_input
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import ModelInput, Step, ToolCall

MARKS = {
    semconv.GEN_AI_OPERATION_NAME: ["execute_tool", "chat", "invoke_agent", "create_agent"],
    semconv.LLM_REQUEST_TYPE: ["chat", "embedding"],
    semconv.OPENINFERENCE_SPAN_KIND: ["TOOL", "LLM", "AGENT", "CHAIN", "RETRIEVER"],
    semconv.TRACELOOP_SPAN_KIND: ["tool", "agent", "workflow", "task"],
    semconv.MCP_METHOD_NAME: ["tools/call", "tools/list"],
    semconv.LANGSMITH_SPAN_KIND: ["llm", "tool", "chain", "prompt"],
    semconv.AI_OPERATION_ID: ["ai.generateText", "ai.streamText.doStream", "ai.toolCall"],
}
GEN_AI_SCOPES = [
    "agent_framework",
    "com.anthropic.claude_code.tracing",
    "gcp.vertex.agent",
    "opentelemetry.instrumentation.ag2",
    "strands.telemetry.tracer",
]
GEN_AI_NAMES = [
    "MCP send tools/call t",
    "call_llm",
    "chat",
    "chat m",
    "claude_code.tool",
    "execute_tool (merged)",
    "execute_tool t",
    "invocation",
    "invoke_agent",
    "invoke_swarm",
    "record_usage model_call",
    "span",
    "workflow.run",
]
EVENTS = [
    "exception",
    semconv.ASSISTANT_MESSAGE_EVENT,
    semconv.CHOICE_EVENT,
    semconv.CLAUDE_OUTPUT_EVENT,
    semconv.COMPLETION_EVENT,
    semconv.DETAILS_EVENT,
    semconv.PROMPT_EVENT,
    semconv.TOOL_MESSAGE_EVENT,
    semconv.USER_MESSAGE_EVENT,
]
READ = [
    name
    for name in vars(semconv).values()
    if isinstance(name, str)
    and name.startswith(
        (
            *("gen_ai.", "llm.", "traceloop.", "crewai.", "langsmith.", "ai.", "haystack."),
            *("tool", "input.", "output.", "error.", "gcp.", "ag2.", "mcp.", "workflow.", "full_"),
        )
    )
]
FLATTENED = [
    *(
        f"llm.output_messages.{message}.message.{rest}"
        for message in (0, 1)
        for rest in (
            "role",
            "content",
            "finish_reason",
            "contents.0.message_content.type",
            "contents.0.message_content.text",
            "tool_calls.0.tool_call.id",
            "tool_calls.0.tool_call.function.name",
            "tool_calls.0.tool_call.function.arguments",
        )
    ),
    *(
        f"{prefix}.{message}.{rest}"
        for prefix in ("gen_ai.prompt", "gen_ai.completion")
        for message in (0, 1)
        for rest in (
            "role",
            "content",
            "finish_reason",
            "tool_call_id",
            "tool_calls.0.id",
            "tool_calls.0.name",
            "tool_calls.0.arguments",
        )
    ),
    "llm.tools.0.tool.name",
    "llm.tools.0.tool.json_schema",
    *(
        f"llm.input_messages.{message}.{rest}"
        for message in (0, 1)
        for rest in ("message.role", "message.content", "message.tool_call_id", "function.0")
    ),
    "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content",
    "gen_ai.prompt.0.tool_call_id",
    "gen_ai.completion.0.role",
    "gen_ai.completion.0.finish_reason",
    "gen_ai.completion.0.tool_calls.0.name",
    "llm.request.functions.0.name",
]
NAMES = (
    "execute_tool t",
    "chat m",
    "invoke_agent",
    "t.tool",
    "a.run",
    "haystack.agent.run",
    "haystack.agent.step.llm",
    "haystack.agent.step.tool",
)
PREFIXES = ("execute_tool", "chat", "generate_content", "text_completion", "invoke_", "haystack.")
SCOPES = (
    "gcp.vertex.agent",
    "openinference.instrumentation.dspy",
    "openinference.instrumentation.langchain",
    "openinference.instrumentation.llama_index",
    "openinference.instrumentation.smolagents",
    "opentelemetry.instrumentation.agno",
)
PART_KEYS = ["parts", "type", "content", "name", "id", "arguments", "finish_reason", "function"]
MESSAGE_KEYS = [
    *("messages", "input", "role", "tool_call_id", "call_id", "tool_use_id", "toolCallId", "lc"),
    *("result", "value", "text", "replies", "generations", "choices", "message", "tool_calls"),
    *(
        "blocks",
        "block_type",
        "tool_output",
        "is_error",
        "tool_name",
        "args",
        "previous_response_id",
    ),
]
WRAPPER_KEYS = ["output", "data", "kwargs", "update", "messages", "tool_call_id", "status"]
RESPONSE_KEYS = ["tool_calls", "tool_use_id", "response", "result", "text"]
GEMINI_KEYS = [
    "candidates",
    "config",
    "contents",
    "function_call",
    "function_declarations",
    "function_response",
    "tools",
]
CONVERSE_KEYS = ["toolUse", "toolResult", "toolUseId", "input", "reasoningContent"]
INPUT_KEYS = ["metadata", "input_str", "inputs", "kwargs"]
WORDS = [
    "text",
    "user",
    "assistant",
    "tool",
    "tool_call",
    "tool_call_response",
    "success",
    "error",
    "__REDACTED__",
    "[",
    "{",
    '{"tool_call_id"',
    "7",
]
ROLES = ["user", "assistant", "tool", "function", "tool_result", "tool-result", "human", "chat"]


def with_marks(fact: dict[str, object], mark: dict[str, object]) -> Mapping[str, object]:
    return {**fact, **mark}


def read_only(mapping: Mapping[str, object]) -> Mapping[str, object]:
    return MappingProxyType(mapping)


texts = st.text() | st.sampled_from([*WORDS, *ROLES])
keys = (
    st.sampled_from(
        [
            *(*PART_KEYS, *WRAPPER_KEYS, *INPUT_KEYS, *MESSAGE_KEYS),
            *(*RESPONSE_KEYS, *GEMINI_KEYS, *CONVERSE_KEYS),
        ]
    )
    | st.text()
)
plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
json_values = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=8
)
values = (
    json_values
    | json_values.map(json.dumps)
    | st.recursive(
        plain | st.binary() | st.dates() | st.just(UNKNOWN),
        lambda inner: (
            st.lists(inner).map(tuple)
            | st.dictionaries(keys, inner).map(MappingProxyType)
            | st.dictionaries(st.integers(), inner)
        ),
        max_leaves=8,
    )
)
marks = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(known) | values for name, known in MARKS.items()}
)
facts = st.dictionaries(st.sampled_from([*READ, *FLATTENED]) | st.text(), values, max_size=12)
event_facts = facts | st.dictionaries(
    st.sampled_from(["message", "content", "finish_reason", "id", "output"]), values
)
messages: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "tool"]) | plain,
            "content": values,
            "parts": st.lists(st.dictionaries(keys, plain)) | values,
            "tool_calls": st.lists(st.dictionaries(keys, json_values)) | values,
        },
    )
)
attributes = st.builds(with_marks, facts, marks)
records = st.builds(
    SpanRecord,
    name=st.sampled_from([*GEN_AI_NAMES, *NAMES]) | st.text(),
    trace_id=st.just(1),
    span_id=st.just(2),
    parent_id=st.none() | st.just(3),
    parent_is_remote=st.booleans(),
    scope=st.sampled_from(["", *SCOPES, *GEN_AI_SCOPES]) | st.text(),
    attributes=attributes | attributes.map(read_only),
    events=st.lists(
        st.builds(
            SpanEventRecord, name=st.sampled_from(EVENTS) | st.text(), attributes=event_facts
        ),
        max_size=2,
    ),
    is_error=st.booleans(),
    status_message=st.text(),
    started_ns=st.integers(min_value=0),
    ended_ns=st.none() | st.integers(min_value=0),
    value_length_limit=st.none() | st.integers(min_value=0, max_value=20),
)


def is_whole(value: object, limit: int) -> bool:
    """Whether no text in `value` is as long as the limit."""
    if isinstance(value, (str, bytes)):
        return len(value) < limit
    items: Iterable[object] = ()
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).values()
    elif isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
    return all(is_whole(item, limit) for item in items)


def assert_sound(step: Step, limit: int | None) -> None:
    for value in (step.arguments, step.result):
        assert value is not None
        assert not (isinstance(value, str) and value == "__REDACTED__")
    for name in (step.name, step.agent, step.provider, step.model, step.response_id):
        assert type(name) is str
    for tokens in (
        step.input_tokens,
        step.output_tokens,
        step.cache_read_tokens,
        step.cache_write_tokens,
        step.reasoning_tokens,
    ):
        assert tokens is None or (type(tokens) is int and tokens >= 0)
    assert step.cost_usd is None or (math.isfinite(step.cost_usd) and step.cost_usd >= 0)
    assert all(type(reason) is str and reason for reason in step.finish_reasons)
    assert step.output is UNKNOWN or type(step.output) is str
    assert step.offered_tools is UNKNOWN or "" not in step.offered_tools
    assert step.tool_calls is UNKNOWN or all(type(call) is ToolCall for call in step.tool_calls)
    assert limit is None or is_whole((step.arguments, step.result), limit)


def assert_sound_input(heard: ModelInput, limit: int | None) -> None:
    assert type(heard.spoken) is bool
    assert type(heard.previous_response_id) is str
    for answer in heard.answers:
        assert type(answer.call_id) is str
        assert answer.call_id
        assert answer.result is not None
        assert limit is None or is_whole(answer.result, limit)


@given(record=records)
def test_each_dialect_reads_a_sound_step_or_none(record: SpanRecord):
    for dialect in BUILT_IN:
        step = dialect.read(record)
        if step is not None:
            assert_sound(step, record.value_length_limit)


@given(record=records)
def test_each_dialect_hears_a_sound_input_or_none(record: SpanRecord):
    for dialect in BUILT_IN:
        heard = dialect.read_input(record)
        if heard is not None:
            assert_sound_input(heard, record.value_length_limit)


@given(record=records)
def test_who_knows_a_span_is_asked_about_it(record: SpanRecord):
    asked = Dialects(BUILT_IN).of(record)
    for dialect in BUILT_IN:
        knows = dialect.read(record) is not None or dialect.read_input(record) is not None
        assert dialect in asked or not knows


@given(given=messages, limit=st.none() | st.integers(min_value=0, max_value=20))
def test_messages_are_heard_alike_as_text_and_as_a_structure(
    given: list[dict[str, Any]], limit: int | None
):
    try:
        as_text = json.dumps(given)
    except (TypeError, ValueError):
        as_text = None
    heard = [model_input(shown, limit) for shown in (given, as_text)]
    for one in heard:
        if one is not None:
            assert_sound_input(one, limit)
    if limit is None and as_text is not None and json.loads(as_text) == given:
        assert heard[0] == heard[1]


@given(record=records)
def test_a_step_has_the_identity_and_the_state_of_its_span(record: SpanRecord):
    step = read_step(record)
    if step is not None:
        assert step.span == (record.trace_id, record.span_id)
        assert (step.ended_s is None) is (not record.ended_ns)
        assert step.error is not None if record.is_error else True


@given(fact=facts, name=st.text().filter(lambda name: not name.startswith(PREFIXES)))
def test_a_span_without_a_mark_is_nobodys(fact: dict[str, object], name: str):
    unmarked = {key: value for key, value in fact.items() if key not in MARKS}
    assert read_step(SpanRecord(name=name, trace_id=1, span_id=2, attributes=unmarked)) is None

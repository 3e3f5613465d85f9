"""Spans for tests of dialects, written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from otel_loopguard.dialects import read_input, read_step
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import ModelInput, Step

OPERATION = "gen_ai.operation.name"
KIND = "openinference.span.kind"
TRACELOOP_KIND = "traceloop.span.kind"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
CALL_ID = "gen_ai.tool.call.id"
MESSAGES = "gen_ai.output.messages"
GIVEN = "gen_ai.input.messages"
DEFINITIONS = "gen_ai.tool.definitions"
REASONS = "gen_ai.response.finish_reasons"
ANSWER = "llm.output_messages.0.message"


def span(
    name: str = "span",
    attributes: Mapping[str, object] | None = None,
    *,
    parent_id: int | None = 3,
    parent_is_remote: bool = False,
    scope: str = "",
    limit: int | None = None,
    events: Sequence[SpanEventRecord] = (),
    ended_ns: int | None = 5,
) -> SpanRecord:
    return SpanRecord(
        name=name,
        trace_id=1,
        span_id=2,
        parent_id=parent_id,
        parent_is_remote=parent_is_remote,
        scope=scope,
        attributes=attributes or {},
        events=events,
        ended_ns=ended_ns,
        value_length_limit=limit,
    )


def read(record: SpanRecord) -> Step:
    step = read_step(record)
    assert step is not None
    return step


def hear(record: SpanRecord) -> ModelInput:
    heard = read_input(record)
    assert heard is not None
    return heard


def event(name: str, **attributes: object) -> SpanEventRecord:
    return SpanEventRecord(name=name, attributes=attributes)


def genai_tool(attributes: Mapping[str, object], limit: int | None = None) -> SpanRecord:
    return span("execute_tool t", {OPERATION: "execute_tool", **attributes}, limit=limit)


def genai_llm(attributes: Mapping[str, object], limit: int | None = None) -> SpanRecord:
    return span("chat m", {OPERATION: "chat", **attributes}, limit=limit)


def openinference(
    kind: str,
    attributes: Mapping[str, object],
    limit: int | None = None,
    *,
    name: str = "span",
    package: str = "",
) -> SpanRecord:
    scope = f"openinference.instrumentation.{package}"
    return span(name, {KIND: kind, **attributes}, scope=scope, limit=limit)


def traceloop_tool(attributes: Mapping[str, object], limit: int | None = None) -> SpanRecord:
    return span("t.tool", {TRACELOOP_KIND: "tool", **attributes}, limit=limit)


def answer(*parts: Mapping[str, object], finish_reason: str | None = "stop") -> str:
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def chat(content: object, *calls: object, finish_reason: str | None = None) -> str:
    """What a package writes that has the answer in the form of OpenAI's Chat API."""
    message = {"role": "assistant", "content": content, "finish_reason": finish_reason}
    return json.dumps([message | ({"tool_calls": calls} if calls else {})])


def tool_message(content: object, **more: object) -> str:
    """What OpenInference writes for the answer of a LangChain tool."""
    data = {"content": content, "tool_call_id": "c1", "status": "success", "id": None, **more}
    return json.dumps({"type": "tool", "data": data})

"""Haystack's own spans, as they stood in November 2026 (Haystack 3).

Source: recordings of its `Agent` with `HAYSTACK_CONTENT_TRACING_ENABLED`. No attribute is there
when a span starts, and without that variable none that tells of a model call.

Recognised by the span's name.

- `haystack.agent.run`: an agent. `haystack.agent.step` is a lap of its loop and no step.
- `haystack.agent.step.llm`: a model call; all that is known of it is in the JSON of
  `haystack.agent.step.llm.output` (`replies` with model, usage, finish reason, text, tool calls)
  and `.input` (messages, tools).
- `haystack.agent.step.tool`: `haystack.tool.name`, `haystack.agent.step.tool.input`, `.output`;
  `haystack.tool.error` is set where it failed, and the output is what went wrong. The call's id is
  not on the span.

Pipelines and their components have other spans, which are not read.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._said import Said, new_in
from otel_loopguard.dialects._tools import Definition, offered_names
from otel_loopguard.dialects._values import (
    Attributes,
    content,
    first_content,
    first_count,
    is_mapping,
    joined,
    parsed,
    text,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step, ToolAnswer, ToolCall

_AGENT = "haystack.agent.run"
_MODEL_CALL = "haystack.agent.step.llm"
_TOOL_CALL = "haystack.agent.step.tool"


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    tool_name: object = None
    arguments: object = None
    id: object = None


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    result: object = None
    origin: _Call = _Call()


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message: what it is shows in which field there is."""

    text: object = None
    reasoning: object = None
    tool_call: _Call | None = None
    tool_call_result: _Result | None = None


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    role: object = None
    meta: object = None
    content: list[_Part] = []


class _Output(msgspec.Struct, frozen=True, kw_only=True):
    replies: list[_Message]


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    name: object = None


class _Tool(msgspec.Struct, frozen=True, kw_only=True):
    data: _Named = _Named()


class _Given(msgspec.Struct, frozen=True, kw_only=True):
    messages: list[_Message]


class _Offered(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of the same: what is not named is passed over."""

    tools: list[_Tool] | None = None


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    error: str


_GIVEN = msgspec.json.Decoder(_Given)
_OFFERED = msgspec.json.Decoder(_Offered)
_OUTPUT = msgspec.json.Decoder(_Output)
_FAILURE = msgspec.json.Decoder(_Failure)


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if Haystack did not write it, or it is none."""
    reader = _READERS.get(record.name)
    return None if reader is None else reader(record)


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    shown = _input(record) if record.name == _MODEL_CALL else UNKNOWN
    given = None if shown is UNKNOWN else parsed(shown, _GIVEN)
    if given is None:
        return None
    return new_in(_said(message, record.value_length_limit) for message in reversed(given.messages))


def _agent(record: SpanRecord) -> Step:
    return Step(kind="agent", name=record.name)


def _tool(record: SpanRecord) -> Step:
    output = first_content(record, (semconv.HAYSTACK_TOOL_OUTPUT,))
    failed = record.attributes.get(semconv.HAYSTACK_TOOL_ERROR) is True
    failure = parsed(output, _FAILURE) if failed and output is not UNKNOWN else None
    return Step(
        kind="tool",
        name=text(record.attributes.get(semconv.HAYSTACK_TOOL_NAME)),
        arguments=first_content(record, (semconv.HAYSTACK_TOOL_INPUT,)),
        result=UNKNOWN if failed else output,
        error=(failure.error if failure else "error") if failed else None,
    )


def _llm(record: SpanRecord) -> Step:
    limit = record.value_length_limit
    output = first_content(record, (semconv.HAYSTACK_MODEL_OUTPUT,))
    answer = None if output is UNKNOWN else parsed(output, _OUTPUT)
    if answer is None or not answer.replies:
        return Step(kind="llm", offered_tools=_offered(record))
    parts = [part for reply in answer.replies for part in reply.content]
    meta = answer.replies[0].meta
    about: Attributes = meta if is_mapping(meta) else {}
    reason, model = text(about.get("finish_reason")), text(about.get("model"))
    step = Step(
        kind="llm",
        name=model,
        model=model,
        finish_reasons=(reason,) if reason else (),
        tool_calls=tuple(_call(part.tool_call, limit) for part in parts if part.tool_call),
        output=joined([content(part.text, limit) for part in parts if _is_said(part)]),
        offered_tools=_offered(record),
    )
    return _with_usage(step, about.get("usage"))


def _with_usage(step: Step, usage: object) -> Step:
    if not is_mapping(usage):
        return step
    details = usage.get("prompt_tokens_details")
    return msgspec.structs.replace(
        step,
        input_tokens=first_count(usage, ("prompt_tokens", "input_tokens")),
        output_tokens=first_count(usage, ("completion_tokens", "output_tokens")),
        cache_read_tokens=first_count(details, ("cached_tokens",)) if is_mapping(details) else None,
    )


def _input(record: SpanRecord) -> object:
    return first_content(record, (semconv.HAYSTACK_MODEL_INPUT,))


def _offered(record: SpanRecord) -> frozenset[str] | Unknown:
    shown = _input(record)
    given = None if shown is UNKNOWN else parsed(shown, _OFFERED)
    if given is None or given.tools is None:
        return UNKNOWN
    return offered_names(Definition(name=tool.data.name) for tool in given.tools)


def _is_said(part: _Part) -> bool:
    return part.tool_call is None and part.reasoning is None


def _call(call: _Call, limit: int | None) -> ToolCall:
    return ToolCall(
        name=text(call.tool_name),
        arguments=content(call.arguments, limit),
        call_id=text(call.id) or None,
    )


def _said(message: _Message, limit: int | None) -> Said:
    role = text(message.role)
    results = [part.tool_call_result for part in message.content if part.tool_call_result]
    return Said(
        by_model=role == "assistant",
        spoken=role == "user" and any(part.text for part in message.content),
        answers=tuple(
            ToolAnswer(call_id=call_id, result=content(answer.result, limit))
            for answer in results
            if (call_id := text(answer.origin.id))
        ),
    )


_READERS = {_AGENT: _agent, _MODEL_CALL: _llm, _TOOL_CALL: _tool}


DIALECT = Dialect(
    name="haystack",
    read=read,
    read_input=read_input,
    marks=Marks(words=frozenset({_AGENT, _MODEL_CALL, _TOOL_CALL})),
    vetoable=frozenset({("haystack", "tool"), ("haystack", "llm")}),
)

"""Vercel AI SDK, versions 4 to 6, as they stood in November 2026.

Source: recordings of `generateText` and `streamText` of version 6, with and without content; the
older names from its documentation. Version 7 writes the GenAI convention's names, and these only
with its legacy telemetry.

Recognised by `ai.operationId`.

- `ai.generateText`, `.streamText`, `.generateObject`, `.streamObject`: an agent, named by
  `ai.telemetry.functionId`, else by the span. `ai.usage.*` sums up the calls below it.
- `*.doGenerate`, `*.doStream`: a model call. `gen_ai.request.model`, else `ai.model.id`;
  `ai.response.model`; `gen_ai.system`, else `ai.model.provider`, both without the API after the
  dot; `ai.response.finishReason`, `.id`, `.text`, `.object`, `.toolCalls`; `ai.prompt.tools`;
  `ai.usage.*`.
- `ai.toolCall`: `ai.toolCall.name`, `.id`, `.args`, `.result`. A result that JSON says to be a text
  is read as that text, which is what the model is told.

What is new in a model's input is read from `ai.prompt.messages`, which is there at the start.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._said import requested
from otel_loopguard.dialects._tools import Definition, offered_names
from otel_loopguard.dialects._values import (
    Attributes,
    content,
    first_content,
    first_count,
    first_text,
    is_array,
    parsed,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step, ToolCall

_AGENTS = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
_MODEL_CALLS = (".doGenerate", ".doStream")
_MODEL = (semconv.GEN_AI_REQUEST_MODEL, semconv.AI_MODEL_ID)
_MODEL_THAT_ANSWERED = (semconv.AI_RESPONSE_MODEL, semconv.GEN_AI_RESPONSE_MODEL, *_MODEL)
_PROVIDER = (semconv.GEN_AI_SYSTEM, semconv.AI_MODEL_PROVIDER)
_RESPONSE_ID = (semconv.GEN_AI_RESPONSE_ID, semconv.AI_RESPONSE_ID)
_INPUT_TOKENS = (
    semconv.GEN_AI_USAGE_INPUT_TOKENS,
    semconv.AI_USAGE_INPUT,
    semconv.AI_USAGE_INPUT_OLD,
)
_OUTPUT_TOKENS = (
    semconv.GEN_AI_USAGE_OUTPUT_TOKENS,
    semconv.AI_USAGE_OUTPUT,
    semconv.AI_USAGE_OUTPUT_OLD,
)
_CACHE_READ_TOKENS = (semconv.AI_USAGE_CACHE_READ, semconv.AI_USAGE_CACHE_READ_OLD)
_CACHE_WRITE_TOKENS = (semconv.AI_USAGE_CACHE_WRITE,)
_REASONING_TOKENS = (semconv.AI_USAGE_REASONING, semconv.AI_USAGE_REASONING_OLD)
_OUTPUT = (semconv.AI_RESPONSE_TEXT, semconv.AI_RESPONSE_OBJECT)


class _Call(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    tool_name: object = None
    tool_call_id: object = None
    input: object = None
    args: object = None
    """The same, version 4."""


_CALLS = msgspec.json.Decoder(list[_Call])
_DEFINITION = msgspec.json.Decoder(Definition)
_TEXT = msgspec.json.Decoder(str)


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if the SDK did not write it, or it is none."""
    named = record.attributes.get(semconv.AI_OPERATION_ID)
    if named is None:
        return None
    operation = text(named)
    if operation.endswith(_MODEL_CALLS):
        return _llm(record)
    if operation == "ai.toolCall":
        return _tool(record)
    return _agent(record) if operation in _AGENTS else None


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    if semconv.AI_OPERATION_ID not in record.attributes:
        return None
    return requested(record.attributes.get(semconv.AI_PROMPT_MESSAGES), record.value_length_limit)


def _tool(record: SpanRecord) -> Step:
    result = first_content(record, (semconv.AI_TOOL_CALL_RESULT,))
    quoted = isinstance(result, str) and result.startswith('"')
    said = parsed(result, _TEXT) if quoted else None
    return Step(
        kind="tool",
        name=text(record.attributes.get(semconv.AI_TOOL_CALL_NAME)) or record.name,
        arguments=first_content(record, (semconv.AI_TOOL_CALL_ARGS,)),
        result=result if said is None else content(said, record.value_length_limit),
        call_id=text(record.attributes.get(semconv.AI_TOOL_CALL_ID)) or None,
        agent=text(record.attributes.get(semconv.AI_FUNCTION_ID)),
    )


def _llm(record: SpanRecord) -> Step:
    attributes = record.attributes
    output = first_content(record, _OUTPUT)
    calls = _calls(record, is_whole=output is not UNKNOWN)
    step = Step(
        kind="llm",
        name=first_text(attributes, _MODEL),
        finish_reasons=texts(attributes.get(semconv.AI_RESPONSE_FINISH_REASON)),
        tool_calls=calls,
        offered_tools=_offered(record),
        output=_said(record, output, calls),
        response_id=first_text(attributes, _RESPONSE_ID),
    )
    return _with_usage(step, attributes)


def _agent(record: SpanRecord) -> Step:
    name = text(record.attributes.get(semconv.AI_FUNCTION_ID))
    return _with_usage(Step(kind="agent", name=name or record.name), record.attributes)


def _with_usage(step: Step, attributes: Attributes) -> Step:
    return msgspec.structs.replace(
        step,
        agent=text(attributes.get(semconv.AI_FUNCTION_ID)),
        input_tokens=first_count(attributes, _INPUT_TOKENS),
        output_tokens=first_count(attributes, _OUTPUT_TOKENS),
        cache_read_tokens=first_count(attributes, _CACHE_READ_TOKENS),
        cache_write_tokens=first_count(attributes, _CACHE_WRITE_TOKENS),
        reasoning_tokens=first_count(attributes, _REASONING_TOKENS),
        provider=first_text(attributes, _PROVIDER).partition(".")[0],
        model=first_text(attributes, _MODEL_THAT_ANSWERED),
    )


def _calls(record: SpanRecord, *, is_whole: bool) -> tuple[ToolCall, ...] | Unknown:
    given = record.attributes.get(semconv.AI_RESPONSE_TOOL_CALLS)
    if given is None:
        return () if is_whole else UNKNOWN
    limit = record.value_length_limit
    shown = content(given, limit)
    read = None if shown is UNKNOWN else parsed(shown, _CALLS)
    if read is None:
        return UNKNOWN
    return tuple(
        ToolCall(
            name=text(call.tool_name),
            arguments=content(call.args if call.input is None else call.input, limit),
            call_id=text(call.tool_call_id) or None,
        )
        for call in read
    )


def _offered(record: SpanRecord) -> frozenset[str] | Unknown:
    given = content(record.attributes.get(semconv.AI_PROMPT_TOOLS), record.value_length_limit)
    if not is_array(given):
        return UNKNOWN
    return offered_names(parsed(tool, _DEFINITION) or Definition() for tool in given)


def _said(
    record: SpanRecord, output: object, calls: tuple[ToolCall, ...] | Unknown
) -> str | Unknown:
    if isinstance(output, str):
        return text(output)
    # A turn that only asks for tools has no text.
    only_asks = calls is not UNKNOWN and bool(calls)
    has_none = not any(name in record.attributes for name in _OUTPUT)
    return "" if only_asks and has_none else UNKNOWN


DIALECT = Dialect(
    name="vercel_ai",
    read=read,
    read_input=read_input,
    marks=Marks(attributes=frozenset({semconv.AI_OPERATION_ID})),
)

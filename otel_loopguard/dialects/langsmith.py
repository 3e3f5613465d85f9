"""LangSmith's export to OpenTelemetry, as it stood in November 2026 (langsmith 0.15).

Source: recordings of it on LangChain's `create_agent`, on a wrapped OpenAI client and on
`@traceable` functions, with `LANGSMITH_OTEL_ENABLED`. Its spans are made on a background thread
when all has happened; they begin without any attribute, and most parents end before their children
begin.

Recognised by `langsmith.span.kind`. The GenAI names that it has as well say less.

- tool: `gen_ai.tool.name`, else the span's name; `gen_ai.tool.call.id`; `gen_ai.prompt`;
  `gen_ai.completion`, where what the function returned is `output`, for LangChain a tool message.
- llm: `gen_ai.request.model`, `.response.model`, `.system`, `.usage.*`, `.response.id` and
  `.finish_reasons`, `.tool.definitions`; the answer, and what of the rest is missing, from the JSON
  in `gen_ai.completion` (LangChain's generations, OpenAI's chat completions); cached and reasoning
  tokens from `langsmith.metadata.usage_metadata`.
- chain: an agent where it is the root of this process, named as the span; no step elsewhere.
- all: `langsmith.metadata.lc_agent_name`.

What is new in a model's input is read from `gen_ai.prompt`.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._offered import offered_in
from otel_loopguard.dialects._provider_answers import model_answer_in
from otel_loopguard.dialects._said import requested
from otel_loopguard.dialects._tools import tool_answer
from otel_loopguard.dialects._values import (
    content,
    first_content,
    first_count,
    first_text,
    parsed,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

_MODEL = (semconv.GEN_AI_REQUEST_MODEL, semconv.GEN_AI_RESPONSE_MODEL)
_MODEL_THAT_ANSWERED = (semconv.GEN_AI_RESPONSE_MODEL, semconv.GEN_AI_REQUEST_MODEL)


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    cache_read: object = None
    cache_creation: object = None
    reasoning: object = None


class _Usage(msgspec.Struct, frozen=True, kw_only=True):
    input_token_details: _Details = _Details()
    output_token_details: _Details = _Details()


class _Returned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    output: object


_USAGE = msgspec.json.Decoder(_Usage)
_RETURNED = msgspec.json.Decoder(_Returned)


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if LangSmith did not write it, or it is none."""
    kind = record.attributes.get(semconv.LANGSMITH_SPAN_KIND)
    if kind is None:
        return None
    match text(kind):
        case "llm":
            return _llm(record)
        case "tool":
            return _tool(record)
        case "chain" if record.parent_id is None or record.parent_is_remote:
            return Step(kind="agent", name=record.name, agent=_agent_name(record))
        case _:
            return None


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    kind = record.attributes.get(semconv.LANGSMITH_SPAN_KIND)
    if kind is None or text(kind) != "llm":
        return None
    return requested(record.attributes.get(semconv.LANGSMITH_INPUT), record.value_length_limit)


def _tool(record: SpanRecord) -> Step:
    attributes, limit = record.attributes, record.value_length_limit
    output = first_content(record, (semconv.LANGSMITH_OUTPUT,))
    result, id_in_result = tool_answer(output, limit)
    returned = parsed(result, _RETURNED) if result is output and output is not UNKNOWN else None
    return Step(
        kind="tool",
        name=text(attributes.get(semconv.GEN_AI_TOOL_NAME)) or record.name,
        arguments=first_content(record, (semconv.LANGSMITH_INPUT,)),
        result=result if returned is None else content(returned.output, limit),
        call_id=text(attributes.get(semconv.GEN_AI_TOOL_CALL_ID)) or id_in_result,
        agent=_agent_name(record),
    )


def _llm(record: SpanRecord) -> Step:
    attributes, limit = record.attributes, record.value_length_limit
    answer = model_answer_in(first_content(record, (semconv.LANGSMITH_OUTPUT,)), limit)
    usage = parsed(attributes.get(semconv.LANGSMITH_USAGE), _USAGE) or _Usage()
    return Step(
        kind="llm",
        name=first_text(attributes, _MODEL),
        agent=_agent_name(record),
        finish_reasons=texts(attributes.get(semconv.GEN_AI_RESPONSE_FINISH_REASONS))
        or answer.finish_reasons,
        input_tokens=first_count(attributes, (semconv.GEN_AI_USAGE_INPUT_TOKENS,)),
        output_tokens=first_count(attributes, (semconv.GEN_AI_USAGE_OUTPUT_TOKENS,)),
        cache_read_tokens=_count(usage.input_token_details.cache_read),
        cache_write_tokens=_count(usage.input_token_details.cache_creation),
        reasoning_tokens=_count(usage.output_token_details.reasoning),
        offered_tools=offered_in(attributes.get(semconv.GEN_AI_TOOL_DEFINITIONS), limit),
        response_id=text(attributes.get(semconv.GEN_AI_RESPONSE_ID)) or answer.response_id,
        tool_calls=answer.tool_calls,
        output=answer.output,
        provider=text(attributes.get(semconv.GEN_AI_SYSTEM)),
        model=first_text(attributes, _MODEL_THAT_ANSWERED),
    )


def _agent_name(record: SpanRecord) -> str:
    return text(record.attributes.get(semconv.LANGSMITH_AGENT_NAME))


def _count(value: object) -> int | None:
    return first_count({"": value}, ("",))


DIALECT = Dialect(
    name="langsmith",
    read=read,
    read_input=read_input,
    marks=Marks(attributes=frozenset({semconv.LANGSMITH_SPAN_KIND})),
)

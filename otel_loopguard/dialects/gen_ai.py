"""OpenTelemetry's GenAI semantic conventions, as they stood in November 2026 (0.1.0 and before).

Sources: the conventions' pages on inference, tool and agent spans; recordings of the OpenTelemetry
`genai` and `v2` packages (OpenAI, Anthropic, LangChain, OpenAI Agents), of Pydantic AI (formats 2
to 6) and the Anthropic SDK, and of OpenLLMetry, whose model spans carry these names only.

Recognised by `gen_ai.operation.name`, else `llm.request.type` (OpenLLMetry before it took these
names), else by the first word of the span's name: some packages set no attribute when a span
starts, and a small attribute limit drops the oldest first.

- tool: `gen_ai.tool.name`, `.tool.call.id`, `.tool.call.arguments` and `.tool.call.result`
  (both opt-in; `tool_arguments` and `tool_response` in Pydantic AI's format 2).
- llm: `gen_ai.request.model`, `.response.model`, `.provider.name` (once `.system`),
  `.response.finish_reasons` (`.response.finish_reason`, `anthropic.message.stop_reason`),
  `.usage.*` with the older names, `operation.cost` (Pydantic AI), `.output.messages` and
  `.tool.definitions` (both opt-in). Input messages are not read: each span repeats all of them.
- agent: `gen_ai.agent.name`, else `.workflow.name`. Its usage is not read: it sums up the calls
  below it.
- all: `gen_ai.agent.name`, `gen_ai.agent.call.id` (Pydantic AI).
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._messages import model_answer
from otel_loopguard.dialects._tools import Definition, offered_names
from otel_loopguard.dialects._values import (
    content,
    first_amount,
    first_content,
    first_count,
    first_text,
    parsed,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

_TOOL_ARGUMENTS = (semconv.GEN_AI_TOOL_CALL_ARGUMENTS, semconv.PYDANTIC_TOOL_ARGUMENTS)
_TOOL_RESULT = (semconv.GEN_AI_TOOL_CALL_RESULT, semconv.PYDANTIC_TOOL_RESPONSE)
_NO_CALL_ID = "<not specified>"
"""What Google ADK writes for the call id of a tool that raised."""
_MODEL_ASKED_FOR = (semconv.GEN_AI_REQUEST_MODEL, semconv.GEN_AI_RESPONSE_MODEL)
_MODEL_THAT_ANSWERED = (semconv.GEN_AI_RESPONSE_MODEL, semconv.GEN_AI_REQUEST_MODEL)
_PROVIDER = (semconv.GEN_AI_PROVIDER_NAME, semconv.GEN_AI_SYSTEM)
_FINISH_REASONS = (
    semconv.GEN_AI_RESPONSE_FINISH_REASONS,
    semconv.GEN_AI_RESPONSE_FINISH_REASON,
    semconv.ANTHROPIC_STOP_REASON,
)
_INPUT_TOKENS = (semconv.GEN_AI_USAGE_INPUT_TOKENS, semconv.GEN_AI_USAGE_PROMPT_TOKENS)
_OUTPUT_TOKENS = (semconv.GEN_AI_USAGE_OUTPUT_TOKENS, semconv.GEN_AI_USAGE_COMPLETION_TOKENS)
_CACHE_READ_TOKENS = (semconv.GEN_AI_USAGE_CACHE_READ, semconv.GEN_AI_USAGE_CACHE_READ_OLD)
_CACHE_WRITE_TOKENS = (
    semconv.GEN_AI_USAGE_CACHE_WRITE,
    semconv.GEN_AI_USAGE_CACHE_CREATION,
    semconv.GEN_AI_USAGE_CACHE_WRITE_OLD,
    semconv.GEN_AI_USAGE_CACHE_CREATION_OLD,
)
_REASONING_TOKENS = (
    semconv.GEN_AI_USAGE_REASONING,
    semconv.GEN_AI_USAGE_REASONING_TRACELOOP,
    semconv.GEN_AI_USAGE_REASONING_PYDANTIC,
)
_AGENT_NAME = (semconv.GEN_AI_AGENT_NAME, semconv.GEN_AI_WORKFLOW_NAME)
_DEFINITIONS = msgspec.json.Decoder(list[Definition])


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if it is nobody's."""
    attributes = record.attributes
    operation = attributes.get(semconv.GEN_AI_OPERATION_NAME)
    if operation is None:
        operation = attributes.get(semconv.LLM_REQUEST_TYPE)
    if operation is None:
        if not record.name.startswith(_NAMES):
            return None
        operation = record.name.partition(" ")[0]
    reader = _READERS.get(text(operation))
    return None if reader is None else reader(record)


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    return None if record.attributes else None


def _tool(record: SpanRecord) -> Step:
    attributes = record.attributes
    call_id = text(attributes.get(semconv.GEN_AI_TOOL_CALL_ID))
    return Step(
        kind="tool",
        name=text(attributes.get(semconv.GEN_AI_TOOL_NAME)) or _name_in(record) or record.name,
        arguments=first_content(record, _TOOL_ARGUMENTS),
        result=first_content(record, _TOOL_RESULT),
        call_id=call_id if call_id not in ("", _NO_CALL_ID) else None,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def _llm(record: SpanRecord) -> Step:
    attributes = record.attributes
    reasons = (texts(attributes.get(name)) for name in _FINISH_REASONS)
    answer = model_answer(
        attributes.get(semconv.GEN_AI_OUTPUT_MESSAGES),
        next(filter(None, reasons), ()),
        record.value_length_limit,
    )
    definitions = content(
        attributes.get(semconv.GEN_AI_TOOL_DEFINITIONS), record.value_length_limit
    )
    offered = parsed(definitions, _DEFINITIONS) if definitions is not UNKNOWN else None
    return Step(
        kind="llm",
        name=first_text(attributes, _MODEL_ASKED_FOR) or _name_in(record),
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
        finish_reasons=answer.finish_reasons,
        input_tokens=first_count(attributes, _INPUT_TOKENS),
        output_tokens=first_count(attributes, _OUTPUT_TOKENS),
        cache_read_tokens=first_count(attributes, _CACHE_READ_TOKENS),
        cache_write_tokens=first_count(attributes, _CACHE_WRITE_TOKENS),
        reasoning_tokens=first_count(attributes, _REASONING_TOKENS),
        cost_usd=first_amount(attributes, (semconv.PYDANTIC_COST,)),
        tool_calls=answer.tool_calls,
        offered_tools=UNKNOWN if offered is None else offered_names(offered),
        output=answer.output,
        provider=first_text(attributes, _PROVIDER),
        model=first_text(attributes, _MODEL_THAT_ANSWERED),
    )


def _agent(record: SpanRecord) -> Step:
    attributes = record.attributes
    return Step(
        kind="agent",
        name=first_text(attributes, _AGENT_NAME) or _name_in(record) or record.name,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def _name_in(record: SpanRecord) -> str:
    # The convention's span names are `{operation} {name}`.
    operation, _, name = record.name.partition(" ")
    return name if operation in _READERS else ""


_READERS = {
    "execute_tool": _tool,
    "chat": _llm,
    "generate_content": _llm,
    "text_completion": _llm,
    "response": _llm,
    "completion": _llm,  # `llm.request.type` only
    "invoke_agent": _agent,
    "invoke_workflow": _agent,
}
_NAMES = (
    "execute_tool ",
    "chat ",
    "generate_content ",
    "text_completion ",
    "invoke_agent",
    "invoke_workflow",
)

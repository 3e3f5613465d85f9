"""Reads steps from OpenTelemetry's GenAI names, for `gen_ai` and for the frameworks that bend them.

What is read, and from where it is known, stands in `gen_ai`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._flattened import flattened_functions
from otel_loopguard.dialects._offered import offered_in
from otel_loopguard.dialects._shown import answer_shown, input_shown
from otel_loopguard.dialects._tools import tool_answer
from otel_loopguard.dialects._usage import summed_usage_of, usage_of
from otel_loopguard.dialects._values import (
    Attributes,
    first_content,
    first_text,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

_TOOL_ARGUMENTS = (
    semconv.GEN_AI_TOOL_CALL_ARGUMENTS,
    semconv.PYDANTIC_TOOL_ARGUMENTS,
    semconv.GEN_AI_PROMPT,
)
_TOOL_RESULT = (
    semconv.GEN_AI_TOOL_CALL_RESULT,
    semconv.PYDANTIC_TOOL_RESPONSE,
    semconv.ANTHROPIC_TOOL_RESULT,
    semconv.GEN_AI_COMPLETION,
)
_NO_CALL_ID = "<not specified>"
"""What Google ADK writes for the call id of a tool that raised."""
_MERGED = "(merged"
_MODEL_ASKED_FOR = (semconv.GEN_AI_REQUEST_MODEL, semconv.GEN_AI_RESPONSE_MODEL)
_MODEL_THAT_ANSWERED = (semconv.GEN_AI_RESPONSE_MODEL, semconv.GEN_AI_REQUEST_MODEL)
_PROVIDER = (semconv.GEN_AI_PROVIDER_NAME, semconv.GEN_AI_SYSTEM)
_FINISH_REASONS = (
    semconv.GEN_AI_RESPONSE_FINISH_REASONS,
    semconv.GEN_AI_RESPONSE_FINISH_REASON,
    semconv.ANTHROPIC_STOP_REASON,
    f"{semconv.GEN_AI_COMPLETION}.0.finish_reason",
)
_AGENT_NAME = (semconv.GEN_AI_AGENT_NAME, semconv.GEN_AI_WORKFLOW_NAME)


def tool_step(record: SpanRecord) -> Step:
    """Return the tool call that the span shows."""
    attributes = record.attributes
    call_id = text(attributes.get(semconv.GEN_AI_TOOL_CALL_ID))
    truncated = bool(attributes.get(semconv.ANTHROPIC_TRUNCATED))
    shown = UNKNOWN if truncated else first_content(record, _TOOL_RESULT)
    result, id_in_result = tool_answer(shown, record.value_length_limit)
    return Step(
        kind="tool",
        name=text(attributes.get(semconv.GEN_AI_TOOL_NAME)) or name_in(record) or record.name,
        arguments=first_content(record, _TOOL_ARGUMENTS),
        result=result,
        call_id=call_id if call_id not in ("", _NO_CALL_ID) else id_in_result,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def model_step(record: SpanRecord) -> Step:
    """Return the model call that the span shows."""
    attributes = record.attributes
    answer = answer_shown(record, _reasons_in(attributes))
    return Step(
        kind="llm",
        name=first_text(attributes, _MODEL_ASKED_FOR) or name_in(record),
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
        finish_reasons=answer.finish_reasons,
        tool_calls=answer.tool_calls,
        offered_tools=_offered(record),
        output=answer.output,
        response_id=text(attributes.get(semconv.GEN_AI_RESPONSE_ID)),
        provider=first_text(attributes, _PROVIDER),
        model=first_text(attributes, _MODEL_THAT_ANSWERED),
        **usage_of(attributes),
    )


def _offered(record: SpanRecord) -> frozenset[str] | Unknown:
    definitions = record.attributes.get(semconv.GEN_AI_TOOL_DEFINITIONS)
    if definitions is None and semconv.LLM_REQUEST_TYPE in record.attributes:
        return flattened_functions(record.attributes)
    return offered_in(definitions, record.value_length_limit)


def _reasons_in(attributes: Attributes) -> tuple[str, ...]:
    for name in _FINISH_REASONS:
        value = attributes.get(name)
        found = () if value is None else texts(value)
        if found:
            return found
    return ()


def agent_step(record: SpanRecord) -> Step:
    """Return the agent's invocation that the span shows, without what it has used."""
    attributes = record.attributes
    return Step(
        kind="agent",
        name=first_text(attributes, _AGENT_NAME) or name_in(record) or record.name,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def metered_agent_step(record: SpanRecord) -> Step:
    """Return the agent's invocation, with the sum of what was used below it."""
    attributes = record.attributes
    return msgspec.structs.replace(
        agent_step(record),
        provider=first_text(attributes, _PROVIDER),
        model=first_text(attributes, _MODEL_THAT_ANSWERED),
        **summed_usage_of(attributes),
    )


def _tool(record: SpanRecord) -> Step | None:
    step = tool_step(record)
    # Google ADK's span for the answers of parallel calls together; no tool may have such a name.
    return None if step.name.startswith(_MERGED) else step


READERS: dict[str, Callable[[SpanRecord], Step | None]] = {
    "execute_tool": _tool,
    "chat": model_step,
    "generate_content": model_step,
    "text_completion": model_step,
    "response": model_step,
    "completion": model_step,  # `llm.request.type` only
    "invoke_agent": metered_agent_step,
    "invoke_workflow": metered_agent_step,
}
"""What reads the step, by the operation. No step of their own are operations around model calls,
which have spans themselves (`plan`, `agent_step`, `invoke_node`), what is over at once
(`create_agent`), and what asks no language model (`embeddings`, `retrieval`, memories)."""
_NAMES = (
    "execute_tool ",
    "chat ",
    "generate_content ",
    "text_completion ",
    "invoke_agent",
    "invoke_workflow",
)


def step_of(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if it has none of the GenAI names."""
    reader = READERS.get(operation_of(record))
    return None if reader is None else reader(record)


def operation_of(record: SpanRecord) -> str:
    """Return what the span does in the convention's words, "" if it does not say."""
    attributes = record.attributes
    operation = attributes.get(semconv.GEN_AI_OPERATION_NAME)
    if operation is None:
        operation = attributes.get(semconv.LLM_REQUEST_TYPE)
    if operation is None:
        return record.name.partition(" ")[0] if record.name.startswith(_NAMES) else ""
    return text(operation)


def name_in(record: SpanRecord) -> str:
    """Return what a span's name says of the tool, model or agent."""
    # The convention's span names are `{operation} {name}`.
    operation, _, name = record.name.partition(" ")
    return name if operation in READERS else ""


def input_of(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    heard = input_shown(record)
    previous = text(record.attributes.get(semconv.GEN_AI_PREVIOUS_RESPONSE))
    if not previous:
        return heard
    return msgspec.structs.replace(heard or ModelInput(), previous_response_id=previous)

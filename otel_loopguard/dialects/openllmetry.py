"""OpenLLMetry (Traceloop), as it stood in November 2026.

Source: recordings of Traceloop's packages for LangChain, OpenAI Agents, CrewAI and MCP.

Recognised by `traceloop.span.kind`: tool, agent, workflow. A task is a part of a workflow and no
step, and model spans have no kind: both are left to the GenAI convention's names on the same span.

- tool: `gen_ai.tool.name`, else `traceloop.entity.name`; `gen_ai.tool.call.id`, `.arguments`,
  `.result`, else `traceloop.entity.input`, `.output`.
- agent: `gen_ai.agent.name`, else `traceloop.entity.name`, else `traceloop.workflow.name`.

For LangChain's tools the input is everything that the callback was given, with step numbers and
checkpoint ids, and the output is the serialised tool message. What is the tool's own is taken out
of them: `inputs` (else `input_str`, the same as text), and the message's content.
"""

from __future__ import annotations

from otel_loopguard import semconv
from otel_loopguard.dialects._tools import structure, tool_answer
from otel_loopguard.dialects._values import content, first_content, first_text, is_mapping, text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_TOOL_NAME = (semconv.GEN_AI_TOOL_NAME, semconv.TRACELOOP_ENTITY_NAME)
_ARGUMENTS = (semconv.GEN_AI_TOOL_CALL_ARGUMENTS, semconv.TRACELOOP_ENTITY_INPUT)
_RESULT = (semconv.GEN_AI_TOOL_CALL_RESULT, semconv.TRACELOOP_ENTITY_OUTPUT)
_AGENT_NAME = (
    semconv.GEN_AI_AGENT_NAME,
    semconv.TRACELOOP_ENTITY_NAME,
    semconv.TRACELOOP_WORKFLOW_NAME,
)


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if OpenLLMetry did not write it, or it is none."""
    kind = record.attributes.get(semconv.TRACELOOP_SPAN_KIND)
    if kind is None:
        return None
    match text(kind):
        case "tool":
            return _tool(record)
        case "agent" | "workflow":
            return _agent(record)
        case _:
            return None


def _tool(record: SpanRecord) -> Step:
    attributes = record.attributes
    arguments, id_in_input = _tool_input(
        first_content(record, _ARGUMENTS), record.value_length_limit
    )
    result, id_in_result = tool_answer(first_content(record, _RESULT), record.value_length_limit)
    return Step(
        kind="tool",
        name=first_text(attributes, _TOOL_NAME) or record.name.removesuffix(".tool"),
        arguments=arguments,
        result=result,
        call_id=text(attributes.get(semconv.GEN_AI_TOOL_CALL_ID)) or id_in_result or id_in_input,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
    )


def _agent(record: SpanRecord) -> Step:
    return Step(
        kind="agent",
        name=first_text(record.attributes, _AGENT_NAME) or record.name,
        agent=text(record.attributes.get(semconv.GEN_AI_AGENT_NAME)),
    )


def _tool_input(arguments: object, limit: int | None) -> tuple[object, str | None]:
    # "metadata" tells what a LangChain callback was given from a tool's own argument `inputs`.
    if isinstance(arguments, str) and '"metadata"' not in arguments:
        return arguments, None
    given = structure(arguments)
    if not (is_mapping(given) and "metadata" in given and "input_str" in given):
        return arguments, None
    inputs = given.get("inputs")
    about = given.get("kwargs")
    call_id = text(about.get("tool_call_id")) if is_mapping(about) else ""
    return content(given["input_str"] if inputs is None else inputs, limit), call_id or None

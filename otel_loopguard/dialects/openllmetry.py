"""OpenLLMetry (Traceloop), as it stood in November 2026.

Source: recordings of Traceloop's packages for LangChain, OpenAI Agents, CrewAI, Agno, LlamaIndex
and MCP.

Recognised by `traceloop.span.kind`: tool, agent, workflow. A task is a part of a workflow and no
step, except that LlamaIndex calls its tools in one (it has `tool.name`), and its model in one (it
has a `gen_ai.operation.name`). Where a span begins without any attribute, its name ends in the
kind.

- tool: `gen_ai.tool.name`, else `traceloop.entity.name`, `tool.name` (LlamaIndex);
  `gen_ai.tool.call.id`, `.arguments`, `.result`, else `traceloop.entity.input`, `.output`.
- agent: `gen_ai.agent.name`, else `traceloop.entity.name`, else `traceloop.workflow.name`, and as
  its usage `gen_ai.usage.*`, else `crewai.crew.token_usage`: what the calls below it have used.
- llm: other model spans have no kind and are left to the GenAI convention's names on them, of which
  some are older ones.
"""

from __future__ import annotations

import re

import msgspec

from otel_loopguard import semconv
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gen_ai import metered_agent_step, model_step
from otel_loopguard.dialects._llama_index import outcome, requests
from otel_loopguard.dialects._traceloop import unwrapped_input, unwrapped_output
from otel_loopguard.dialects._values import (
    first_content,
    first_text,
    text,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_TOOL_NAME = (
    semconv.GEN_AI_TOOL_NAME,
    semconv.TRACELOOP_TASK_TOOL,
    semconv.TRACELOOP_ENTITY_NAME,
)
_ARGUMENTS = (
    semconv.GEN_AI_TOOL_CALL_ARGUMENTS,
    semconv.TRACELOOP_TASK_ARGUMENTS,
    semconv.TRACELOOP_ENTITY_INPUT,
)
_RESULT = (semconv.GEN_AI_TOOL_CALL_RESULT, semconv.TRACELOOP_ENTITY_OUTPUT)
_AGENT_NAME = (
    semconv.GEN_AI_AGENT_NAME,
    semconv.TRACELOOP_ENTITY_NAME,
    semconv.TRACELOOP_WORKFLOW_NAME,
)
_MODEL_CALLS = frozenset({"chat", "completion"})
_PACKAGES = ("opentelemetry.instrumentation.", "traceloop.")
_KINDS_IN_NAMES = (".tool", ".agent", ".workflow")
_CREW_USAGE = re.compile(r"\bprompt_tokens=(\d{1,18}) .*\bcompletion_tokens=(\d{1,18})\b")


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if OpenLLMetry did not write it, or it is none."""
    kind = record.attributes.get(semconv.TRACELOOP_SPAN_KIND)
    match _kind_in_name(record) if kind is None else text(kind):
        case "tool":
            return _tool(record)
        case "agent" | "workflow":
            return _agent(record)
        case "task":
            return _task(record)
        case _:
            return None


def _kind_in_name(record: SpanRecord) -> str:
    if not record.name.endswith(_KINDS_IN_NAMES) or not record.scope.startswith(_PACKAGES):
        return ""
    return record.name.rpartition(".")[2]


def _task(record: SpanRecord) -> Step | None:
    if semconv.TRACELOOP_TASK_TOOL in record.attributes:
        return _tool(record)
    if text(record.attributes.get(semconv.GEN_AI_OPERATION_NAME)) not in _MODEL_CALLS:
        return None
    # The answer that LlamaIndex's package writes leaves out the tool calls.
    answer = first_content(record, (semconv.TRACELOOP_ENTITY_OUTPUT,))
    calls, output = requests(answer, record.value_length_limit)
    return msgspec.structs.replace(model_step(record), tool_calls=calls, output=output)


def _tool(record: SpanRecord) -> Step:
    attributes = record.attributes
    limit = record.value_length_limit
    arguments, id_in_input = unwrapped_input(first_content(record, _ARGUMENTS), limit)
    output = first_content(record, _RESULT)
    came_out = (
        outcome(output, limit)
        if semconv.TRACELOOP_TASK_TOOL in attributes
        else unwrapped_output(output, limit)
    )
    return Step(
        kind="tool",
        name=first_text(attributes, _TOOL_NAME) or record.name.removesuffix(".tool"),
        arguments=arguments,
        result=came_out.result,
        error=came_out.error,
        call_id=text(attributes.get(semconv.GEN_AI_TOOL_CALL_ID))
        or came_out.call_id
        or id_in_input,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
    )


def _agent(record: SpanRecord) -> Step:
    attributes = record.attributes
    # The name ends so where it is the span's; what begins without attributes has no other.
    name = first_text(attributes, _AGENT_NAME) or record.name
    step = msgspec.structs.replace(
        metered_agent_step(record), name=name.removesuffix(".agent").removesuffix(".workflow")
    )
    used = _CREW_USAGE.search(text(attributes.get(semconv.TRACELOOP_CREW_USAGE)))
    if used is None:
        return step
    return msgspec.structs.replace(step, input_tokens=int(used[1]), output_tokens=int(used[2]))


DIALECT = Dialect(
    name="openllmetry",
    read=read,
    marks=Marks(attributes=frozenset({semconv.TRACELOOP_SPAN_KIND}), endings=_KINDS_IN_NAMES),
)

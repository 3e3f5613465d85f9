"""OpenLLMetry (Traceloop), as it stood in November 2026.

Sources: recordings of Traceloop's packages for LangChain, OpenAI Agents, CrewAI, Agno, LlamaIndex
and MCP; for the flattened names that its model spans had before, its semantic conventions of 2025.

Recognised by `traceloop.span.kind`: tool, agent, workflow. A task is a part of a workflow and no
step, except that LlamaIndex calls its tools in one (it has `tool.name`), and its model in one (it
has a `gen_ai.operation.name`). Where a span begins without any attribute, its name ends in the
kind.

- tool: `gen_ai.tool.name`, else `traceloop.entity.name`, `tool.name` (LlamaIndex);
  `gen_ai.tool.call.id`, `.arguments`, `.result`, else `traceloop.entity.input`, `.output`.
- agent: `gen_ai.agent.name`, else `traceloop.entity.name`, else `traceloop.workflow.name`, and as
  its usage `gen_ai.usage.*`, else `crewai.crew.token_usage`: what the calls below it have used.
- llm: other model spans have no kind and are left to the GenAI convention's names on them, except
  for those with `llm.request.type` and, flattened, `gen_ai.prompt.N.*`, `gen_ai.completion.N.*` or
  `llm.request.functions.N.name`. What is new in their input is read from the first of these.
"""

from __future__ import annotations

import re

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._flattened import (
    Layout,
    flattened_answer,
    flattened_input,
    numbered,
)
from otel_loopguard.dialects._llama_index import outcome, requests
from otel_loopguard.dialects._marks import Marks
from otel_loopguard.dialects._traceloop import unwrapped_input, unwrapped_output
from otel_loopguard.dialects._values import (
    Attributes,
    first_content,
    first_count,
    first_text,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

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
_MODEL = (semconv.GEN_AI_REQUEST_MODEL, semconv.GEN_AI_RESPONSE_MODEL)
_MODEL_THAT_ANSWERED = (semconv.GEN_AI_RESPONSE_MODEL, semconv.GEN_AI_REQUEST_MODEL)
_PROVIDER = (semconv.GEN_AI_PROVIDER_NAME, semconv.GEN_AI_SYSTEM)
_INPUT_TOKENS = (semconv.GEN_AI_USAGE_INPUT_TOKENS, semconv.GEN_AI_USAGE_PROMPT_TOKENS)
_OUTPUT_TOKENS = (semconv.GEN_AI_USAGE_OUTPUT_TOKENS, semconv.GEN_AI_USAGE_COMPLETION_TOKENS)
_CACHE_READ_TOKENS = (semconv.GEN_AI_USAGE_CACHE_READ, semconv.GEN_AI_USAGE_CACHE_READ_OLD)
_REASONING_TOKENS = (semconv.GEN_AI_USAGE_REASONING, semconv.GEN_AI_USAGE_REASONING_TRACELOOP)
_FLAT = (
    f"{semconv.TRACELOOP_COMPLETION}.0.finish_reason",
    f"{semconv.TRACELOOP_COMPLETION}.0.role",
    f"{semconv.TRACELOOP_PROMPT}.0.role",
)
_MODEL_CALLS = frozenset({"chat", "completion"})
_LAYOUT = Layout()
_PACKAGES = ("opentelemetry.instrumentation.", "traceloop.")
_KINDS_IN_NAMES = (".tool", ".agent", ".workflow")
_CREW_USAGE = re.compile(r"\bprompt_tokens=(\d+) .*\bcompletion_tokens=(\d+)")

MARKS = Marks(
    attributes=frozenset({semconv.TRACELOOP_SPAN_KIND, semconv.LLM_REQUEST_TYPE}),
    endings=_KINDS_IN_NAMES,
)


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if OpenLLMetry did not write it, or it is none."""
    kind = record.attributes.get(semconv.TRACELOOP_SPAN_KIND)
    if kind is None and semconv.LLM_REQUEST_TYPE in record.attributes:
        return _llm(record) if _is_flat(record.attributes) else None
    match _kind_in_name(record) if kind is None else text(kind):
        case "tool":
            return _tool(record)
        case "agent" | "workflow":
            return _agent(record)
        case "task":
            return _task(record)
        case _:
            return None


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    if semconv.LLM_REQUEST_TYPE not in record.attributes:
        return None
    return flattened_input(
        record.attributes, semconv.TRACELOOP_PROMPT, _LAYOUT, record.value_length_limit
    )


def _kind_in_name(record: SpanRecord) -> str:
    if not record.name.endswith(_KINDS_IN_NAMES) or not record.scope.startswith(_PACKAGES):
        return ""
    return record.name.rpartition(".")[2]


def _is_flat(attributes: Attributes) -> bool:
    kind = attributes.get(semconv.LLM_REQUEST_TYPE)
    return text(kind) in _MODEL_CALLS and any(name in attributes for name in _FLAT)


def _task(record: SpanRecord) -> Step | None:
    if semconv.TRACELOOP_TASK_TOOL in record.attributes:
        return _tool(record)
    if text(record.attributes.get(semconv.GEN_AI_OPERATION_NAME)) not in _MODEL_CALLS:
        return None
    # The answer that LlamaIndex's package writes leaves out the tool calls.
    answer = first_content(record, (semconv.TRACELOOP_ENTITY_OUTPUT,))
    calls, output = requests(answer, record.value_length_limit)
    return msgspec.structs.replace(_llm(record), tool_calls=calls, output=output)


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
    step = Step(kind="agent", name=name.removesuffix(".agent").removesuffix(".workflow"))
    used = _CREW_USAGE.search(text(attributes.get(semconv.TRACELOOP_CREW_USAGE)))
    if used is None:
        return _with_usage(step, attributes)
    return _with_usage(
        step,
        {
            **attributes,
            semconv.GEN_AI_USAGE_INPUT_TOKENS: used[1],
            semconv.GEN_AI_USAGE_OUTPUT_TOKENS: used[2],
        },
    )


def _llm(record: SpanRecord) -> Step:
    attributes, limit = record.attributes, record.value_length_limit
    answer = flattened_answer(attributes, semconv.TRACELOOP_COMPLETION, _LAYOUT, limit)
    reason = text(attributes.get(f"{semconv.TRACELOOP_COMPLETION}.0.finish_reason"))
    functions = numbered(attributes, semconv.TRACELOOP_FUNCTIONS, ".name")
    offered = frozenset(text(attributes[f"{function}.name"]) for function in functions)
    step = Step(
        kind="llm",
        name=first_text(attributes, _MODEL),
        finish_reasons=texts(attributes.get(semconv.GEN_AI_RESPONSE_FINISH_REASONS))
        or ((reason,) if reason else ()),
        tool_calls=answer.tool_calls,
        offered_tools=UNKNOWN if "" in offered or not offered else offered,
        output=answer.output,
        response_id=text(attributes.get(semconv.GEN_AI_RESPONSE_ID)),
    )
    return _with_usage(step, attributes)


def _with_usage(step: Step, attributes: Attributes) -> Step:
    return msgspec.structs.replace(
        step,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        input_tokens=first_count(attributes, _INPUT_TOKENS),
        output_tokens=first_count(attributes, _OUTPUT_TOKENS),
        cache_read_tokens=first_count(attributes, _CACHE_READ_TOKENS),
        reasoning_tokens=first_count(attributes, _REASONING_TOKENS),
        provider=first_text(attributes, _PROVIDER).lower(),
        model=first_text(attributes, _MODEL_THAT_ANSWERED),
    )

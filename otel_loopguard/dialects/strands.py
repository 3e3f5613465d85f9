"""Strands Agents, as it stood in November 2026 (1.62).

Sources: its `telemetry/tracer.py`; recordings of all three ways in which it writes content.

Recognised by the scope `strands.telemetry.tracer`; at the start a span has nothing but its name.
The GenAI names are read as everywhere. What differs:

- content stands in span events unless `gen_ai_span_attributes_only` is set. A tool's arguments are
  `content` of `gen_ai.tool.message`, its result `message` of `gen_ai.choice`; what a model answered
  is `gen_ai.choice` too, what it was given the events `gen_ai.*.message`, as blocks of Bedrock's
  Converse API (`text`, `toolUse`, `toolResult`). With `gen_ai_latest_experimental` the messages of
  the conventions stand in events, and a tool's arguments and result on the span, this only if it
  did not fail.
- agent: `invoke_agent`, and `invoke_swarm` or `invoke_graph` around several. Their usage is that of
  the agent object over all its invocations, and not read.
- `execute_event_loop_cycle` is a turn, and no step.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._converse import converse_answer, converse_input
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gen_ai import agent_step, input_of, model_step, tool_step
from otel_loopguard.dialects._messages import model_answer
from otel_loopguard.dialects._values import content, text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

_SCOPE = "strands.telemetry.tracer"


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if Strands did not write it, or it is none."""
    if record.scope != _SCOPE:
        return None
    match _operation(record):
        case "execute_tool":
            return _tool(record)
        case "chat":
            return _model_call(record)
        case "invoke_agent" | "invoke_swarm" | "invoke_graph":
            return agent_step(record)
        case _:
            return None


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    if record.scope != _SCOPE or _operation(record) != "chat":
        return None
    given = converse_input(record)
    return input_of(record) if given is None else given


def _operation(record: SpanRecord) -> str:
    operation = text(record.attributes.get(semconv.GEN_AI_OPERATION_NAME))
    return operation or record.name.partition(" ")[0]


def _tool(record: SpanRecord) -> Step:
    step = tool_step(record)
    arguments = step.arguments
    if arguments is UNKNOWN:
        arguments = _in_event(record, semconv.TOOL_MESSAGE_EVENT, "content")
    result = step.result
    if result is UNKNOWN:
        result = _in_event(record, semconv.CHOICE_EVENT, "message")
    return msgspec.structs.replace(step, arguments=arguments, result=result)


def _model_call(record: SpanRecord) -> Step:
    step, limit = model_step(record), record.value_length_limit
    blocks = converse_answer(record)
    if blocks is None:
        return step
    answer = model_answer(blocks, step.finish_reasons, limit)
    return msgspec.structs.replace(
        step,
        tool_calls=answer.tool_calls,
        output=answer.output,
        finish_reasons=answer.finish_reasons,
    )


def _in_event(record: SpanRecord, name: str, attribute: str) -> object:
    for event in record.events:
        if event.name == name:
            return content(event.attributes.get(attribute), record.value_length_limit)
    return UNKNOWN


DIALECT = Dialect(
    name="strands",
    read=read,
    read_input=read_input,
    marks=Marks(scopes=frozenset({_SCOPE})),
    vetoable=frozenset({(_SCOPE, "tool"), (_SCOPE, "llm")}),
)

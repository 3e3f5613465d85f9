"""Google's Agent Development Kit, as it stood in November 2026 (2.13).

Sources: its `telemetry` package; recordings with both of its schemas.

Recognised by the scope `gcp.vertex.agent`. Its spans have the GenAI names, which are read as
everywhere, and these peculiarities:

- `invocation`, the root in the first schema, has no attributes: an agent by its name.
- `call_llm`, in the first schema around `generate_content` (before ADK 2 in its stead), has no
  operation, and attributes only if the model has answered: `gen_ai.*` as in a model call, the
  answer from `gcp.vertex.agent.llm_response`, the tools offered and what is new in the input from
  `gcp.vertex.agent.llm_request`. It ends after the tools that its answer asked for.
- both of them name the answer in `gcp.vertex.agent.event_id`, which so tells that it is one.
- tool, first schema: `gcp.vertex.agent.tool_call_args` and `.tool_response`. Both are `{}` where
  content was not to be captured, and the result is `<not specified>` where the tool raised.
- the tool `(merged tools)` joins the answers of parallel calls, and is none itself.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gemini import gemini_answer, gemini_input, gemini_tools
from otel_loopguard.dialects._gen_ai import agent_step, input_of, model_step, step_of
from otel_loopguard.dialects._tools import structure
from otel_loopguard.dialects._values import first_content, text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

_SCOPE = "gcp.vertex.agent"
_MODEL_CALL = "call_llm"
_ARGUMENTS = (semconv.ADK_TOOL_ARGUMENTS,)
_RESULT = (semconv.ADK_TOOL_RESPONSE,)
_REQUEST = (semconv.ADK_REQUEST,)
_RESPONSE = (semconv.ADK_RESPONSE,)
_NO_RESULT = {"result": "<not specified>"}


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if ADK did not write it, or it is none."""
    if record.scope != _SCOPE:
        return None
    if record.name == "invocation":
        return agent_step(record)
    if record.name == _MODEL_CALL:
        has_answer = semconv.ADK_RESPONSE in record.attributes
        return _named(record, _model_call(record)) if has_answer else None
    step = step_of(record)
    if step is None or step.kind == "agent":
        return step
    return _tool(record, step) if step.kind == "tool" else _named(record, step)


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    if record.scope != _SCOPE or record.name != _MODEL_CALL:
        return None
    return gemini_input(first_content(record, _REQUEST)) or input_of(record)


def _model_call(record: SpanRecord) -> Step:
    step = model_step(record)
    answer = gemini_answer(first_content(record, _RESPONSE))
    return msgspec.structs.replace(
        step,
        tool_calls=answer.tool_calls,
        output=answer.output,
        offered_tools=gemini_tools(first_content(record, _REQUEST)),
    )


def _named(record: SpanRecord, step: Step) -> Step:
    event_id = text(record.attributes.get(semconv.ADK_EVENT_ID))
    return msgspec.structs.replace(step, response_id=step.response_id or event_id)


def _tool(record: SpanRecord, step: Step) -> Step:
    arguments, result = first_content(record, _ARGUMENTS), first_content(record, _RESULT)
    if arguments is UNKNOWN or arguments == result == "{}":
        return step
    known = structure(result) != _NO_RESULT
    return msgspec.structs.replace(step, arguments=arguments, result=result if known else UNKNOWN)


DIALECT = Dialect(
    name="google_adk",
    read=read,
    read_input=read_input,
    marks=Marks(scopes=frozenset({_SCOPE})),
    vetoable=frozenset({(_SCOPE, "tool"), (_SCOPE, "llm")}),
)

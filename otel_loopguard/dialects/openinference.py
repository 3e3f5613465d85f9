"""OpenInference (Arize), as it stood in November 2026.

Sources: its semantic conventions; recordings of its packages for OpenAI, Anthropic, LangChain,
OpenAI Agents, Google ADK, CrewAI, smolagents, LlamaIndex, AutoGen, Agno, DSPy, the Claude Agent
SDK, and of those that add its names to the spans of others (Pydantic AI, Strands, Agent Framework).

Recognised by `openinference.span.kind`; where a root, or an agent of LlamaIndex's, has none yet, by
scope and name.

- TOOL: `tool.name`, else the span's name; `input.value`; `output.value`; the call id from
  `tool_call.id`, `tool.id`, `gen_ai.tool.call.id`, else from the tool message in `output.value`
  (LangChain). Not `tool.parameters`, nor `gen_ai.tool.call.arguments`, which is a copy of it with
  `OPENINFERENCE_ENABLE_GENAI_SEMCONV`: it is the tool's schema in most packages.
- LLM: `llm.model_name`, `llm.provider`, `llm.system`, `llm.finish_reason`, `llm.token_count.*`,
  `llm.cost.total`, `llm.output_messages.N.message.*`, `llm.tools.N.tool.*`; the response's id from
  `gen_ai.response.id`, else from the JSON in `output.value` or `llm.invocation_parameters`.
- AGENT: `agent.name`, else `graph.node.name`, `graph.node.id`, else the span's name; `llm.*` as
  above for its usage, which sums up the calls below it (the Claude Agent SDK shows no others).
- CHAIN: an agent where it is the root of this process, and no step elsewhere. Below a root it is a
  node, a turn or a prompt, several of them for each model call, and no run begins there. As a root
  it is the only span of LangChain, LlamaIndex, CrewAI and Haystack that lasts for the whole run.
  LlamaIndex's agents are known by their names below a root too.
- all: where another convention's names are on the span as well, `gen_ai.agent.name`,
  `gen_ai.agent.call.id`, finish reasons, usage and cost fill in what OpenInference has no name for.

What is new in a model's input is read from `llm.input_messages.N.*`, else from the request in
`input.value`, which is all that OpenAI's and Anthropic's packages write at the start. The id of the
response that it goes on from stands in that request or in `llm.invocation_parameters`. Where
`gen_ai.input.messages` is on the span as well, it is left to the GenAI convention.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.dialects import _frameworks as frameworks
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._flattened import (
    Layout,
    flattened_answer,
    flattened_input,
    flattened_tools,
)
from otel_loopguard.dialects._response_ids import previous_in, response_id_in
from otel_loopguard.dialects._said import requested
from otel_loopguard.dialects._values import (
    Attributes,
    first_amount,
    first_content,
    first_count,
    first_text,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

_CALLS_IN_NAMES = frozenset({"run", "__call__", "acall"})
_TOOL_NAME = (semconv.OPENINFERENCE_TOOL_NAME, semconv.GEN_AI_TOOL_NAME)
_ARGUMENTS = (semconv.OPENINFERENCE_INPUT_VALUE,)
_RESULT = (semconv.OPENINFERENCE_OUTPUT_VALUE,)
_CALL_ID = (
    semconv.OPENINFERENCE_TOOL_CALL_ID,
    semconv.OPENINFERENCE_TOOL_ID,
    semconv.GEN_AI_TOOL_CALL_ID,
)
_AGENT_NAME = (semconv.OPENINFERENCE_AGENT_NAME, semconv.GEN_AI_AGENT_NAME)
_NODE_NAME = (semconv.OPENINFERENCE_NODE_NAME, semconv.OPENINFERENCE_NODE_ID)
_PROVIDER = (semconv.LLM_PROVIDER, semconv.LLM_SYSTEM)
_FINISH_REASON = (
    semconv.LLM_FINISH_REASON,
    f"{semconv.LLM_OUTPUT_MESSAGES}.0.message.finish_reason",
)
_INPUT_TOKENS = (semconv.LLM_TOKENS_PROMPT, semconv.GEN_AI_USAGE_INPUT_TOKENS)
_OUTPUT_TOKENS = (semconv.LLM_TOKENS_COMPLETION, semconv.GEN_AI_USAGE_OUTPUT_TOKENS)
_CACHE_READ_TOKENS = (semconv.LLM_TOKENS_CACHE_READ, semconv.GEN_AI_USAGE_CACHE_READ)
_CACHE_WRITE_TOKENS = (semconv.LLM_TOKENS_CACHE_WRITE, semconv.GEN_AI_USAGE_CACHE_WRITE)
_REASONING_TOKENS = (semconv.LLM_TOKENS_REASONING, semconv.GEN_AI_USAGE_REASONING)
_COST = (semconv.LLM_COST_TOTAL, semconv.PYDANTIC_COST)
_SHOWS_RESPONSE = (semconv.OPENINFERENCE_OUTPUT_VALUE, semconv.LLM_INVOCATION_PARAMETERS)
_LAYOUT = Layout(message=".message", call=".tool_call", function=".function")


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if OpenInference did not write it, or it is none."""
    kind = record.attributes.get(semconv.OPENINFERENCE_SPAN_KIND)
    is_root = record.parent_id is None or record.parent_is_remote or record.is_topmost
    if kind is None:
        by_name = frameworks.is_agent_by_name(record, is_root=is_root)
        return _agent(record) if by_name else None
    match text(kind).upper():
        case "LLM":
            return _llm(record)
        case "TOOL":
            return _tool(record)
        case "AGENT":
            return _agent(record)
        case "CHAIN" if is_root or frameworks.is_agent_by_name(record, is_root=False):
            return _agent(record)
        case _:
            return None


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    attributes, limit = record.attributes, record.value_length_limit
    kind = attributes.get(semconv.OPENINFERENCE_SPAN_KIND)
    if kind is None or text(kind).upper() != "LLM" or frameworks.repeats_history(record):
        return None
    # They are whole, while of Pydantic AI's tool answers all but the last lose their call's id.
    if semconv.GEN_AI_INPUT_MESSAGES in attributes:
        return None
    request = attributes.get(semconv.OPENINFERENCE_INPUT_VALUE)
    new = flattened_input(attributes, semconv.LLM_INPUT_MESSAGES, _LAYOUT, limit)
    if new is None:
        return requested(request, limit)
    previous = previous_in(attributes.get(semconv.LLM_INVOCATION_PARAMETERS), request)
    return msgspec.structs.replace(new, previous_response_id=previous)


def _tool(record: SpanRecord) -> Step:
    attributes = record.attributes
    # CrewAI has only `{tool}.run` at the start, DSPy only `{tool}.__call__`, or `.acall`, at all.
    called, _, method = record.name.rpartition(".")
    in_name = called if method in _CALLS_IN_NAMES and called else record.name
    name = first_text(attributes, _TOOL_NAME) or in_name
    if frameworks.is_answer(record, name):
        return Step(kind="custom", name=name, finish_reasons=("stop",))
    call_id = first_text(attributes, _CALL_ID)
    outcome = frameworks.answered(record, first_content(record, _RESULT), call_id)
    return Step(
        kind="tool",
        name=name,
        arguments=frameworks.arguments(record, first_content(record, _ARGUMENTS)),
        result=outcome.result,
        error=outcome.error,
        call_id=call_id or outcome.call_id,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def _llm(record: SpanRecord) -> Step | None:
    if frameworks.asks_no_model(record):
        return None
    if frameworks.is_agent_after_all(record):
        return _agent(record)
    attributes, limit = record.attributes, record.value_length_limit
    reason = first_text(attributes, _FINISH_REASON) or frameworks.finish_reason(record)
    answer = flattened_answer(attributes, semconv.LLM_OUTPUT_MESSAGES, _LAYOUT, limit)
    step = Step(
        kind="llm",
        name=text(attributes.get(semconv.LLM_MODEL_NAME)),
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        finish_reasons=(reason,)
        if reason
        else texts(attributes.get(semconv.GEN_AI_RESPONSE_FINISH_REASONS)),
        cost_usd=first_amount(attributes, _COST),
        tool_calls=frameworks.requests(record, answer.tool_calls),
        offered_tools=flattened_tools(attributes, limit),
        output=answer.output,
        response_id=text(attributes.get(semconv.GEN_AI_RESPONSE_ID))
        or response_id_in(*(attributes.get(name) for name in _SHOWS_RESPONSE)),
    )
    return _with_usage(step, attributes)


def _agent(record: SpanRecord) -> Step:
    attributes = record.attributes
    name = first_text(attributes, _AGENT_NAME)
    step = Step(
        kind="agent",
        # CrewAI has only `{role}._execute_core` at the start.
        name=name
        or first_text(attributes, _NODE_NAME)
        or record.name.removesuffix("._execute_core"),
        agent=name,
    )
    return _with_usage(step, attributes)


def _with_usage(step: Step, attributes: Attributes) -> Step:
    return msgspec.structs.replace(
        step,
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
        input_tokens=first_count(attributes, _INPUT_TOKENS),
        output_tokens=first_count(attributes, _OUTPUT_TOKENS),
        cache_read_tokens=first_count(attributes, _CACHE_READ_TOKENS),
        cache_write_tokens=first_count(attributes, _CACHE_WRITE_TOKENS),
        reasoning_tokens=first_count(attributes, _REASONING_TOKENS),
        provider=first_text(attributes, _PROVIDER),
        model=text(attributes.get(semconv.LLM_MODEL_NAME)),
    )


DIALECT = Dialect(
    name="openinference",
    read=read,
    read_input=read_input,
    marks=Marks(
        attributes=frozenset({semconv.OPENINFERENCE_SPAN_KIND}), scopes=frameworks.AGENTS_BY_NAME
    ),
    vetoable=frameworks.VETOABLE,
)

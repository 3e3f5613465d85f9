"""OpenInference (Arize), as it stood in November 2026.

Sources: its semantic conventions; recordings of its packages for OpenAI, Anthropic, LangChain,
OpenAI Agents, Google ADK, CrewAI, smolagents, LlamaIndex, AutoGen, Agno, DSPy, and of those that
add its names to the spans of others (Pydantic AI, Strands, Agent Framework).

Recognised by `openinference.span.kind`.

- TOOL: `tool.name`, else the span's name; `input.value`; `output.value`; the call id from
  `tool_call.id`, `tool.id`, `gen_ai.tool.call.id`, else from the tool message in `output.value`
  (LangChain). Not `gen_ai.tool.call.arguments`: with `OPENINFERENCE_ENABLE_GENAI_SEMCONV` it holds
  `tool.parameters`, which is the tool's schema in most packages.
- LLM: `llm.model_name`, `llm.provider`, `llm.system`, `llm.finish_reason`, `llm.token_count.*`,
  `llm.cost.total`, `llm.output_messages.N.message.*`, `llm.tools.N.tool.*`.
- AGENT: `agent.name`, else `graph.node.name`, `graph.node.id`, else the span's name. Its usage is
  not read: it sums up the calls below it.
- CHAIN: an agent where it is the root of this process, and no step elsewhere. Below a root it is a
  node, a turn or a prompt, several of them for each model call, and no run begins there. As a root
  it is the only span of LangChain, LlamaIndex, CrewAI and Haystack that lasts for the whole run.
- all: where another convention's names are on the span as well, `gen_ai.agent.name`,
  `gen_ai.agent.call.id`, finish reasons, usage and cost fill in what OpenInference has no name for.
"""

from __future__ import annotations

from otel_loopguard import semconv
from otel_loopguard.dialects._flattened import flattened_answer, flattened_tools
from otel_loopguard.dialects._tools import structure, tool_answer
from otel_loopguard.dialects._values import (
    first_amount,
    first_content,
    first_count,
    first_text,
    is_mapping,
    text,
    texts,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step

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


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if OpenInference did not write it, or it is none."""
    kind = record.attributes.get(semconv.OPENINFERENCE_SPAN_KIND)
    if kind is None:
        return None
    match text(kind).upper():
        case "LLM":
            return _llm(record)
        case "TOOL":
            return _tool(record)
        case "AGENT":
            return _agent(record)
        case "CHAIN" if record.parent_id is None or record.parent_is_remote:
            return _agent(record)
        case _:
            return None


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    return None if record.attributes else None


def _tool(record: SpanRecord) -> Step:
    attributes = record.attributes
    call_id = first_text(attributes, _CALL_ID)
    result, id_in_result = tool_answer(first_content(record, _RESULT), record.value_length_limit)
    return Step(
        kind="tool",
        # CrewAI has only `{tool}.run` at the start, DSPy only `{tool}.__call__` at all.
        name=first_text(attributes, _TOOL_NAME)
        or record.name.removesuffix(".run").removesuffix(".__call__"),
        arguments=first_content(record, _ARGUMENTS),
        result=_without_call_id(result, call_id),
        call_id=call_id or id_in_result,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def _llm(record: SpanRecord) -> Step:
    attributes = record.attributes
    model = text(attributes.get(semconv.LLM_MODEL_NAME))
    reason = first_text(attributes, _FINISH_REASON)
    answer = flattened_answer(attributes, record.value_length_limit)
    return Step(
        kind="llm",
        name=model,
        agent=text(attributes.get(semconv.GEN_AI_AGENT_NAME)),
        agent_id=text(attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
        finish_reasons=(reason,)
        if reason
        else texts(attributes.get(semconv.GEN_AI_RESPONSE_FINISH_REASONS)),
        input_tokens=first_count(attributes, _INPUT_TOKENS),
        output_tokens=first_count(attributes, _OUTPUT_TOKENS),
        cache_read_tokens=first_count(attributes, _CACHE_READ_TOKENS),
        cache_write_tokens=first_count(attributes, _CACHE_WRITE_TOKENS),
        reasoning_tokens=first_count(attributes, _REASONING_TOKENS),
        cost_usd=first_amount(attributes, _COST),
        tool_calls=answer.tool_calls,
        offered_tools=flattened_tools(attributes, record.value_length_limit),
        output=answer.output,
        provider=first_text(attributes, _PROVIDER),
        model=model,
    )


def _agent(record: SpanRecord) -> Step:
    name = first_text(record.attributes, _AGENT_NAME)
    return Step(
        kind="agent",
        name=name or first_text(record.attributes, _NODE_NAME) or record.name,
        agent=name,
        agent_id=text(record.attributes.get(semconv.GEN_AI_AGENT_CALL_ID)) or None,
    )


def _without_call_id(result: object, call_id: str) -> object:
    # Google ADK writes the call's id into each result.
    if call_id and isinstance(result, str) and call_id in result:
        given = structure(result)
        if is_mapping(given) and given.get("id") == call_id:
            return {name: value for name, value in given.items() if name != "id"}
    return result

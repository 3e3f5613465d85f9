"""What single packages of OpenInference do in their own way; the scope of a span names the package.

- LangChain, LlamaIndex: a span begins with no attribute at all. That a root is an agent shows in
  its name only, and for LangChain in that the name is not a model's class (`ChatOpenAI`).
- LlamaIndex: `*._prepare_chat_with_tools` is marked as a model call and asks no model; what a tool
  answers stands in blocks, beside a copy of its arguments.
- smolagents, DSPy, LlamaIndex: a tool's arguments are `args` and `kwargs` of a Python call.
- smolagents, DSPy: `final_answer`, and `finish` or `submit`, are tools by which the model answers.
  Calls may be asked for in plain text, so that an answer without one may still ask for some; and
  DSPy has the history of the run in each question, where nothing tells what is new.
- AutoGen: why a model stopped stands nowhere but in the JSON of its answer.
- Google ADK: with ADK 2 the model calls overwrite each other on the agent's span, whose kind
  becomes LLM before it ends. The call's id is written into each result.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._llama_index import Outcome, outcome
from otel_loopguard.dialects._tools import structure, tool_answer
from otel_loopguard.dialects._values import content, is_mapping, parsed, text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import StepKind, ToolCall

_PACKAGES = "openinference.instrumentation."
_LANGCHAIN = f"{_PACKAGES}langchain"
_LLAMA_INDEX = f"{_PACKAGES}llama_index"
_SMOLAGENTS = f"{_PACKAGES}smolagents"
_DSPY = f"{_PACKAGES}dspy"
_AGNO = f"{_PACKAGES}agno"
_CREWAI = f"{_PACKAGES}crewai"
_AUTOGEN = f"{_PACKAGES}autogen_agentchat"
_ADK = "gcp.vertex.agent"

AGENTS_BY_NAME = frozenset({_LANGCHAIN, _LLAMA_INDEX})
"""Scopes of agents that are known by their names before they show a kind."""
VETOABLE: frozenset[tuple[str, StepKind]] = frozenset(
    {
        (_AGNO, "tool"),
        (_AGNO, "llm"),
        (_CREWAI, "tool"),
        (_DSPY, "tool"),
        (_DSPY, "llm"),
        (_SMOLAGENTS, "tool"),
        (_SMOLAGENTS, "llm"),
    }
)
"""Scopes, and kinds of steps, whose spans let an exception out when they start: the packages for
clients, LangChain, LlamaIndex and the OpenAI Agents SDK swallow it."""
_PYTHON_CALLS = frozenset({_SMOLAGENTS, _DSPY, _LLAMA_INDEX})
_ANSWERING_TOOLS = {
    _SMOLAGENTS: frozenset({"final_answer"}),
    _DSPY: frozenset({"finish", "submit"}),
}


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    finish_reason: object = None


_ENDED = msgspec.json.Decoder(_Ended)


def is_agent_by_name(record: SpanRecord, *, is_root: bool) -> bool:
    """Say whether a span is an agent without saying so: a root, or one of LlamaIndex's anywhere.

    Below a root LlamaIndex runs other workflows too, such as those of its query engines.
    """
    if record.scope == _LLAMA_INDEX:
        return record.name.endswith(".run" if is_root else ("Agent.run", "AgentWorkflow.run"))
    return is_root and record.scope == _LANGCHAIN and "Chat" not in record.name


def is_agent_after_all(record: SpanRecord) -> bool:
    """Say whether a span of kind LLM began as an agent."""
    return record.scope == _ADK and record.name.startswith("invoke_agent")


def asks_no_model(record: SpanRecord) -> bool:
    """Say whether a span of kind LLM is none."""
    return record.scope == _LLAMA_INDEX and record.name.endswith("._prepare_chat_with_tools")


def is_answer(record: SpanRecord, tool: str) -> bool:
    """Say whether a tool is the framework's own way of answering."""
    return tool in _ANSWERING_TOOLS.get(record.scope, ())


def finish_reason(record: SpanRecord) -> str:
    """Return why a model stopped, where its answer alone says so; else ""."""
    if record.scope != _AUTOGEN:
        return ""
    ended = parsed(record.attributes.get(semconv.OPENINFERENCE_OUTPUT_VALUE), _ENDED)
    return "" if ended is None else text(ended.finish_reason)


def requests(
    record: SpanRecord, calls: tuple[ToolCall, ...] | Unknown
) -> tuple[ToolCall, ...] | Unknown:
    """Return the tool calls that a model asked for, given those that the span shows."""
    return calls or UNKNOWN if record.scope in _ANSWERING_TOOLS else calls


def repeats_history(record: SpanRecord) -> bool:
    """Say whether what a person says is not told from what happened before."""
    return record.scope == _DSPY


def arguments(record: SpanRecord, given: object) -> object:
    """Return the arguments of a tool, given what the span shows."""
    if record.scope not in _PYTHON_CALLS:
        return given
    call = structure(given)
    if not (is_mapping(call) and set(call) <= {"args", "kwargs", "sanitize_inputs_outputs"}):
        return given
    args, kwargs = call.get("args"), call.get("kwargs")
    if args and kwargs:
        return {"args": args, "kwargs": kwargs}
    return content(args or kwargs or {}, record.value_length_limit)


def answered(record: SpanRecord, output: object, call_id: str) -> Outcome:
    """Return what came out of a tool, given what the span shows and the call's id, if it does."""
    limit = record.value_length_limit
    if record.scope == _LLAMA_INDEX:
        return outcome(output, limit)
    result, id_in_result = tool_answer(output, limit)
    return Outcome(result=_without_call_id(result, call_id), call_id=id_in_result)


def _without_call_id(result: object, call_id: str) -> object:
    if call_id and isinstance(result, str) and call_id in result:
        given = structure(result)
        if is_mapping(given) and given.get("id") == call_id:
            return {name: value for name, value in given.items() if name != "id"}
    return result

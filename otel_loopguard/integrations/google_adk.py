"""Google's Agent Development Kit: a stopped run ends as one that has used up its model calls.

Asked is in `InvocationContext.increment_llm_call_count`, by which every model call goes last, that
of a sub-agent, of an `AgentTool`'s agent and after a transfer too. What is raised there is what
ADK raises there itself when a run has used up its `max_llm_calls`, and it leaves the runner as it
is. ADK writes an event of it to the session, whose `error_code` is the exception's name.

Every tool call that was made has its result in the session by then: the next message continues it.
The call of a stopped run's `AgentTool` has none; ADK leaves it out of what it sends.

Tool calls are seen where the callbacks of plugins are called. One that is refused is not made: its
result is `{"error": ...}`, as that of a plugin that answers in the tool's place.

Not reached: the model calls of live (bidirectional) sessions, which have no request of their own,
and models that an application calls without an agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.agents.invocation_context import InvocationContext, LlmCallsLimitExceededError
from google.adk.plugins.plugin_manager import PluginManager
from google.genai import types

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration, ToolCalling

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class AdkRunAborted(RunAborted, LlmCallsLimitExceededError):  # noqa: N818 -- as `RunAborted`
    """`RunAborted`, for code that catches ADK's own `LlmCallsLimitExceededError` too."""


def _count_call(
    wrapped: Wrapped, _context: InvocationContext, args: Arguments, kwargs: Keywords
) -> object:
    INTEGRATION.ask(AdkRunAborted)
    return wrapped(*args, **kwargs)


async def _before_model(
    wrapped: Wrapped, _plugins: PluginManager, args: Arguments, kwargs: Keywords
) -> object:
    answer = await wrapped(*args, **kwargs)
    if answer is None and (hint := INTEGRATION.hint()):
        # The request of this call alone: the next one is made from the session anew.
        kwargs["llm_request"].contents.append(types.UserContent(hint))
    return answer


async def _before_tool(
    wrapped: Wrapped, _plugins: PluginManager, args: Arguments, kwargs: Keywords
) -> object:
    answer = await wrapped(*args, **kwargs)
    if answer is not None:
        return answer  # a plugin's: there is no call
    context = kwargs["tool_context"]
    call = INTEGRATION.calling(kwargs["tool"].name, kwargs["tool_args"], context.function_call_id)
    call.begin()
    if call.refusal is None:
        _calls[context] = call
        return None
    call.end()
    return {"error": str(call.refusal)}


async def _after_tool(
    wrapped: Wrapped, _plugins: PluginManager, args: Arguments, kwargs: Keywords
) -> object:
    call = _calls.pop(kwargs["tool_context"], None)
    if call is not None:
        call.end(result=kwargs["result"])
    return await wrapped(*args, **kwargs)


async def _tool_error(
    wrapped: Wrapped, _plugins: PluginManager, args: Arguments, kwargs: Keywords
) -> object:
    call = _calls.pop(kwargs["tool_context"], None)
    if call is not None:
        call.end(error=kwargs["error"])
    return await wrapped(*args, **kwargs)


def _places(_module: ModuleType) -> Iterator[Entry]:
    yield Entry(InvocationContext, "increment_llm_call_count", _count_call)
    yield Entry(PluginManager, "run_before_model_callback", _before_model)
    yield Entry(PluginManager, "run_before_tool_callback", _before_tool)
    yield Entry(PluginManager, "run_after_tool_callback", _after_tool)
    yield Entry(PluginManager, "run_on_tool_error_callback", _tool_error)


_calls: WeakKeyDictionary[object, ToolCalling] = WeakKeyDictionary()
"""The calls that are being made, by the contexts that ADK makes for each."""

INTEGRATION = Integration(
    "Google ADK",
    {"google.adk.agents.invocation_context": _places},
    scopes=frozenset({"gcp.vertex.agent"}),
)
install = INTEGRATION.install
uninstall = INTEGRATION.uninstall

"""Haystack's `Agent`, which ends with an `exit_reason` of ours when a run is stopped.

Wrapped are `Agent.run`, its steps (`_run_step`) and their awaited forms, and what makes the calls
of tools, in threads or awaited (in `haystack.components.agents.tool_calling`). A stopped agent ends
like one whose hook has asked for that, with `exit_reason` set to `RUN_ABORTED`. Nothing is raised:
a pipeline goes on and can route by that, and `messages` go on in a further turn.

A refused tool call is not made: the model is told so in its result. An agent that is stopped inside
a tool ends that tool with its last message, and the agent around it is stopped in its own turn.

Not reached: generators outside of an agent. The model gate stops those, by what it raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from functools import partial
from typing import Any

from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools.errors import ToolInvocationError

from otel_loopguard.abort import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration, ToolCalling, reason

__all__ = ["RUN_ABORTED", "install", "uninstall"]

RUN_ABORTED = "run_aborted"
"""The `exit_reason` of an agent whose run the loop guard has stopped."""


def _run(wrapped: Wrapped, _agent: Any, args: Any, kwargs: Any) -> Any:
    with _INTEGRATION.run():
        return wrapped(*args, **kwargs)


async def _run_async(wrapped: Wrapped, _agent: Any, args: Any, kwargs: Any) -> Any:
    with _INTEGRATION.run():
        return await wrapped(*args, **kwargs)


def _step(wrapped: Wrapped, _agent: Any, args: Any, kwargs: Any) -> Any:
    return wrapped(*args, **kwargs) if _may_go_on(args, kwargs) else False


async def _step_async(wrapped: Wrapped, _agent: Any, args: Any, kwargs: Any) -> Any:
    return await wrapped(*args, **kwargs) if _may_go_on(args, kwargs) else False


def _may_go_on(args: Any, kwargs: Any) -> bool:
    """Ask whether the model may be asked; say in the agent's state why not, or what it is told."""
    state = (args[0] if args else kwargs["exe_context"]).state
    refusal = _INTEGRATION.refusal()
    if refusal is not None:
        if not isinstance(refusal, RunAborted):
            raise refusal
        state.set("exit_reason", RUN_ABORTED)
        return False
    hint = _INTEGRATION.hint()
    if hint is not None:
        state.set("messages", [ChatMessage.from_user(hint)])
    return True


def _bound(wrapped: Wrapped, _module: Any, args: Any, kwargs: Any) -> Any:
    asked = _call_of(args, kwargs)
    context = copy_context()  # it is called in a thread

    def call() -> Any:
        with _INTEGRATION.calling(asked.tool_name, asked.arguments, asked.id) as calling:
            if calling.refusal is not None:
                return reason(calling.refusal)
            return _taken(calling, wrapped(*args, **kwargs)())

    return wrapped(*args, **kwargs) if asked is None else partial(context.run, call)


def _awaited(wrapped: Wrapped, _module: Any, args: Any, kwargs: Any) -> Any:
    asked = _call_of(args, kwargs)

    async def call() -> Any:
        with _INTEGRATION.calling(asked.tool_name, asked.arguments, asked.id) as calling:
            if calling.refusal is not None:
                return reason(calling.refusal)
            return _taken(calling, await wrapped(*args, **kwargs)())

    return wrapped(*args, **kwargs) if asked is None else call


def _call_of(args: Any, kwargs: Any) -> Any:
    """Return the call among what is given, whose place differs between versions."""
    return next((each for each in (*args, *kwargs.values()) if isinstance(each, ToolCall)), None)


def _taken(calling: ToolCalling, result: Any) -> Any:
    """Tell what a call has come to: its errors are returned."""
    if isinstance(result, ToolInvocationError):
        calling.end(error=str(result))
    calling.result = result
    return result


def _agents(module: Any) -> Iterator[Entry]:
    yield Entry(module.Agent, "run", _run)
    yield Entry(module.Agent, "run_async", _run_async)
    yield Entry(module.Agent, "_run_step", _step)
    yield Entry(module.Agent, "_run_step_async", _step_async)


def _calls(module: Any) -> Iterator[Entry]:
    # What these return makes the span of a call first, and then the call.
    yield Entry(module, "_make_context_bound_invoke", _bound)
    yield Entry(module, "_make_bounded_invoke_async", _awaited)


_INTEGRATION = Integration(
    "Haystack",
    {
        "haystack.components.agents.agent": _agents,
        "haystack.components.agents.tool_calling": _calls,
    },
)

install = _INTEGRATION.install
uninstall = _INTEGRATION.uninstall

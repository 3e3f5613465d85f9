"""The OpenAI Agents SDK, stopped its own way.

`Runner.run`, `run_sync` and `run_streamed`, and the runs of agents that are tools, end in
`AgentRunner.run` and `run_streamed`. These are wrapped: each run gets a `LoopGuardFilter`, which
asks before every model call, hand-offs included. Function tools, those of MCP servers and agents
as tools are asked about too: `get_all_tools` of agents is wrapped, and offers copies of them.

The caller of a stopped run gets an `AgentsRunAborted`, from a stream out of `stream_events()`. Its
`run_data` has what the run has done, with a result for every call; a session has it too. A refused
tool call is not made: its result says why, and the next model call is refused.

Not reached: hosted tools, which run elsewhere; computer, shell, patch and custom tools, which are
no function tools; the model calls of realtime and voice sessions; streams that no span shows.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from inspect import isawaitable
from types import ModuleType
from typing import Any

import wrapt
from agents import AgentsException, FunctionTool, RunConfig, Tool
from agents.run import CallModelData, CallModelInputFilter, ModelInputData
from agents.run_config import RunOptions

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.processor import LoopGuardSpanProcessor

_FILTER = "call_model_input_filter"
_TAKES_TABLES = "dict" in str(RunOptions.__annotations__["run_config"])
"""Whether a run takes its configuration as a `dict`, as from 0.20 on."""


class AgentsRunAborted(RunAborted, AgentsException):
    """A `RunAborted` that is an error of the SDK too: `run_data` has what the run has done."""


class LoopGuardFilter:
    """Asks the guard before each model call: a `call_model_input_filter` of `RunConfig`.

    Every run has one once `install` was called. By hand it is for a run whose configuration other
    code makes: `RunConfig(call_model_input_filter=LoopGuardFilter())`.

    Args:
        edit: a filter of your own, whose answer is sent.

    """

    def __init__(self, edit: CallModelInputFilter | None = None) -> None:
        self._edit = edit

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return what is to be sent, or raise `AgentsRunAborted`."""
        INTEGRATION.ask(AgentsRunAborted)
        edited = data.model_data if self._edit is None else self._edit(data)
        sent = await edited if isawaitable(edited) else edited
        hint = INTEGRATION.hint()
        if hint is None:
            return sent
        # Items of one request: the run keeps its own list.
        return replace(sent, input=[*sent.input, {"role": "user", "content": hint}])


def install(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard before the calls of every run from now on."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard no more; with the last one gone, put the SDK back as it was."""
    INTEGRATION.uninstall(guard)


async def _run(wrapped: Wrapped, _runner: object, args: Any, kwargs: dict[str, Any]) -> object:
    with INTEGRATION.run():
        return await wrapped(*args, **_with_filter(kwargs))


def _run_streamed(wrapped: Wrapped, _runner: object, args: Any, kwargs: dict[str, Any]) -> object:
    return wrapped(*args, **_with_filter(kwargs))  # it goes on when this has come back


def _with_filter(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**kwargs, "run_config": _asking(kwargs.get("run_config"))}


def _asking(given: RunConfig | dict[str, Any] | None) -> RunConfig | dict[str, Any]:
    """Return the same configuration with a filter that asks."""
    if given is None:
        # What a run makes of a table has a model provider that it closes; one of ours it would not.
        return _asking({} if _TAKES_TABLES else RunConfig())
    if isinstance(given, dict):
        return {**given, _FILTER: _asking_filter(given.get(_FILTER))}
    return replace(given, call_model_input_filter=_asking_filter(given.call_model_input_filter))


def _asking_filter(given: CallModelInputFilter | None) -> LoopGuardFilter:
    return given if isinstance(given, LoopGuardFilter) else LoopGuardFilter(given)


async def _tools(
    wrapped: Callable[..., Awaitable[Sequence[Tool]]], _agent: object, args: Any, kwargs: Any
) -> list[Tool]:
    offered = await wrapped(*args, **kwargs)
    return [_watched(tool) if isinstance(tool, FunctionTool) else tool for tool in offered]


def _watched(tool: FunctionTool) -> FunctionTool:
    """Return a copy of a tool whose calls are asked about."""

    async def invoked(invoke: Wrapped, _tool: object, args: Any, kwargs: Any) -> object:
        context, arguments = args
        call_id = getattr(context, "tool_call_id", None)
        with INTEGRATION.calling(tool.name, arguments, call_id) as call:
            if call.refusal is not None:
                return str(call.refusal)
            call.result = await invoke(*args, **kwargs)
            return call.result

    watched = copy.copy(tool)
    # The SDK reads marks off what it invokes; this wrapper shows those of what it wraps.
    watched.on_invoke_tool = wrapt.FunctionWrapper(watched.on_invoke_tool, invoked)
    return watched


def _runner(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.AgentRunner, "run", _run)
    yield Entry(module.AgentRunner, "run_streamed", _run_streamed)


def _agent(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.AgentBase, "get_all_tools", _tools)


INTEGRATION = Integration("the OpenAI Agents SDK", {"agents.run": _runner, "agents.agent": _agent})

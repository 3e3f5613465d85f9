"""Strands Agents: a stopped run ends with an exception of the event loop's own kind.

Asked is where the hooks for `BeforeModelCallEvent` are called, after those of the application, of
every agent: those that are tools, and those of a `Swarm` or a `Graph` too.

The caller gets `StrandsRunAborted`: an `EventLoopException` that the event loop lets out as it is,
unlike others. `agent.messages` ends with the results of the tools: call the agent again to go on.
A `Swarm` raises nothing for what its agents raise: its result's status is `FAILED`, and the
exception is the `result` of the agent that was stopped, in `results`.

Tool calls are seen where the hooks for `BeforeToolCallEvent` and `AfterToolCallEvent` are called.
One that is refused is cancelled as a hook would cancel it (`cancel_tool`): it is not made, and its
result is an error with the reason.

Not reached: `Agent.structured_output`, which calls no hook for its model call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from strands.hooks import AfterToolCallEvent, BeforeModelCallEvent, BeforeToolCallEvent
from strands.types.exceptions import EventLoopException

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration, ToolCalling

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class StrandsRunAborted(RunAborted, EventLoopException):
    """`RunAborted`, for code that catches the `EventLoopException` of Strands too."""

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        super().__init__(report, run_id)
        self.args = (report, run_id)
        self.original_exception = RunAborted(report, run_id)
        self.request_state = None


async def _call_hooks(
    wrapped: Wrapped, _registry: object, args: Arguments, kwargs: Keywords
) -> object:
    event: object = args[0] if args else kwargs.get("event")
    if isinstance(event, AfterToolCallEvent):
        _end(event)
    answer = await wrapped(*args, **kwargs)
    if isinstance(event, BeforeModelCallEvent) and not getattr(event, "cancel", False):
        INTEGRATION.ask(StrandsRunAborted)
    elif isinstance(event, BeforeToolCallEvent) and not event.cancel_tool and not answer[1]:
        _begin(event)
    return answer


def _begin(event: BeforeToolCallEvent) -> None:
    use = event.tool_use
    call = INTEGRATION.calling(use["name"], use["input"], use["toolUseId"])
    call.begin()
    if call.refusal is None:
        _calls.setdefault(event.agent, {})[use["toolUseId"]] = call
    else:
        call.end()
        event.cancel_tool = str(call.refusal)


def _end(event: AfterToolCallEvent) -> None:
    call = _calls.get(event.agent, {}).pop(event.tool_use["toolUseId"], None)
    if call is not None:
        # The result as a whole has the call's id in it.
        call.end(result=event.result.get("content"), error=event.exception)


def _invoke_model(
    wrapped: Wrapped, _registry: object, args: Arguments, kwargs: Keywords
) -> AsyncIterator[object]:
    """Put a hint behind the last message of the request, which is a copy of the agent's."""
    stage, context = args[:2] if len(args) > 1 else (None, None)
    if getattr(stage, "name", None) == "invokeModel":
        messages = getattr(context, "messages", None)
        if messages and messages[-1]["role"] == "user" and (hint := INTEGRATION.hint()):
            messages[-1]["content"].append({"text": hint})
    return wrapped(*args, **kwargs)


def _hooks(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.HookRegistry, "invoke_callbacks_async", _call_hooks)


def _middleware(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.MiddlewareRegistry, "invoke", _invoke_model)


_calls: WeakKeyDictionary[object, dict[str, ToolCalling]] = WeakKeyDictionary()
"""The calls that each agent is making, by their ids."""

INTEGRATION = Integration(
    "Strands",
    {
        "strands.hooks": _hooks,
        "strands._middleware.registry": _middleware,  # until 1.58
        "strands.middleware._registry": _middleware,
    },
    scopes=frozenset({"strands.telemetry.tracer"}),
)
install = INTEGRATION.install
uninstall = INTEGRATION.uninstall

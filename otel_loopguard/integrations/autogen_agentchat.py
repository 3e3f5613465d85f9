"""AutoGen, whose agents ask before each call, and whose teams end with the turn that is refused.

What is wrapped: of `AssistantAgent` its model calls and its tool calls; the turn of an agent in a
team, the team manager's look at whether to go on after it, and `run_stream` of a team.

What the caller gets: out of an agent's own `run` and `run_stream`, `RunAborted`. Out of a team's,
`AutoGenRunAborted`: a `RunAborted` with the `TaskResult` that the team has ended with. Its members
have finished their turns, the last one with a `StopMessage`.

How the history goes on: agents and teams keep theirs. Run them again, with a new task; or save the
state, and load it elsewhere.

What is not reached: model calls that are no `AssistantAgent`'s, as a selector's or an
orchestrator's, are stopped by the gate alone. In a runtime that was started elsewhere, a team fails
with the error of its member, and has to be reset.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from types import ModuleType
from typing import Any

from autogen_core.models import FunctionExecutionResult, UserMessage

from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations import _autogen_teams as teams
from otel_loopguard.integrations._autogen_teams import AutoGenRunAborted
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.processor import LoopGuardSpanProcessor

__all__ = ["INTEGRATION", "AutoGenRunAborted", "install", "uninstall"]


async def _model_call(
    wrapped: Wrapped, _owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AsyncGenerator[object]:
    INTEGRATION.ask()
    hint, context = INTEGRATION.hint(), kwargs.get("model_context")
    hinted = {} if hint is None or context is None else {"model_context": _Hinted(context, hint)}
    async with aclosing(wrapped(*args, **{**kwargs, **hinted})) as items:
        async for item in items:
            yield item


class _Hinted:
    """A model context that ends with a hint, for one request."""

    def __init__(self, context: Any, hint: str) -> None:
        self._context = context
        self._hint = hint

    async def get_messages(self) -> list[Any]:
        hint = UserMessage(content=self._hint, source="otel_loopguard")
        return [*await self._context.get_messages(), hint]


async def _tool_call(
    wrapped: Wrapped, _owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, FunctionExecutionResult]:
    asked = kwargs["tool_call"]
    with INTEGRATION.calling(asked.name, asked.arguments, asked.id) as call:
        if call.refusal is not None:
            # What is raised here leaves the agent waiting for the results of this turn for ever.
            refused = str(call.refusal)
            return asked, FunctionExecutionResult(
                content=refused, call_id=asked.id, is_error=True, name=asked.name
            )
        answer = await wrapped(*args, **kwargs)
        called: FunctionExecutionResult = answer[1]
        if called.is_error:
            call.end(error=called.content)
        else:
            call.result = called.content
        return answer


def _agents(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.AssistantAgent, "_call_llm", _model_call)
    yield Entry(module.AssistantAgent, "_reflect_on_tool_use_flow", _model_call)
    yield Entry(module.AssistantAgent, "_execute_tool_call", _tool_call)
    yield from teams.agents(module)


INTEGRATION = Integration(
    "AutoGen",
    {
        "autogen_agentchat.agents": _agents,
        "autogen_agentchat.teams": teams.teams,
        "autogen_agentchat.teams._group_chat._base_group_chat_manager": teams.managers,
    },
)


def install(guard: LoopGuardSpanProcessor) -> None:
    """Let AutoGen ask this guard before its calls."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Let AutoGen ask this guard no more."""
    INTEGRATION.uninstall(guard)

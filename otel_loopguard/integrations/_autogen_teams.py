"""How a team of AutoGen ends when one of its members is refused a model call.

What a member raises in its turn would leave the team as it is then, waiting for that member: run
again, it would end after one turn. So the turn ends in a word that it has stopped, the team ends
with that turn, and `run_stream` raises in place of the result. A team in a team, in an agent or in
a tool ends quietly; the outermost one raises.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import StopMessage

from otel_loopguard.abort.aborted import Refused, RunAborted, RunInterrupted
from otel_loopguard.abort.patches import Entry, Wrapped


class AutoGenRunAborted(RunAborted):
    """The loop guard stopped a team of AutoGen; `result` is what the team has ended with."""

    result: TaskResult


class _Team:
    """A team at work that no other team is around."""

    refusal: Refused | None = None
    """What the first of its members was refused with."""


_TEAM: ContextVar[_Team | None] = ContextVar("otel_loopguard_autogen_team", default=None)


def agents(module: ModuleType) -> Iterator[Entry]:
    """Yield the turns of agents."""
    for agent in (module.AssistantAgent, module.CodeExecutorAgent, module.SocietyOfMindAgent):
        yield Entry(agent, "on_messages_stream", _turn)


def managers(module: ModuleType) -> Iterator[Entry]:
    """Yield where a team's manager decides whether to go on."""
    yield Entry(module.BaseGroupChatManager, "_apply_termination_condition", _is_over)


def teams(module: ModuleType) -> Iterator[Entry]:
    """Yield where a team is run; `run` comes by there too."""
    yield Entry(module.BaseGroupChat, "run_stream", _run)


async def _turn(
    wrapped: Wrapped, agent: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AsyncGenerator[object]:
    """Yield what a member does in its turn, and in the end that it was stopped."""
    said: list[Any] = []
    try:
        async with aclosing(wrapped(*args, **kwargs)) as items:
            async for item in items:
                said.append(item)
                yield item
    except (RunAborted, RunInterrupted) as refusal:
        team = _TEAM.get()
        if team is None:
            raise
        team.refusal = team.refusal or refusal
        stop = StopMessage(content=str(refusal), source=agent.name)
        yield Response(chat_message=stop, inner_messages=said)


async def _is_over(
    wrapped: Wrapped, manager: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Say whether the team ends here: by its own conditions, or because a member was refused."""
    team = _TEAM.get()
    if await wrapped(*args, **kwargs):
        return True
    if team is None or team.refusal is None:
        return False
    # As it does where its turns are used up.
    if manager._termination_condition is not None:
        await manager._termination_condition.reset()
    manager._current_turn = 0
    stop = StopMessage(content=str(team.refusal), source=manager._name)
    await manager._signal_termination(stop)
    return True


async def _run(
    wrapped: Wrapped, _team: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AsyncGenerator[object]:
    """Yield what a team does; raise in place of its result if one of its members was refused."""
    around = _TEAM.get()
    team = _Team() if around is None else around
    stopped: Refused | None = None
    async with aclosing(wrapped(*args, **kwargs)) as items:
        while True:
            token = _TEAM.set(team)  # for what is done for an item, not for what is done with it
            try:
                item = await anext(items)
            except StopAsyncIteration:
                break
            finally:
                _TEAM.reset(token)
            if around is None and isinstance(item, TaskResult) and team.refusal is not None:
                stopped = _aborted(team.refusal, item)  # raised when the team is at rest
            else:
                yield item
    if stopped is not None:
        raise stopped


def _aborted(refusal: Refused, result: TaskResult) -> Refused:
    if isinstance(refusal, RunInterrupted):
        return refusal
    aborted = AutoGenRunAborted(refusal.report, refusal.run_id)
    aborted.result = result
    return aborted

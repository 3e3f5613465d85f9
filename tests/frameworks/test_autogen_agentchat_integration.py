"""The contract of AutoGen's integration, on agents and on teams.

Each turn of a conversation has an agent, or a team, of its own, with the state of the one before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.messages import StopMessage, ToolCallExecutionEvent
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_agentchat.tools import AgentTool

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, RunInterrupted
from otel_loopguard.integrations import autogen_agentchat as integration
from tests.frameworks import test_autogen
from tests.frameworks._at_once import at_once
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, CAP, Job
from tests.frameworks._integrated import AsyncTalk, Awaited, Blocking, Integrated, Talk, Waiting
from tests.frameworks._stage import Stage
from tests.frameworks._workbench import Counts
from tests.frameworks.test_autogen import instrument

WAIT_S = 20

Runner: TypeAlias = Any
"""An agent or a team: both run, and have a state."""

Opened: TypeAlias = Callable[[Job], AbstractAsyncContextManager[Runner]]


class Conversation:
    """A state that is kept from one turn to the next."""

    def __init__(self, opened: Opened, *, streamed: bool = False) -> None:
        self._opened = opened
        self._streamed = streamed
        self._state: Mapping[str, Any] | None = None

    async def ask(self, job: Job) -> str:
        async with self._opened(job) as runner:
            if self._state is not None:
                await runner.load_state(self._state)
            try:
                return await self._answer(runner, job)
            finally:
                self._state = await runner.save_state()

    async def _answer(self, runner: Runner, job: Job) -> str:
        if not self._streamed:
            return (await runner.run(task=job.prompt)).messages[-1].to_text()
        last = [message async for message in runner.run_stream(task=job.prompt)][-1]
        assert isinstance(last, TaskResult)
        return last.messages[-1].to_text()


def agent(job: Job) -> AbstractAsyncContextManager[Runner]:
    return test_autogen.agent(job)


def streaming(job: Job) -> AbstractAsyncContextManager[Runner]:
    return test_autogen.agent(job, stream_options={"include_usage": True})


def parallel(job: Job) -> AbstractAsyncContextManager[Runner]:
    return test_autogen.agent(at_once(job))


@asynccontextmanager
async def nested(job: Job) -> AsyncGenerator[Runner]:
    """Open an agent whose tool is an agent."""
    async with test_autogen.agent(job) as worker, test_autogen.client(job) as client:
        yield AssistantAgent("first", client, tools=[AgentTool(worker)], max_tool_iterations=CAP)


@asynccontextmanager
async def team(job: Job) -> AsyncGenerator[Runner]:
    """Open a team in whose turns an agent calls a tool once."""
    async with test_autogen.agent(job, turns=1) as member:
        yield round_robin(member)


@asynccontextmanager
async def diligent_team(job: Job) -> AsyncGenerator[Runner]:
    """Open a team whose member goes on for as long as it has calls to make."""
    async with test_autogen.agent(job) as member:
        yield round_robin(member)


@asynccontextmanager
async def of_teams(job: Job) -> AsyncGenerator[Runner]:
    """Open a team whose member is a team."""
    async with test_autogen.agent(job, turns=1) as member:
        yield RoundRobinGroupChat([round_robin(member)], max_turns=1)


@asynccontextmanager
async def swarm(job: Job) -> AsyncGenerator[Runner]:
    """Open a swarm of two agents that can hand over to each other."""
    async with test_autogen.client(job) as client:
        names = (AGENT, "other")
        members = [
            AssistantAgent(
                name,
                client,
                handoffs=[other],
                tools=[*job.tools] if job.script != "handoff" else [],
                max_tool_iterations=CAP,
            )
            for name, other in (names, names[::-1])
        ]
        ends = TextMessageTermination(AGENT) | TextMessageTermination("other")
        yield Swarm(members, termination_condition=ends, max_turns=3 * CAP)


def round_robin(member: AssistantAgent) -> RoundRobinGroupChat:
    ends = TextMessageTermination(AGENT)
    return RoundRobinGroupChat([member], termination_condition=ends, max_turns=CAP)


def blocking(opened: Opened) -> Blocking:
    @contextmanager
    def talk() -> Talk:
        yield Waiting(Conversation(opened))

    return talk


def awaited(opened: Opened, *, streamed: bool = False) -> Awaited:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        yield Conversation(opened, streamed=streamed)

    return talk


INTEGRATED = Integrated(
    title="AutoGen",
    module=integration,
    instrument=instrument,
    blocking={"sync": blocking(agent), "team sync": blocking(team)},
    awaited={
        "async": awaited(agent),
        "stream": awaited(streaming, streamed=True),
        "team async": awaited(team),
        "team stream": awaited(team, streamed=True),
        "diligent team async": awaited(diligent_team),
        "parallel async": awaited(parallel),
        "nested async": awaited(nested),
        "nested team async": awaited(of_teams),
        "hand-off async": awaited(swarm),
        "hand-off stream": awaited(swarm, streamed=True),
    },
    packages=(
        "autogen-agentchat",
        "autogen-ext",
        "openai",
        "openinference-instrumentation-autogen-agentchat",
    ),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "autogen_team.py",
)


class TestTeams:
    """What is AutoGen's: how its teams end."""

    def test_result_is_what_the_team_has_ended_with(self, stage: Stage):
        with stage.guarded() as scene:
            [stopped] = scene.talk("diligent team async", "endless")
        assert isinstance(stopped.error, integration.AutoGenRunAborted)
        result = stopped.error.result
        assert result.stop_reason == str(stopped.error)
        assert isinstance(result.messages[-1], StopMessage)
        assert result.messages[-1].source == AGENT

    def test_same_team_is_run_again(self, stage: Stage):
        async def twice() -> list[BaseException]:
            job = Job("endless", stage.server.url, scene.tools("endless"))
            async with team(job) as endless:
                return [await raised_by(endless.run(task=job.prompt)) for _ in range(2)]

        with stage.guarded() as scene:
            raised = asyncio.run(twice())
        assert [type(each) for each in raised] == [integration.AutoGenRunAborted] * 2
        assert scene.counts() == Counts(requests=10, executions=10)

    def test_what_passes_except_exception_ends_a_team(self, stage: Stage):
        async def run() -> BaseException:
            job = Job("endless", stage.server.url, scene.tools("endless"))
            async with team(job) as endless:
                return await raised_by(asyncio.wait_for(endless.run(task=job.prompt), WAIT_S))

        with stage.scene() as scene:
            guard = LoopGuardSpanProcessor(mode="enforce", abort_exception="base")
            scene.provider.add_span_processor(guard)
            integration.install(guard)
            raised = asyncio.run(run())
        assert type(raised) is RunInterrupted
        assert scene.counts() == Counts(requests=5, executions=5)

    def test_team_in_an_agent_raises_out_of_the_agent(self, stage: Stage):
        async def run() -> BaseException:
            job = Job("endless", stage.server.url, scene.tools("endless"))
            async with team(job) as endless, test_autogen.client(job) as writer:
                society = SocietyOfMindAgent("society", endless, writer)
                return await raised_by(society.run(task=job.prompt))

        with stage.guarded() as scene:
            raised = asyncio.run(run())
        assert type(raised) is integration.AutoGenRunAborted
        assert scene.counts() == Counts(requests=5, executions=5)

    def test_blocked_hand_over_is_told_of(self, stage: Stage):
        policy = Policy.none().with_limits(max_tool_calls=2)
        with stage.guarded(policy) as scene:
            [stopped] = scene.talk("hand-off async", "handoff")
        assert isinstance(stopped.error, integration.AutoGenRunAborted)
        assert stopped.counts.requests == 3
        messages = stopped.error.result.messages
        results = [each for each in messages if isinstance(each, ToolCallExecutionEvent)]
        assert [each.content[0].is_error for each in results] == [False, False, True]

    def test_classes_are_as_they_were(self):
        before = ids()
        guard = LoopGuardSpanProcessor(mode="enforce")
        integration.install(guard)
        assert ids() != before
        guard.shutdown()
        assert ids() == before


def ids() -> list[int]:
    """Return those of what the classes have: a wrapper is equal to what it wraps."""
    owners = (AssistantAgent, SocietyOfMindAgent)
    return [id(each) for owner in owners for each in vars(owner).values()]


async def raised_by(awaitable: Awaitable[object]) -> BaseException:
    with pytest.raises((RunAborted, RunInterrupted)) as raised:
        await awaitable
    return raised.value


__all__ = ["INTEGRATED", "TestIntegration"]

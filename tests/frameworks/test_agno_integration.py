"""The contract of Agno's integration, on agents and teams, with the spans of OpenInference.

A run that was stopped comes back as any other, with a status: its messages are gone on with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.message import Message
from agno.models.openai import OpenAIChat
from agno.run.base import RunStatus
from agno.team import Team
from openai import AsyncOpenAI, OpenAI
from openinference.instrumentation.agno import AgnoInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunInterrupted, guarded_run
from otel_loopguard.integrations import agno as integration
from tests.frameworks._at_once import at_once
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._expected import ANSWER, HEALTHY
from tests.frameworks._framework import AGENT, Job
from tests.frameworks._integrated import AsyncTalk, Awaited, Blocking, Ended, Integrated, Talk
from tests.frameworks._openinference import openinference
from tests.frameworks._stage import Scene, Stage
from tests.frameworks._workbench import Counts

WORKER = "alpha"
"""What the scripted model calls everybody that it delegates to."""

WAIT_S = 20

Output = Any
"""Of an agent's run, or a team's."""

Messages = list[Message]


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with openinference(AgnoInstrumentor(), provider=provider, content=content):
        yield


class Task(NamedTuple):
    """One turn of a conversation, with the clients that its models share."""

    job: Job
    messages: Messages
    client: OpenAI | None = None
    async_client: AsyncOpenAI | None = None

    def model(self) -> OpenAIChat:
        return OpenAIChat(id=self.job.script, client=self.client, async_client=self.async_client)

    def agent(self, name: str = AGENT, **options: Any) -> Agent:
        tools = [*self.job.tools]
        return Agent(name=name, model=self.model(), tools=tools, telemetry=False, **options)

    def team(self) -> Team:
        return Team([self.agent(WORKER)], name=AGENT, model=self.model(), telemetry=False)


Run: TypeAlias = Callable[[Task], Output]
AsyncRun: TypeAlias = Callable[[Task], Awaitable[Output]]


def run(task: Task) -> Output:
    return task.agent().run(task.messages)


def streamed(task: Task) -> Output:
    return [*task.agent().run(task.messages, stream=True, yield_run_output=True)][-1]


def team(task: Task) -> Output:
    return task.team().run(task.messages)


async def awaited_run(task: Task) -> Output:
    return await task.agent().arun(task.messages)


async def awaited_stream(task: Task) -> Output:
    stream = task.agent().arun(task.messages, stream=True, yield_run_output=True)
    return [event async for event in stream][-1]


async def parallel(task: Task) -> Output:
    return await awaited_run(task._replace(job=at_once(task.job)))


async def awaited_team(task: Task) -> Output:
    return await task.team().arun(task.messages)


async def team_stream(task: Task) -> Output:
    stream = task.team().arun(task.messages, stream=True, yield_run_output=True)
    return [event async for event in stream][-1]


class Conversation:
    """Messages that are kept from one turn to the next."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._messages: Messages = []

    def ask(self, job: Job) -> str | Ended:
        with OpenAI(base_url=job.url, api_key="none") as client:
            return self._answer(self._run(Task(job, self._said(job), client=client)))

    def _said(self, job: Job) -> Messages:
        return [*self._messages, Message(role="user", content=job.prompt)]

    def _answer(self, output: Output) -> str | Ended:
        self._messages = [each for each in output.messages if each.role != "system"]
        if output.status == RunStatus.completed:
            return str(output.content)
        assert output.metadata["loopguard.rule"]
        return Ended(f"status={output.status.value}")


class AsyncConversation(Conversation):
    """The same of what is awaited."""

    async def ask(self, job: Job) -> str | Ended:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            return self._answer(await self._run(Task(job, self._said(job), async_client=client)))


def blocking(run: Run) -> Blocking:
    @contextmanager
    def talk() -> Talk:
        yield Conversation(run)

    return talk


def awaited(run: AsyncRun) -> Awaited:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        yield AsyncConversation(run)

    return talk


INTEGRATED = Integrated(
    title="Agno",
    module=integration,
    instrument=instrument,
    blocking={
        "sync": blocking(run),
        "streamed sync": blocking(streamed),
        "parallel sync": blocking(run),
        "nested sync": blocking(team),
    },
    awaited={
        "async": awaited(awaited_run),
        "stream": awaited(awaited_stream),
        "parallel async": awaited(parallel),
        "nested async": awaited(awaited_team),
        "nested stream": awaited(team_stream),
    },
    packages=("agno", "openai", "openinference-instrumentation-agno"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "agno_agent.py",
)


@contextmanager
def no_spans(provider: TracerProvider, *, content: bool) -> Generator[None]:
    del provider, content
    yield


class TestRuns:
    """What is Agno's: how its runs come back."""

    def test_says_what_has_stopped_it(self, stage: Stage):
        with stage.guarded(Policy.none().with_limits(max_tool_calls=2)) as scene:
            output = with_client(run, job_of(stage, scene))
        assert (output.status, output.metadata["loopguard.rule"]) == (
            RunStatus.cancelled,
            "tool_call_budget",
        )
        assert output.content.startswith("the loop guard stopped the run after 5 steps")
        results = [each.content for each in output.messages if each.role == "tool"]
        assert ["the loop guard" in each for each in results] == [False, False, True]

    def test_session_goes_on_without_what_was_cancelled(self, stage: Stage):
        db = InMemoryDb()

        def in_session(task: Task) -> Output:
            assistant = task.agent(db=db, add_history_to_context=True)
            return assistant.run(task.messages, session_id="session")

        with stage.guarded() as scene:
            stopped = with_client(in_session, job_of(stage, scene))
            answered = with_client(in_session, job_of(stage, scene, "finish3"))
        assert (stopped.status, answered.status) == (RunStatus.cancelled, RunStatus.completed)
        assert answered.content == ANSWER
        assert scene.counts("finish3") == HEALTHY

    def test_block_around_it_has_the_report(self, stage: Stage):
        with stage.guarded() as scene, guarded_run() as block:
            output = with_client(run, job_of(stage, scene))
        assert block.report is not None
        assert (block.report.rule, block.report.status) == ("repeated_result", "aborted")
        assert output.metadata["loopguard.run.id"] == block.run_id

    def test_what_passes_except_exception_ends_a_team(self, stage: Stage):
        """Raised in what an awaited member is at work on, it would leave the team waiting."""

        async def run() -> Output:
            job = job_of(stage, scene)
            async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
                task = Task(job, [Message(role="user", content="go")], async_client=client)
                return await asyncio.wait_for(awaited_team(task), WAIT_S)

        with stage.scene() as scene:
            guard = LoopGuardSpanProcessor(mode="enforce", abort_exception="base")
            scene.provider.add_span_processor(guard)
            integration.install(guard)
            with pytest.raises(RunInterrupted):
                asyncio.run(run())
        assert scene.counts() == Counts(requests=6, executions=5)

    def test_without_any_span_it_is_known_which_calls_have_failed(self, stage: Stage):
        def search(query: str) -> str:
            """Search for a text."""
            raise ValueError(query)

        without = Stage(INTEGRATED._replace(instrument=no_spans), stage.server)
        with without.guarded() as scene, guarded_run() as block:
            scene.talk("sync", "endless", tools=[search])
        assert block.report is not None
        assert block.report.rule == "repeated_error"

    def test_classes_are_as_they_were(self):
        before = [id(each) for each in vars(Model).values()]
        guard = LoopGuardSpanProcessor(mode="enforce")
        integration.install(guard)
        assert [id(each) for each in vars(Model).values()] != before
        guard.shutdown()
        assert [id(each) for each in vars(Model).values()] == before


def job_of(stage: Stage, scene: Scene, script: str = "endless") -> Job:
    return Job(script, stage.server.url, scene.tools(script))


def with_client(run: Run, job: Job) -> Output:
    said = [Message(role="user", content=job.prompt)]
    with OpenAI(base_url=job.url, api_key="none") as client:
        return run(Task(job, said, client=client))


__all__ = ["INTEGRATED", "TestIntegration"]

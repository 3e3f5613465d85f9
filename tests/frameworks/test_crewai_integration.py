"""The contract of CrewAI's integration, on agents and on crews.

An agent goes on with the messages that it is given. A crew remembers nothing: its agent goes on by
itself. What CrewAI has for hand-offs are the tools by which a member delegates work to another.
"""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted
from tests.frameworks import test_crewai
from tests.frameworks._at_once import at_once
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import Job
from tests.frameworks._integrated import AsyncTalk, Awaited, Blocking, Integrated, Talk
from tests.frameworks._stage import Stage
from tests.frameworks.test_crewai import (
    Agent,
    Crew,
    Task,
    hooks,
    instrument,
    instrumented,
    integration,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

HookAborted = hooks.HookAborted

WORKER = "alpha"
"""What the scripted model calls everybody that it delegates to."""

Messages = list[dict[str, Any]]
"""What was said before, and now."""


class Conversation:
    """Messages that are kept from one turn to the next."""

    def __init__(self, run: Callable[[Job, Messages], str]) -> None:
        self._run = run
        self._messages: Messages = []

    def ask(self, job: Job) -> str:
        messages = [*self._messages, {"role": "user", "content": job.prompt}]
        try:
            answer = self._run(job, messages)
        except integration.CrewAIRunAborted as aborted:
            self._messages = aborted.messages
            raise
        self._messages = [*messages, {"role": "assistant", "content": answer}]
        return answer


class AsyncConversation:
    """The same of what is awaited."""

    def __init__(self, run: Callable[[Job, Messages], Awaitable[str]]) -> None:
        self._run = run
        self._messages: Messages = []

    async def ask(self, job: Job) -> str:
        messages = [*self._messages, {"role": "user", "content": job.prompt}]
        try:
            answer = await self._run(job, messages)
        except integration.CrewAIRunAborted as aborted:
            self._messages = aborted.messages
            raise
        self._messages = [*messages, {"role": "assistant", "content": answer}]
        return answer


def streaming(job: Job) -> Agent:
    agent = test_crewai.agent(job)
    agent.llm.stream = True
    return agent


def company(job: Job) -> Crew:
    """Return a crew whose first member has another do the work."""
    worker = test_crewai.agent(job)
    worker.role = WORKER
    first = test_crewai.agent(job._replace(tools=()))
    first.allow_delegation = True
    task = Task(description=job.prompt, expected_output="an answer", agent=first)
    return Crew(name="company", agents=[first, worker], tasks=[task])


def agent(job: Job, messages: Messages) -> str:
    return test_crewai.agent(job).kickoff(messages).raw


def parallel(job: Job, messages: Messages) -> str:
    return agent(at_once(job), messages)


def of(made: Callable[[Job], Crew]) -> Blocking:
    """Return the way to run a crew, whose agent goes on by itself."""
    return blocking(
        lambda job, messages: agent(job, messages) if messages[1:] else made(job).kickoff().raw
    )


async def awaited_agent(job: Job, messages: Messages) -> str:
    return (await test_crewai.agent(job).kickoff_async(messages)).raw


async def streaming_agent(job: Job, messages: Messages) -> str:
    return (await streaming(job).kickoff_async(messages)).raw


async def awaited_parallel(job: Job, messages: Messages) -> str:
    return await awaited_agent(at_once(job), messages)


async def awaited_crew(job: Job, messages: Messages) -> str:
    if messages[1:]:
        return await awaited_agent(job, messages)
    return (await test_crewai.crew(job).akickoff()).raw


async def awaited_company(job: Job, messages: Messages) -> str:
    if messages[1:]:
        return await awaited_agent(job, messages)
    return (await company(job).akickoff()).raw


async def crew_stream(job: Job, messages: Messages) -> str:
    if messages[1:]:
        return await streaming_agent(job, messages)
    crew = test_crewai.crew(job)
    crew.stream = True
    streamed = await crew.akickoff()
    async for _ in streamed:
        pass
    return streamed.result.raw


def blocking(run: Callable[[Job, Messages], str]) -> Blocking:
    @contextmanager
    def talk() -> Talk:
        yield Conversation(run)

    return talk


def awaited(run: Callable[[Job, Messages], Awaitable[str]]) -> Awaited:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        yield AsyncConversation(run)

    return talk


INTEGRATED = Integrated(
    title="CrewAI",
    module=integration,
    instrument=instrument,
    blocking={
        "sync": blocking(agent),
        "crew sync": of(test_crewai.crew),
        "parallel sync": blocking(parallel),
        "nested sync": of(company),
    },
    awaited={
        "async": awaited(awaited_agent),
        "stream": awaited(streaming_agent),
        "crew async": awaited(awaited_crew),
        "crew stream": awaited(crew_stream),
        "parallel async": awaited(awaited_parallel),
        "nested async": awaited(awaited_company),
    },
    packages=(
        "crewai",
        "openai",
        "openinference-instrumentation-crewai",
        "openinference-instrumentation-openai",
    ),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "crewai_agent.py",
)


@contextmanager
def no_spans(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with instrumented(provider=provider, content=content):
        yield


class TestItsOwn:
    """What is CrewAI's: its hooks, its error, its agents' executors."""

    def test_error_is_of_both_kinds(self, stage: Stage):
        with stage.guarded() as scene:
            [stopped] = scene.talk("crew sync", "endless")
        assert isinstance(stopped.error, HookAborted)
        assert isinstance(stopped.error, RunAborted)
        assert str(stopped.error) == stopped.error.reason
        copy = pickle.loads(pickle.dumps(stopped.error))  # noqa: S301 -- our own
        assert (copy.messages, copy.report) == (stopped.error.messages, stopped.error.report)

    def test_hooks_are_registered_once_and_taken_back_with_the_last_guard(self):
        registered = hooks.get_before_tool_call_hooks()
        guards = [LoopGuardSpanProcessor(mode="enforce") for _ in range(2)]
        for guard in (*guards, guards[0]):
            integration.install(guard)
        assert len(hooks.get_before_tool_call_hooks()) == len(registered) + 1
        guards[0].shutdown()
        assert len(hooks.get_before_tool_call_hooks()) == len(registered) + 1
        guards[1].shutdown()
        assert hooks.get_before_tool_call_hooks() == registered

    def test_blocked_call_says_why(self, stage: Stage):
        policy = Policy.none().with_limits(max_tool_calls=2)
        with stage.guarded(policy) as scene:
            [stopped] = scene.talk("sync", "endless")
        results = [each["content"] for each in stopped.error.messages if each["role"] == "tool"]
        assert [each.startswith("nothing found") for each in results] == [True, True, False]
        assert "tool_call_budget" in results[-1]

    def test_without_any_span_it_is_known_which_calls_have_failed(self, stage: Stage):
        def search(query: str) -> str:
            """Search for a text."""
            raise ValueError(query)

        without = Stage(INTEGRATED._replace(instrument=no_spans), stage.server)
        with without.guarded() as scene:
            [stopped] = scene.talk("sync", "endless", tools=[search])
        assert stopped.error.report.rule == "repeated_error"

    def test_agent_that_has_worked_before_is_stopped_by_the_gate(self, stage: Stage):
        with stage.scene() as scene, scene.span("before"):
            crew = test_crewai.crew(Job("finish3", stage.server.url, scene.tools("finish3")))
            crew.kickoff()
        crew.agents[0].llm.model = "endless"
        with stage.guarded() as scene, pytest.raises(RunAborted) as raised:
            crew.kickoff()
        assert type(raised.value) is RunAborted
        assert scene.server.count("endless") == 5


__all__ = ["INTEGRATED", "TestIntegration"]

"""The contract of AG2's integration, with the spans of AG2's own middleware.

A stream has the history of a conversation: who is stopped goes on with the one that the error has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ag2 import Agent, AgentReply
from ag2.config import OpenAIConfig
from ag2.exceptions import AG2Error
from ag2.middleware.base import MiddlewareFactory
from ag2.middleware.builtin.telemetry import TelemetryMiddleware
from openai import DefaultAsyncHttpxClient
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted
from otel_loopguard.integrations import ag2 as integration
from tests.frameworks._at_once import at_once
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, Job
from tests.frameworks._integrated import AsyncTalk, Awaited, Blocking, Integrated, Talk, Waiting
from tests.frameworks._stage import Scene, Stage
from tests.frameworks._workbench import Counts

Opened = Callable[[Job], AbstractAsyncContextManager[Agent]]


class Telemetry:
    """What agents are given to make spans."""

    middleware: tuple[MiddlewareFactory, ...] = ()


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    telemetry = TelemetryMiddleware(
        tracer_provider=provider, capture_content=content, agent_name=AGENT
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Telemetry, "middleware", (telemetry,))
        yield


class Conversation:
    """A stream that is kept from one turn to the next."""

    def __init__(self, opened: Opened, *, as_run: bool = False) -> None:
        self._opened = opened
        self._as_run = as_run
        self._stream: Any = None

    async def ask(self, job: Job) -> str:
        async with self._opened(job) as assistant:
            try:
                reply = await self._reply(assistant, job.prompt)
            except integration.AG2RunAborted as aborted:
                self._stream = aborted.stream
                raise
        self._stream = reply.context.stream
        return reply.body or ""

    async def _reply(self, assistant: Agent, prompt: str) -> AgentReply[Any, Any]:
        if not self._as_run:
            return await assistant.ask(prompt, stream=self._stream)
        async with assistant.run(prompt, stream=self._stream) as run:
            return await run.result()


@asynccontextmanager
async def configured(job: Job, *, streaming: bool = False) -> AsyncGenerator[OpenAIConfig]:
    async with DefaultAsyncHttpxClient() as client:
        yield OpenAIConfig(
            job.script, base_url=job.url, api_key="none", streaming=streaming, http_client=client
        )


@asynccontextmanager
async def agent(
    job: Job, *middleware: MiddlewareFactory, streaming: bool = False
) -> AsyncGenerator[Agent]:
    async with configured(job, streaming=streaming) as config:
        given = (*Telemetry.middleware, *middleware)
        yield Agent(AGENT, config=config, tools=job.tools, middleware=given)


def streamed(job: Job) -> AbstractAsyncContextManager[Agent]:
    return agent(job, streaming=True)


def parallel(job: Job) -> AbstractAsyncContextManager[Agent]:
    return agent(at_once(job))


@asynccontextmanager
async def nested(job: Job) -> AsyncGenerator[Agent]:
    """Open an agent whose tool is an agent."""
    async with agent(job) as worker:
        tool = worker.as_tool(description="Do some work.")
        yield Agent("first", config=worker.config, tools=[tool], middleware=Telemetry.middleware)


def blocking(opened: Opened) -> Blocking:
    @contextmanager
    def talk() -> Talk:
        yield Waiting(Conversation(opened))

    return talk


def awaited(opened: Opened, *, as_run: bool = False) -> Awaited:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        yield Conversation(opened, as_run=as_run)

    return talk


INTEGRATED = Integrated(
    title="AG2",
    module=integration,
    instrument=instrument,
    blocking={"sync": blocking(agent)},
    awaited={
        "async": awaited(agent),
        "stream": awaited(streamed),
        "run async": awaited(agent, as_run=True),
        "parallel async": awaited(parallel),
        "nested async": awaited(nested),
    },
    packages=("ag2", "openai"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "ag2_agent.py",
)


class TestMiddleware:
    """What is AG2's: its middleware and its error."""

    def test_call_that_is_asked_about_twice_is_one(self, stage: Stage):
        policy = Policy.none().with_limits(max_tool_calls=2)
        with stage.guarded(policy) as scene:
            error = raised_by(asked(stage, scene, integration.LoopGuardMiddleware))
        assert isinstance(error, AG2Error)
        assert isinstance(error, RunAborted)
        assert scene.counts() == Counts(requests=3, executions=2)
        assert (error.report.model_calls, error.report.tool_calls) == (3, 2)

    @pytest.fixture
    def no_spans(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        return lambda: monkeypatch.setattr(Telemetry, "middleware", ())

    def test_without_any_span_its_tool_calls_are_known(
        self, stage: Stage, no_spans: Callable[[], None]
    ):
        policy = Policy.none().with_limits(max_repeated_calls=3)
        with stage.guarded(policy) as scene:
            no_spans()
            [stopped] = scene.talk("async", "endless")
        assert stopped.error.report.rule == "repeated_call_limit"
        assert stopped.counts == Counts(requests=4, executions=3)

    def test_without_any_span_it_is_known_which_calls_have_failed(
        self, stage: Stage, no_spans: Callable[[], None]
    ):
        def search(query: str) -> str:
            """Search for a text."""
            raise ValueError(query)

        with stage.guarded() as scene:
            no_spans()
            [stopped] = scene.talk("async", "endless", tools=[search])
        assert stopped.error.report.rule == "repeated_error"

    def test_agent_is_as_it_was(self):
        before = vars(Agent)["_turn_scope"]
        guard = LoopGuardSpanProcessor(mode="enforce")
        integration.install(guard)
        assert vars(Agent)["_turn_scope"] is not before
        guard.shutdown()
        assert vars(Agent)["_turn_scope"] is before


async def asked(stage: Stage, scene: Scene, *middleware: MiddlewareFactory) -> None:
    job = Job("endless", stage.server.url, scene.tools("endless"))
    async with agent(job, *middleware) as assistant:
        await assistant.ask(job.prompt)


def raised_by(asking: Coroutine[Any, Any, None]) -> integration.AG2RunAborted:
    with pytest.raises(integration.AG2RunAborted) as raised:
        asyncio.run(asking)
    return raised.value


__all__ = ["INTEGRATED", "TestIntegration"]

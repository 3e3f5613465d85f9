"""The contract of Strands' integration: agents alone, as tools of another, and in swarms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.multiagent import Swarm
from strands.multiagent.base import Status
from strands.telemetry import tracer

from otel_loopguard.integrations import strands
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, Job, Tool
from tests.frameworks._integrated import AsyncTalk, Ended, Integrated, Talk

Messages = list[dict[str, Any]]
Made = Callable[[Job, Messages], Agent]
"""Makes an agent that remembers what was said."""

PARTNER = "alpha"
"""Whom the scripted model hands over to, for it says that of everything."""


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:  # noqa: ARG001
    """Strands has the content on the events of its spans, and nothing that leaves it out."""
    with pytest.MonkeyPatch.context() as patch:
        # Strands traces with the global provider, which can be set once; here each test has one.
        made = tracer.Tracer()
        made.tracer = provider.get_tracer("strands.telemetry.tracer")
        patch.setattr(tracer, "_tracer_instance", made)
        yield


def single(job: Job, messages: Messages) -> Agent:
    return agent(AGENT, job, messages)


def parallel(job: Job, messages: Messages) -> Agent:
    """Tools that wait for something, so that each call of a turn is under way when one ends."""
    return agent(AGENT, job._replace(tools=[awaitable(each) for each in job.tools]), messages)


def awaitable(function: Tool) -> Tool:
    @wraps(function)
    async def call(query: str) -> str:
        found = str(function(query))
        await asyncio.sleep(0)
        return found

    return call


def nested(job: Job, messages: Messages) -> Agent:
    inner = agent("researcher", job, [])
    return Agent(inner.model, messages, [inner.as_tool()], name=AGENT, callback_handler=None)


def agent(name: str, job: Job, messages: Messages) -> Agent:
    client = {"base_url": job.url, "api_key": "none"}
    model = OpenAIModel(client_args=client, model_id=job.script)
    tools = [tool(each) for each in job.tools]
    return Agent(model, messages, tools, name=name, description="Searches.", callback_handler=None)


class Conversation:
    """Messages that each agent is given, and leaves behind."""

    def __init__(self, made: Made) -> None:
        self._made = made
        self._messages: Messages = []

    @contextmanager
    def _agent(self, job: Job) -> Generator[Agent]:
        agent = self._made(job, self._messages)
        try:
            yield agent
        finally:
            self._messages = agent.messages


class Called(Conversation):
    def ask(self, job: Job) -> str:
        with self._agent(job) as agent:
            return str(agent(job.prompt)).strip()


class Awaited(Conversation):
    async def ask(self, job: Job) -> str:
        with self._agent(job) as agent:
            return str(await agent.invoke_async(job.prompt)).strip()


class Streamed(Conversation):
    async def ask(self, job: Job) -> str:
        said = ""
        with self._agent(job) as agent:
            async for event in agent.stream_async(job.prompt):
                said = str(event.get("result", said)).strip()
        return said


class InSwarm:
    """Two that hand over to each other; a swarm begins anew with each thing that is said."""

    async def ask(self, job: Job) -> str | Ended:
        pair = [agent(name, job, []) for name in (AGENT, PARTNER)]
        swarm = Swarm(pair, max_handoffs=40, max_iterations=40)
        result = await swarm.invoke_async(job.prompt)
        last = [*result.results.values()][-1].result
        if result.status is Status.FAILED:
            return Ended(f"Status.FAILED, {type(last).__name__}")
        return str(last).strip()


def blocking(made: Made = single) -> Callable[[], Talk]:
    @contextmanager
    def talk() -> Talk:
        yield Called(made)

    return talk


def awaited(
    made: Made = single, kind: type[Awaited | Streamed] = Awaited
) -> Callable[[], AsyncTalk]:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        yield kind(made)

    return talk


@asynccontextmanager
async def swarm() -> AsyncTalk:
    yield InSwarm()


INTEGRATED = Integrated(
    title="Strands",
    module=strands,
    instrument=instrument,
    blocking={
        "sync": blocking(),
        "parallel sync": blocking(parallel),
        "nested sync": blocking(nested),
    },
    awaited={
        "async": awaited(),
        "stream": awaited(kind=Streamed),
        "parallel async": awaited(parallel),
        "parallel stream": awaited(parallel, Streamed),
        "nested async": awaited(nested),
        "nested stream": awaited(nested, Streamed),
        "hand-off async": swarm,
    },
    packages=("strands-agents", "openai"),
    example=Path("examples/integrations/strands_agent.py"),
)

__all__ = ["INTEGRATED", "TestIntegration"]

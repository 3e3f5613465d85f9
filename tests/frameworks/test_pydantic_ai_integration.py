"""The contract on the integration of Pydantic AI."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from otel_loopguard import Policy
from otel_loopguard.integrations import pydantic_ai as module
from otel_loopguard.testing import model_server
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._expected import ANSWER
from tests.frameworks._framework import CAP, Job, thread_loop
from tests.frameworks._integrated import AsyncConversation, AsyncTalk, Integrated, Talk
from tests.frameworks._stage import Stage
from tests.frameworks._workbench import Counts
from tests.frameworks.test_pydantic_ai import LIMITS, agent, instrument

TWO_CALLS = Policy.none().with_limits(max_tool_calls=2)

Made: TypeAlias = Callable[[Job, AsyncOpenAI], Agent[None, str]]
"""Makes the agents of a turn, and returns the one that begins."""


def nested(job: Job, client: AsyncOpenAI) -> Agent[None, str]:
    inner = agent(job, client)

    async def ask_another(query: str) -> str:
        """Let another agent do it."""
        return (await inner.run(query, usage_limits=LIMITS)).output

    model = OpenAIChatModel(job.script, provider=OpenAIProvider(openai_client=client))
    return Agent(model, name="planner", tools=[ask_another])


class Remembered:
    """What was said so far, kept by the application."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.messages: list[ModelMessage] = []

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Keep what a stopped run has done."""
        try:
            yield
        except module.PydanticAIRunAborted as stopped:
            self.messages = stopped.all_messages()
            raise


class Waiting(Remembered):
    def ask(self, job: Job) -> str:
        with thread_loop() as loop:
            client = AsyncOpenAI(base_url=job.url, api_key="none")
            try:
                with self.stopped():
                    result = self.made(job, client).run_sync(
                        job.prompt, message_history=self.messages, usage_limits=LIMITS
                    )
                    self.messages = result.all_messages()
                    return result.output
            finally:
                loop.run_until_complete(client.close())


class Awaited(Remembered):
    async def ask(self, job: Job) -> str:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            with self.stopped():
                result = await self.made(job, client).run(
                    job.prompt, message_history=self.messages, usage_limits=LIMITS
                )
                self.messages = result.all_messages()
                return result.output


class Streamed(Remembered):
    async def ask(self, job: Job) -> str:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            with self.stopped():
                async with self.made(job, client).run_stream(
                    job.prompt, message_history=self.messages, usage_limits=LIMITS
                ) as result:
                    output = await result.get_output()
                    self.messages = result.all_messages()
                    return output


class ByNode(Remembered):
    async def ask(self, job: Job) -> str:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            with self.stopped():
                async with self.made(job, client).iter(
                    job.prompt, message_history=self.messages, usage_limits=LIMITS
                ) as run:
                    async for _ in run:
                        pass
                assert run.result is not None
                self.messages = run.result.all_messages()
                return run.result.output


@contextmanager
def sync(made: Made = agent) -> Talk:
    yield Waiting(made)


@asynccontextmanager
async def awaited(kind: Callable[[Made], AsyncConversation], made: Made = agent) -> AsyncTalk:
    yield kind(made)


def nothing(_: TracerProvider, *, content: bool) -> AbstractContextManager[None]:  # noqa: ARG001
    """Leave the framework as it is, without any spans."""
    return nullcontext()


INTEGRATED = Integrated(
    title="Pydantic AI",
    module=module,
    instrument=instrument,
    blocking={
        "sync": sync,
        "parallel sync": sync,
        "nested sync": partial(sync, nested),
    },
    awaited={
        "async": partial(awaited, Awaited),
        "stream": partial(awaited, Streamed),
        "iter": partial(awaited, ByNode),
        "parallel async": partial(awaited, Awaited),
        "parallel stream": partial(awaited, Streamed),
        "nested async": partial(awaited, Awaited, nested),
        "nested stream": partial(awaited, Streamed, nested),
        "nested iter": partial(awaited, ByNode, nested),
    },
    packages=("pydantic-ai-slim", "openai"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "pydantic_ai_agent.py",
)


@pytest.mark.parametrize("talk", ["sync", "async", "stream"])
def test_a_run_that_no_span_shows_is_stopped_and_gone_on_with(talk: str):
    with model_server(cap=2 * CAP) as server:
        unseen = INTEGRATED._replace(instrument=nothing)
        with Stage(unseen, server).guarded() as scene:
            stopped, went_on = scene.talk(talk, "endless", "finish3")
    assert type(stopped.error) is module.PydanticAIRunAborted
    assert stopped.counts == Counts(requests=5, executions=5)
    assert (went_on.answer, went_on.error) == (ANSWER, None)


def test_the_model_is_told_that_a_refused_call_has_failed():
    with model_server(cap=2 * CAP) as server, Stage(INTEGRATED, server).guarded(TWO_CALLS) as scene:
        [stopped] = scene.talk("sync", "endless")
    assert isinstance(stopped.error, module.PydanticAIRunAborted)
    assert stopped.counts == Counts(requests=3, executions=2)
    [told] = stopped.error.all_messages()[-1].parts
    assert isinstance(told, ToolReturnPart)
    assert (told.outcome, told.content) == ("failed", str(stopped.error))


def test_it_comes_out_of_a_pickle_as_it_went_in():
    with model_server(cap=CAP) as server, Stage(INTEGRATED, server).guarded() as scene:
        [stopped] = scene.talk("sync", "endless")
    again = pickle.loads(pickle.dumps(stopped.error))  # noqa: S301 -- made one line above
    assert type(again) is module.PydanticAIRunAborted
    assert (str(again), vars(again)) == (str(stopped.error), vars(stopped.error))


__all__ = ["INTEGRATED", "TestIntegration"]

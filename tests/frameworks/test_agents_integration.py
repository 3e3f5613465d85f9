"""The contract on the integration of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
)
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from agents import (
    Agent,
    ItemHelpers,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    RunResult,
    RunResultStreaming,
    SQLiteSession,
    TResponseInputItem,
    function_tool,
)
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.integrations import agents as module
from otel_loopguard.testing import model_server
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._expected import ANSWER
from tests.frameworks._framework import AGENT, CAP, Job, thread_loop
from tests.frameworks._integrated import AsyncConversation, AsyncTalk, Integrated, Talk
from tests.frameworks._stage import Stage
from tests.frameworks._workbench import Counts
from tests.frameworks.test_openai_agents import instrument

Made: TypeAlias = Callable[[Job, Model], Agent[None]]
"""Makes the agents of a turn, and returns the one that begins."""

ModelOf: TypeAlias = Callable[[str, AsyncOpenAI], Model]


def one(job: Job, model: Model) -> Agent[None]:
    return Agent(name=AGENT, model=model, tools=[function_tool(tool) for tool in job.tools])


def nested(job: Job, model: Model) -> Agent[None]:
    inner = one(job, model).as_tool("ask_another", "Let another agent do it.", max_turns=CAP)
    return Agent(name="planner", model=model, tools=[inner])


def handing_over(job: Job, model: Model) -> Agent[None]:
    first = one(job, model)
    first.handoffs = [Agent(name="other", model=model, tools=first.tools, handoffs=[first])]
    return first


class Remembered:
    """What was said so far, kept by the application."""

    def __init__(self, made: Made, model_of: ModelOf) -> None:
        self._made = made
        self._model_of = model_of
        self._items: list[TResponseInputItem] = []

    def agent(self, job: Job, client: AsyncOpenAI) -> Agent[None]:
        return self._made(job, self._model_of(job.script, client))

    def and_now(self, job: Job) -> list[TResponseInputItem]:
        return [*self._items, {"role": "user", "content": job.prompt}]

    def ended(self, result: RunResult | RunResultStreaming) -> str:
        self._items = result.to_input_list()
        return str(result.final_output)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Keep what a stopped run has done."""
        try:
            yield
        except module.AgentsRunAborted as stopped:
            done = stopped.run_data
            assert done is not None
            self._items = ItemHelpers.input_to_new_input_list(done.input)
            self._items += [item.to_input_item() for item in done.new_items]
            raise


class Waiting(Remembered):
    def ask(self, job: Job) -> str:
        # A loop for each run: it warns of generators once `run_sync` has come back.
        with thread_loop() as loop:
            client = AsyncOpenAI(base_url=job.url, api_key="none")
            try:
                with self.stopped():
                    agent = self.agent(job, client)
                    return self.ended(Runner.run_sync(agent, self.and_now(job), max_turns=CAP))
            finally:
                loop.run_until_complete(client.close())


class Awaited(Remembered):
    async def ask(self, job: Job) -> str:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            with self.stopped():
                agent = self.agent(job, client)
                return self.ended(await Runner.run(agent, self.and_now(job), max_turns=CAP))


class Streamed(Remembered):
    async def ask(self, job: Job) -> str:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            with self.stopped():
                agent = self.agent(job, client)
                result = Runner.run_streamed(agent, self.and_now(job), max_turns=CAP)
                async for _ in result.stream_events():
                    pass
                return self.ended(result)


class InSession:
    """What was said so far is kept by the SDK."""

    def __init__(self, session: SQLiteSession, *, is_streamed: bool) -> None:
        self._session = session
        self._is_streamed = is_streamed

    async def ask(self, job: Job) -> str:
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            agent, kept = one(job, OpenAIResponsesModel(job.script, client)), self._session
            if not self._is_streamed:
                result = await Runner.run(agent, job.prompt, session=kept, max_turns=CAP)
                return str(result.final_output)
            streamed = Runner.run_streamed(agent, job.prompt, session=kept, max_turns=CAP)
            async for _ in streamed.stream_events():
                pass
            return str(streamed.final_output)


@contextmanager
def sync(made: Made = one) -> Talk:
    yield Waiting(made, OpenAIResponsesModel)


@asynccontextmanager
async def awaited(
    kind: Callable[[Made, ModelOf], AsyncConversation],
    made: Made = one,
    model_of: ModelOf = OpenAIResponsesModel,
) -> AsyncTalk:
    yield kind(made, model_of)


@asynccontextmanager
async def in_session(*, is_streamed: bool) -> AsyncTalk:
    with closing(SQLiteSession("conversation")) as session:
        yield InSession(session, is_streamed=is_streamed)


def nothing(_: TracerProvider, *, content: bool) -> AbstractContextManager[None]:  # noqa: ARG001
    """Leave the framework as it is, without any spans."""
    return nullcontext()


INTEGRATED = Integrated(
    title="OpenAI Agents SDK",
    module=module,
    instrument=instrument,
    blocking={
        "sync": sync,
        "parallel sync": sync,
        "nested sync": partial(sync, nested),
        "hand-off sync": partial(sync, handing_over),
    },
    awaited={
        "async": partial(awaited, Awaited),
        "stream": partial(awaited, Streamed),
        "chat-stream": partial(awaited, Streamed, one, OpenAIChatCompletionsModel),
        "parallel async": partial(awaited, Awaited),
        "parallel stream": partial(awaited, Streamed),
        "nested async": partial(awaited, Awaited, nested),
        "nested stream": partial(awaited, Streamed, nested),
        "hand-off async": partial(awaited, Awaited, handing_over),
        "hand-off stream": partial(awaited, Streamed, handing_over),
        "session async": partial(in_session, is_streamed=False),
        "session stream": partial(in_session, is_streamed=True),
    },
    packages=("openai-agents", "openai", "opentelemetry-instrumentation-genai-openai-agents"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "openai_agents_agent.py",
)


@pytest.mark.parametrize("talk", ["sync", "async"])
def test_a_run_that_no_span_shows_is_stopped_and_gone_on_with(talk: str):
    with model_server(cap=2 * CAP) as server:
        unseen = INTEGRATED._replace(instrument=nothing)
        with Stage(unseen, server).guarded() as scene:
            stopped, went_on = scene.talk(talk, "endless", "finish3")
    assert type(stopped.error) is module.AgentsRunAborted
    assert stopped.counts == Counts(requests=5, executions=5)
    assert (went_on.answer, went_on.error) == (ANSWER, None)


__all__ = ["INTEGRATED", "TestIntegration"]

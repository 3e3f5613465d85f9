"""The contract on the integration of Microsoft Agent Framework, with the spans of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    InMemoryHistoryProvider,
    Message,
    Workflow,
    WorkflowEvent,
    tool,
)
from agent_framework.observability import OBSERVABILITY_SETTINGS
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from agent_framework_orchestrations import HandoffBuilder
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import Policy, guarded_run
from otel_loopguard.integrations import agent_framework
from otel_loopguard.integrations.agent_framework import AgentFrameworkRunAborted
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, CAP, Job, thread_loop
from tests.frameworks._integrated import Integrated, Talk, Waiting
from tests.frameworks._stage import Scene, Stage
from tests.frameworks._workbench import Counts

ONE_CALL = Policy.none().with_limits(max_llm_calls=1)
EXAMPLE = Path(__file__).parents[2] / "examples" / "integrations" / "agent_framework_agent.py"

Make: TypeAlias = Callable[[OpenAIChatCompletionClient, Job], Agent]


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Its spans go to the provider of the process, which can be set only once.
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        patch.setattr(OBSERVABILITY_SETTINGS, "enable_instrumentation", value=True)
        patch.setattr(OBSERVABILITY_SETTINGS, "enable_sensitive_data", content)
        yield


class Scripted(ChatMiddleware):
    """Asks for the model that is to play the turn: a team keeps what its agents were made with."""

    script = ""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        context.options = {**(context.options or {}), "model": self.script}
        await call_next()


class Conversation:
    """Whoever is talked to by way of one client, which is there from the first turn on."""

    def __init__(self) -> None:
        self._client: AsyncOpenAI | None = None
        self._model: OpenAIChatCompletionClient | None = None
        self._scripted = Scripted()

    def model(self, job: Job) -> OpenAIChatCompletionClient:
        self._scripted.script = job.script
        if self._model is None:
            self._client = AsyncOpenAI(base_url=job.url, api_key="none")
            self._model = OpenAIChatCompletionClient(
                model=job.script, async_client=self._client, middleware=[self._scripted]
            )
            self._model.function_invocation_configuration["max_iterations"] = CAP
        return self._model

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


class WithAgent(Conversation):
    """An agent that is made anew for each turn, and the session that it remembers by."""

    def __init__(self, make: Make, *, is_streamed: bool = False) -> None:
        super().__init__()
        self._make = make
        self._is_streamed = is_streamed
        self.session = AgentSession()

    async def ask(self, job: Job) -> str:
        agent = self._make(self.model(job), job)
        if not self._is_streamed:
            return (await agent.run(job.prompt, session=self.session)).text
        updates = agent.run(job.prompt, session=self.session, stream=True)
        return "".join([update.text async for update in updates])


class WithTeam(Conversation):
    """Two agents that may hand over to one another."""

    def __init__(self, *, is_streamed: bool = False) -> None:
        super().__init__()
        self._is_streamed = is_streamed
        self._team: Workflow | None = None

    async def ask(self, job: Job) -> str:
        model = self.model(job)
        self._team = self._team or team(model, job)
        if not self._is_streamed:
            return said(await self._team.run(job.prompt))
        return said([event async for event in self._team.run(job.prompt, stream=True)])


def said(events: Iterable[WorkflowEvent[Any]]) -> str:
    return "".join([event.data.text for event in events if event.type == "output"])


def team(model: OpenAIChatCompletionClient, job: Job) -> Workflow:
    options = {"tools": list(job.tools), "require_per_service_call_history_persistence": True}
    members = [Agent(model, name=name, **options) for name in ("triage", "expert")]
    return HandoffBuilder(participants=members).with_start_agent(members[0]).build()


def alone(model: OpenAIChatCompletionClient, job: Job, **options: Any) -> Agent:
    return Agent(model, name=AGENT, tools=list(job.tools), **options)


def nested(model: OpenAIChatCompletionClient, job: Job) -> Agent:
    return Agent(model, name="manager", tools=[alone(model, job).as_tool()])


def kept_by_call(model: OpenAIChatCompletionClient, job: Job) -> Agent:
    providers = [InMemoryHistoryProvider()]
    kept = {"require_per_service_call_history_persistence": True, "context_providers": providers}
    return alone(model, job, **kept)


def talk(make: Callable[[], Any]) -> AbstractAsyncContextManager[Any]:
    return aclosing(make())


@contextmanager
def sync() -> Talk:
    with thread_loop() as loop:
        conversation = WithAgent(alone)
        try:
            yield Waiting(conversation, loop.run_until_complete)
        finally:
            loop.run_until_complete(conversation.aclose())


def both(name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Return a way to run an agent, and the same streamed."""
    return {
        f"{name}async".strip(): partial(talk, make),
        f"{name}stream".strip(): partial(talk, partial(make, is_streamed=True)),
    }


INTEGRATED = Integrated(
    title="Microsoft Agent Framework",
    module=agent_framework,
    instrument=instrument,
    blocking={"sync": sync},
    awaited={
        **both("", partial(WithAgent, alone)),
        **both("parallel ", partial(WithAgent, alone)),
        **both("nested ", partial(WithAgent, nested)),
        **both("hand-off ", WithTeam),
        **both("kept-by-call ", partial(WithAgent, kept_by_call)),
    },
    packages=("agent-framework-core", "agent-framework-openai", "openai"),
    example=EXAMPLE,
)


class TestSession:
    """A session has the whole of a turn that was stopped, and nothing of one that never began."""

    @pytest.mark.parametrize("make", [alone, kept_by_call])
    @pytest.mark.parametrize("is_streamed", [False, True])
    def test_messages(self, stage: Stage, make: Make, *, is_streamed: bool):
        with stage.guarded(ONE_CALL) as scene:
            conversation = WithAgent(make, is_streamed=is_streamed)
            kept = asyncio.run(kept_by(conversation, scene, turns=2))
        assert kept == ["user", "assistant", "tool", "assistant"]


async def kept_by(conversation: WithAgent, scene: Scene, *, turns: int) -> list[str]:
    job = Job("endless", scene.server.url, scene.tools("endless"))
    async with guarded_run():
        for _ in range(turns):
            with pytest.raises(AgentFrameworkRunAborted):
                await conversation.ask(job)
        await conversation.aclose()
    [history] = conversation.session.state.values()
    return [message.role for message in history["messages"]]


class TestElsewhere:
    """Where no session of the framework's keeps what was said."""

    def test_conversation_that_a_service_keeps(self, stage: Stage):
        """What it has not got is handed over, so that it can be told first."""
        session = AgentSession()
        with stage.guarded(ONE_CALL) as scene, pytest.raises(AgentFrameworkRunAborted) as raised:
            asyncio.run(by_responses(scene, session))
        assert session.service_session_id is not None
        [unsent] = raised.value.unsent
        assert [content.type for content in unsent.contents] == ["function_result"]
        assert unsent in raised.value.response.messages

    def test_client_without_an_agent(self, stage: Stage):
        with (
            stage.guarded(ONE_CALL) as scene,
            pytest.raises(AgentFrameworkRunAborted) as raised,
            scene.provider.get_tracer("application").start_as_current_span("loop"),
        ):
            asyncio.run(by_client(scene))
        assert raised.value.response is None
        assert scene.counts() == Counts(requests=1, executions=1)


async def by_responses(scene: Scene, session: AgentSession) -> None:
    async with AsyncOpenAI(base_url=scene.server.url, api_key="none") as client:
        model = OpenAIChatClient(model="endless", async_client=client)
        await Agent(model, tools=[*scene.tools("endless")]).run("go", session=session)


async def by_client(scene: Scene) -> None:
    async with AsyncOpenAI(base_url=scene.server.url, api_key="none") as client:
        model = OpenAIChatCompletionClient(model="endless", async_client=client)
        tools = [tool(each) for each in scene.tools("endless")]
        await model.get_response([Message("user", ["go"])], options={"tools": tools})


__all__ = ["INTEGRATED", "TestElsewhere", "TestIntegration", "TestSession"]

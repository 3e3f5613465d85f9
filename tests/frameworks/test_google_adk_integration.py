"""The contract of Google ADK's integration: agents in a runner, alone, as tools, handing over."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.integrations.openai import OpenAILlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from openai import AsyncOpenAI

from otel_loopguard.integrations import google_adk
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, CAP, Job
from tests.frameworks._integrated import AsyncTalk, Integrated, Talk
from tests.frameworks.test_google_adk import USER, instrument, text

# ADK hands the plugins of a runner to the one of an `AgentTool` in a way that it warns of.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning")

Made = Callable[[Job, AsyncOpenAI], LlmAgent]
"""Makes an agent."""

WHOLE = RunConfig(max_llm_calls=CAP)
PARTS = RunConfig(max_llm_calls=CAP, streaming_mode=StreamingMode.SSE)


def single(job: Job, client: AsyncOpenAI) -> LlmAgent:
    return agent(AGENT, job, client)


def nested(job: Job, client: AsyncOpenAI) -> LlmAgent:
    inner = agent("researcher", job, client)
    return LlmAgent(name=AGENT, model=inner.model, tools=[AgentTool(inner)])


def partners(job: Job, client: AsyncOpenAI) -> LlmAgent:
    one, other = agent(AGENT, job, client), agent("researcher", job, client)
    return one.model_copy(update={"sub_agents": [other]})


def agent(name: str, job: Job, client: AsyncOpenAI) -> LlmAgent:
    model = OpenAILlm(model=job.script, client=client)
    return LlmAgent(name=name, description="Searches.", model=model, tools=list(job.tools))


class Conversation:
    """A session, and a runner for each thing that is said in it."""

    def __init__(self, made: Made = single, config: RunConfig = WHOLE) -> None:
        self._made = made
        self._config = config
        self._sessions = InMemorySessionService()

    def runner(self, job: Job, client: AsyncOpenAI) -> Runner:
        return Runner(
            app_name=AGENT,
            agent=self._made(job, client),
            session_service=self._sessions,
            auto_create_session=True,
        )


class Blocking(Conversation):
    def ask(self, job: Job) -> str:
        # The event loop is in a thread of ADK's, and over before anybody could close the client.
        headers = {"connection": "close"}
        client = AsyncOpenAI(base_url=job.url, api_key="none", default_headers=headers)
        message = types.UserContent(job.prompt)
        said = ""
        for event in self.runner(job, client).run(
            user_id=USER, session_id=AGENT, new_message=message, run_config=self._config
        ):
            said = text(event) or said
        return said


class Awaited(Conversation):
    async def ask(self, job: Job) -> str:
        said = ""
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
            events: AsyncGenerator[Event, None] = self.runner(job, client).run_async(
                user_id=USER,
                session_id=AGENT,
                new_message=types.UserContent(job.prompt),
                run_config=self._config,
            )
            async with aclosing(events):
                async for event in events:
                    said = text(event) or said
        return said


def awaited(made: Made = single, config: RunConfig = WHOLE) -> Callable[[], AsyncTalk]:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        yield Awaited(made, config)

    return talk


@contextmanager
def blocking() -> Talk:
    yield Blocking()


INTEGRATED = Integrated(
    title="Google ADK",
    module=google_adk,
    instrument=instrument,
    blocking={"sync": blocking},
    awaited={
        "async": awaited(),
        "stream": awaited(config=PARTS),
        "parallel async": awaited(),
        "parallel stream": awaited(config=PARTS),
        "nested async": awaited(nested),
        "nested stream": awaited(nested, PARTS),
        "hand-off async": awaited(partners),
        "hand-off stream": awaited(partners, PARTS),
    },
    packages=("google-adk", "openai"),
    example=Path("examples/integrations/google_adk_agent.py"),
)

__all__ = ["INTEGRATED", "TestIntegration"]

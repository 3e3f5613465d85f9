"""The integration of Haystack, with the spans that its own tracing writes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any, TypeAlias

from haystack import tracing
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.integrations import haystack
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job
from tests.frameworks._integrated import (
    AsyncConversation,
    AsyncTalk,
    Conversation,
    Ended,
    Integrated,
    Talk,
)

Made: TypeAlias = Callable[[Job], Agent]
"""Makes the agent of a job."""


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    tracing.enable_tracing(OpenTelemetryTracer(provider.get_tracer("haystack")))
    tracing.tracer.is_content_tracing_enabled = content
    try:
        yield
    finally:
        tracing.tracer.is_content_tracing_enabled = False
        tracing.disable_tracing()


def agent(job: Job, tools: Any) -> Agent:
    model = OpenAIChatGenerator(
        model=job.script, api_base_url=job.url, api_key=Secret.from_token("none")
    )
    offered = [create_tool_from_function(each) for each in tools]
    return Agent(chat_generator=model, tools=offered, max_agent_steps=CAP)


def single(job: Job) -> Agent:
    return agent(job, job.tools)


def nested(job: Job) -> Agent:
    def delegate(query: str) -> str:
        """Have another agent look something up."""
        inner = single(job)
        try:
            return str(inner.run([ChatMessage.from_user(query)])["last_message"].text)
        finally:
            inner.close()

    return agent(job, [delegate])


class Blocking:
    """Keeps what was said, as an application does."""

    def __init__(self, made: Made, **options: Any) -> None:
        self.made = made
        self.options = options
        self.messages: list[ChatMessage] = []

    def ask(self, job: Job) -> str | Ended:
        asked = [*self.messages, ChatMessage.from_user(job.prompt)]
        made = self.made(job)
        try:
            return self.got(made.run(asked, **self.options))
        finally:
            made.close()

    def got(self, outcome: dict[str, Any]) -> str | Ended:
        self.messages = outcome["messages"]
        reason = outcome["exit_reason"]
        if reason == haystack.RUN_ABORTED:
            return Ended(f"exit_reason={reason!r}")
        return str(outcome["last_message"].text)


class Awaited(Blocking):
    async def ask(self, job: Job) -> str | Ended:
        asked = [*self.messages, ChatMessage.from_user(job.prompt)]
        made = self.made(job)
        try:
            return self.got(await made.run_async(asked, **self.options))
        finally:
            await made.close_async()


def ignored(_chunk: Any) -> None:
    """Take a part of a stream."""


async def awaited_and_ignored(_chunk: Any) -> None:
    """Take a part of a stream."""


def blocking(made: Made, **options: Any) -> Callable[[], AbstractContextManager[Conversation]]:
    @contextmanager
    def opened() -> Talk:
        yield Blocking(made, **options)

    return opened


def awaited(
    made: Made, **options: Any
) -> Callable[[], AbstractAsyncContextManager[AsyncConversation]]:
    @asynccontextmanager
    async def opened() -> AsyncTalk:
        yield Awaited(made, **options)

    return opened


INTEGRATED = Integrated(
    title="Haystack",
    module=haystack,
    instrument=instrument,
    blocking={
        "sync": blocking(single),
        "stream": blocking(single, streaming_callback=ignored),
        "parallel sync": blocking(single),
        "nested sync": blocking(nested),
    },
    awaited={
        "async": awaited(single),
        "async-stream": awaited(single, streaming_callback=awaited_and_ignored),
        "parallel async": awaited(single),
        "nested async": awaited(nested),
    },
    packages=("haystack-ai", "openai", "opentelemetry-haystack"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "haystack_agent.py",
)

__all__ = ["INTEGRATED", "TestIntegration"]

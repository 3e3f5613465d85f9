"""The integration of LlamaIndex, with the spans of OpenInference."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI

from otel_loopguard.integrations import llama_index
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, CAP, Job, thread_loop
from tests.frameworks._integrated import (
    AsyncConversation,
    AsyncTalk,
    Conversation,
    Integrated,
    Talk,
    Waiting,
)
from tests.frameworks.test_llama_index import instrument, pytestmark


class Shared(NamedTuple):
    """What the agents of a conversation share."""

    client: AsyncOpenAI
    memory: ChatMemoryBuffer
    streaming: bool


Made: TypeAlias = Callable[[Job, Shared], Any]
"""Makes what can be run."""


def agent(job: Job, tools: Any, shared: Shared, **more: Any) -> FunctionAgent:
    model = OpenAILike(
        model=job.script,
        is_chat_model=True,
        is_function_calling_model=True,
        async_openai_client=shared.client.with_options(base_url=job.url),
        additional_kwargs={"stream_options": {"include_usage": True}} if shared.streaming else {},
    )
    given = {"name": AGENT, "tools": [*tools], "llm": model, "streaming": shared.streaming}
    return FunctionAgent(**{**given, **more})


def single(job: Job, shared: Shared) -> Any:
    return agent(job, job.tools, shared)


def nested(job: Job, shared: Shared) -> Any:
    async def delegate(query: str) -> str:
        """Have another agent look something up."""
        inner = agent(job, job.tools, shared, name="inner")
        return str(await inner.run(user_msg=query, max_iterations=CAP))

    return agent(job, [delegate], shared)


def handing_over(job: Job, shared: Shared) -> Any:
    here, there = (
        agent(job, job.tools, shared, name=name, description=name, can_handoff_to=[other])
        for name, other in (("alpha", "beta"), ("beta", "alpha"))
    )
    return AgentWorkflow(agents=[here, there], root_agent="beta")


class Awaited(NamedTuple):
    made: Made
    shared: Shared

    async def ask(self, job: Job) -> str:
        made = self.made(job, self.shared)
        run = made.run(user_msg=job.prompt, memory=self.shared.memory, max_iterations=CAP)
        async for _ in run.stream_events():
            pass
        return str(await run)


def shared(*, streaming: bool) -> Shared:
    client = AsyncOpenAI(base_url="set for each job", api_key="none")
    return Shared(client, ChatMemoryBuffer.from_defaults(), streaming)


def awaited(
    made: Made, *, streaming: bool = False
) -> Callable[[], AbstractAsyncContextManager[AsyncConversation]]:
    @asynccontextmanager
    async def opened() -> AsyncTalk:
        parts = shared(streaming=streaming)
        async with parts.client:
            yield Awaited(made, parts)

    return opened


def blocking(made: Made) -> Callable[[], AbstractContextManager[Conversation]]:
    @contextmanager
    def opened() -> Talk:
        parts = shared(streaming=False)
        with thread_loop() as loop:
            yield Waiting(Awaited(made, parts), loop.run_until_complete)
            loop.run_until_complete(parts.client.close())

    return opened


INTEGRATED = Integrated(
    title="LlamaIndex",
    module=llama_index,
    instrument=instrument,
    blocking={"sync": blocking(single)},
    awaited={
        "async": awaited(single),
        "stream": awaited(single, streaming=True),
        "parallel async": awaited(single),
        "parallel stream": awaited(single, streaming=True),
        "nested async": awaited(nested),
        "nested stream": awaited(nested, streaming=True),
        "hand-off async": awaited(handing_over),
        "hand-off stream": awaited(handing_over, streaming=True),
    },
    packages=(
        "llama-index-core",
        "llama-index-workflows",
        "llama-index-llms-openai-like",
        "openai",
        "openinference-instrumentation-llama-index",
    ),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "llama_index_agent.py",
)

__all__ = ["INTEGRATED", "TestIntegration", "pytestmark"]

"""The integration of LangChain, with the spans of OpenTelemetry's package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from pydantic import SecretStr

from otel_loopguard.integrations import langchain
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, CAP, Job
from tests.frameworks._integrated import (
    AsyncConversation,
    AsyncTalk,
    Conversation,
    Integrated,
    Talk,
)
from tests.frameworks.test_langchain import ASYNC_HTTP_CLIENT, HTTP_CLIENT, answer, instrument

CONFIG: Any = {"recursion_limit": 2 * CAP, "configurable": {"thread_id": "one"}}
STREAM: Any = ["values", "messages"]


class Shared(NamedTuple):
    """What the graphs of a conversation share."""

    clients: dict[str, Any]
    memory: InMemorySaver


Graph: TypeAlias = Callable[[Job, Shared], Any]
"""Makes a graph that remembers."""


def chat(job: Job, shared: Shared) -> ChatOpenAI:
    return ChatOpenAI(
        model=job.script,
        base_url=job.url,
        api_key=SecretStr("none"),
        stream_usage=True,
        **shared.clients,
    )


def agent(job: Job, tools: Any, shared: Shared, **more: Any) -> Any:
    return cast("Any", create_agent)(chat(job, shared), list(tools), **{"name": AGENT, **more})


def single(job: Job, shared: Shared) -> Any:
    return agent(job, job.tools, shared, checkpointer=shared.memory)


def nested(job: Job, shared: Shared) -> Any:
    inner = agent(job, job.tools, shared, name="inner")

    def delegate(query: str) -> str:
        """Have another agent look something up."""
        return answer(inner.invoke(said(query)))

    return agent(job, [delegate], shared, checkpointer=shared.memory)


def awaiting(job: Job, shared: Shared) -> Any:
    inner = agent(job, job.tools, shared, name="inner")

    async def delegate(query: str) -> str:
        """Have another agent look something up."""
        return answer(await inner.ainvoke(said(query)))

    return agent(job, [delegate], shared, checkpointer=shared.memory)


def handing_over(job: Job, shared: Shared) -> Any:
    graph: Any = StateGraph(MessagesState)
    for name, other in (("here", "there"), ("there", "here")):
        graph.add_node(name, agent(job, [transfer(other), *job.tools], shared, name=name))
    graph.add_edge(START, "here")
    return graph.compile(checkpointer=shared.memory)


def transfer(to: str) -> Any:
    @tool(f"transfer_to_{to}")
    def hand_over(
        state: Annotated[Any, InjectedState], call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        """Hand over to the other agent."""
        done = ToolMessage(f"handed over to {to}", tool_call_id=call_id)
        update = {"messages": [*state["messages"], done]}
        return Command(goto=to, graph=Command.PARENT, update=update)

    return hand_over


def said(prompt: str) -> Any:
    return {"messages": [{"role": "user", "content": prompt}]}


class Invoked(NamedTuple):
    made: Graph
    shared: Shared

    def ask(self, job: Job) -> str:
        return answer(self.made(job, self.shared).invoke(said(job.prompt), CONFIG))


class Streamed(NamedTuple):
    made: Graph
    shared: Shared

    def ask(self, job: Job) -> str:
        parts: Iterator[Any] = self.made(job, self.shared).stream(
            said(job.prompt), CONFIG, stream_mode=STREAM
        )
        return answer([part for mode, part in parts if mode == "values"][-1])


class Awaited(NamedTuple):
    made: Graph
    shared: Shared

    async def ask(self, job: Job) -> str:
        return answer(await self.made(job, self.shared).ainvoke(said(job.prompt), CONFIG))


class AsyncStreamed(NamedTuple):
    made: Graph
    shared: Shared

    async def ask(self, job: Job) -> str:
        graph = self.made(job, self.shared)
        parts = graph.astream(said(job.prompt), CONFIG, stream_mode=STREAM)
        return answer([part async for mode, part in parts if mode == "values"][-1])


def blocking(
    kind: Callable[[Graph, Shared], Conversation], made: Graph
) -> Callable[[], AbstractContextManager[Conversation]]:
    @contextmanager
    def opened() -> Talk:
        with HTTP_CLIENT() as client:
            yield kind(made, Shared({"http_client": client}, InMemorySaver()))

    return opened


def awaited(
    kind: Callable[[Graph, Shared], AsyncConversation], made: Graph
) -> Callable[[], AbstractAsyncContextManager[AsyncConversation]]:
    @asynccontextmanager
    async def opened() -> AsyncTalk:
        async with ASYNC_HTTP_CLIENT() as client:
            yield kind(made, Shared({"http_async_client": client}, InMemorySaver()))

    return opened


INTEGRATED = Integrated(
    title="LangChain",
    module=langchain,
    instrument=instrument,
    blocking={
        "sync": blocking(Invoked, single),
        "stream": blocking(Streamed, single),
        "parallel sync": blocking(Invoked, single),
        "parallel stream": blocking(Streamed, single),
        "nested sync": blocking(Invoked, nested),
        "nested stream": blocking(Streamed, nested),
        "hand-off sync": blocking(Invoked, handing_over),
        "hand-off stream": blocking(Streamed, handing_over),
    },
    awaited={
        "async": awaited(Awaited, single),
        "async-stream": awaited(AsyncStreamed, single),
        "parallel async": awaited(Awaited, single),
        "parallel async-stream": awaited(AsyncStreamed, single),
        "nested async": awaited(Awaited, awaiting),
        "nested async-stream": awaited(AsyncStreamed, awaiting),
        "hand-off async": awaited(Awaited, handing_over),
        "hand-off async-stream": awaited(AsyncStreamed, handing_over),
    },
    packages=(
        "langchain",
        "langchain-core",
        "langgraph",
        "langchain-openai",
        "openai",
        "opentelemetry-instrumentation-genai-langchain",
    ),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "langchain_agent.py",
)

__all__ = ["INTEGRATED", "TestIntegration"]

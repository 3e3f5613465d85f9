"""The contract on LangChain's `create_agent`, with the spans of its OpenTelemetry package."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import openai
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import BaseMessage
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from pydantic import SecretStr

from tests.frameworks._contract_calm import TestHealthy, TestObserve
from tests.frameworks._contract_company import (
    TestOneAfterAnother,
    TestOneInsideAnother,
    TestOtherRequests,
    TestTwoAtOnce,
)
from tests.frameworks._contract_hooks import TestCancel, TestHooks
from tests.frameworks._contract_limits import TestHiddenContent, TestModelCalls, TestOtherLimits
from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._contract_stops import TestGuardedRun, TestStop
from tests.frameworks._contract_veto import TestBaseForm, TestVeto
from tests.frameworks._framework import AGENT, CAP, Framework, Job, genai_content

CONFIG: Any = {"recursion_limit": 2 * CAP}
HTTP_CLIENT: Any = openai.DefaultHttpxClient
ASYNC_HTTP_CLIENT: Any = openai.DefaultAsyncHttpxClient


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    langchain = LangChainInstrumentor()
    with genai_content(content=content):
        langchain.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        langchain.uninstrument()


def agent(job: Job, *, http_client: Any = None, http_async_client: Any = None) -> Any:
    model = ChatOpenAI(
        model=job.script,
        base_url=job.url,
        api_key=SecretStr("none"),
        stream_usage=True,
        http_client=http_client,
        http_async_client=http_async_client,
    )
    return cast("Any", create_agent)(model, list(job.tools), name=AGENT)


def asked(job: Job) -> Any:
    return {"messages": [{"role": "user", "content": job.prompt}]}


def answer(state: dict[str, list[BaseMessage]]) -> str:
    return str(state["messages"][-1].content)


def sync(job: Job) -> str:
    with HTTP_CLIENT() as client:
        return answer(agent(job, http_client=client).invoke(asked(job), CONFIG))


def stream(job: Job) -> str:
    state: Any = {}
    with HTTP_CLIENT() as client:
        graph = agent(job, http_client=client)
        for mode, part in graph.stream(asked(job), CONFIG, stream_mode=["values", "messages"]):
            state = part if mode == "values" else state
    return answer(state)


async def asynchronous(job: Job) -> str:
    async with ASYNC_HTTP_CLIENT() as client:
        return answer(await agent(job, http_async_client=client).ainvoke(asked(job), CONFIG))


async def async_stream(job: Job) -> str:
    state: Any = {}
    async with ASYNC_HTTP_CLIENT() as client:
        graph = agent(job, http_async_client=client)
        parts = graph.astream(asked(job), CONFIG, stream_mode=["values", "messages"])
        async for mode, part in parts:
            state = part if mode == "values" else state
    return answer(state)


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync, "stream": stream},
    awaited={"async": asynchronous, "async-stream": async_stream},
    capped=GraphRecursionError,
    at_cap=(12, 12),
    run_span=f"invoke_agent {AGENT}",
    agent_span=f"invoke_agent {AGENT}",
    run_agent=AGENT,
    spans_above=1,
    stumbles=frozenset({"async", "async-stream"}),
    title="LangChain `create_agent`",
    packages=(
        "langchain",
        "langgraph",
        "langchain-openai",
        "openai",
        "opentelemetry-instrumentation-genai-langchain",
    ),
)

__all__ = [
    "FRAMEWORK",
    "TestBaseForm",
    "TestCancel",
    "TestGuardedRun",
    "TestHealthy",
    "TestHiddenContent",
    "TestHooks",
    "TestMatrix",
    "TestModelCalls",
    "TestObserve",
    "TestOneAfterAnother",
    "TestOneInsideAnother",
    "TestOtherLimits",
    "TestOtherRequests",
    "TestStop",
    "TestTwoAtOnce",
    "TestVeto",
]

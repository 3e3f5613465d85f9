"""The contract on an agent of AutoGen, with its own spans and those of OpenInference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

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
from tests.frameworks._contract_veto import TestVeto
from tests.frameworks._framework import AGENT, CAP, Framework, Job
from tests.frameworks._openinference import openinference

CHAT = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # AutoGen's own spans go to the provider of the process, which can be set only once.
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        with openinference(AutogenAgentChatInstrumentor(), provider=provider, content=content):
            yield


@asynccontextmanager
async def client(job: Job, **streaming: Any) -> AsyncGenerator[OpenAIChatCompletionClient]:
    made = OpenAIChatCompletionClient(
        model=job.script, base_url=job.url, api_key="none", model_info=CHAT, **streaming
    )
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def agent(job: Job, *, turns: int = CAP, **streaming: Any) -> AsyncGenerator[AssistantAgent]:
    async with client(job, **streaming) as model:
        yield AssistantAgent(
            AGENT,
            model,
            tools=list(job.tools),
            max_tool_iterations=turns,
            model_client_stream=bool(streaming),
        )


async def asynchronous(job: Job) -> str:
    async with agent(job) as assistant:
        return (await assistant.run(task=job.prompt)).messages[-1].to_text()


def sync(job: Job) -> str:
    return asyncio.run(asynchronous(job))


async def stream(job: Job) -> str:
    async with agent(job, stream_options={"include_usage": True}) as assistant:
        last = [message async for message in assistant.run_stream(task=job.prompt)][-1]
    assert isinstance(last, TaskResult)
    return last.messages[-1].to_text()


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream},
    capped=type(None),  # the answer is then what the last tool said
    at_cap=(12, 12),
    run_span=f"invoke_agent {AGENT}",
    agent_span=f"{AGENT}.on_messages_stream",
    run_agent=AGENT,
    # The two of the run, that of the agent's making, and a second one for each tool call.
    spans_above=5,
    model_spans=frozenset(
        {"OpenAIChatCompletionClient.create", "OpenAIChatCompletionClient.create_stream"}
    ),
    tool_span=f"{AGENT}.search",
    block_span="guarded_run",
    cancelled=True,
    title="AutoGen `AssistantAgent`",
    packages=(
        "autogen-agentchat",
        "autogen-ext",
        "openai",
        "openinference-instrumentation-autogen-agentchat",
    ),
)

__all__ = [
    "FRAMEWORK",
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

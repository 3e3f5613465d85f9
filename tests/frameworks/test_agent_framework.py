"""The contract on Microsoft's Agent Framework, with the spans that it emits itself."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from agent_framework import Agent
from agent_framework.observability import OBSERVABILITY_SETTINGS
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
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
from tests.frameworks._contract_veto import TestBaseForm, TestVeto
from tests.frameworks._framework import AGENT, CAP, Framework, Job


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Its spans go to the provider of the process, which can be set only once.
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        patch.setattr(OBSERVABILITY_SETTINGS, "enable_instrumentation", value=True)
        patch.setattr(OBSERVABILITY_SETTINGS, "enable_sensitive_data", content)
        yield


def agent(job: Job, client: AsyncOpenAI) -> Agent:
    model = OpenAIChatCompletionClient(model=job.script, async_client=client)
    # One more request, without tools, is made when that many have been.
    model.function_invocation_configuration["max_iterations"] = CAP - 1
    return Agent(model, name=AGENT, tools=list(job.tools))


async def asynchronous(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        return (await agent(job, client).run(job.prompt)).text


def sync(job: Job) -> str:
    return asyncio.run(asynchronous(job))


async def stream(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        updates = agent(job, client).run(job.prompt, stream=True)
        return "".join([update.text async for update in updates])


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream},
    capped=type(None),  # the answer is then what the model says without tools
    at_cap=(12, 11),
    run_span=f"invoke_agent {AGENT}",
    agent_span=f"invoke_agent {AGENT}",
    run_agent=AGENT,
    spans_above=1,
    vetoed=frozenset({"llm", "tool"}),
    answers_vetoes=True,
    block_span="guarded_run",
    title="Microsoft Agent Framework",
    packages=("agent-framework-core", "agent-framework-openai", "openai"),
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

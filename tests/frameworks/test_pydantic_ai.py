"""The contract on Pydantic AI, with the spans that it emits itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, InstrumentationSettings, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

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
from tests.frameworks._framework import AGENT, CAP, Framework, Job, thread_loop

LIMITS = UsageLimits(request_limit=CAP)


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, include_content=content))
    try:
        yield
    finally:
        Agent.instrument_all(instrument=False)


def agent(job: Job, client: AsyncOpenAI) -> Agent[None, str]:
    model = OpenAIChatModel(job.script, provider=OpenAIProvider(openai_client=client))
    return Agent(model, name=AGENT, tools=list(job.tools))


def sync(job: Job) -> str:
    with thread_loop() as loop:
        client = AsyncOpenAI(base_url=job.url, api_key="none")
        try:
            return agent(job, client).run_sync(job.prompt, usage_limits=LIMITS).output
        finally:
            loop.run_until_complete(client.close())


async def asynchronous(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        return (await agent(job, client).run(job.prompt, usage_limits=LIMITS)).output


async def stream(job: Job) -> str:
    async with (
        AsyncOpenAI(base_url=job.url, api_key="none") as client,
        agent(job, client).run_stream(job.prompt, usage_limits=LIMITS) as streamed,
    ):
        return await streamed.get_output()


async def by_node(job: Job) -> str:
    async with (
        AsyncOpenAI(base_url=job.url, api_key="none") as client,
        agent(job, client).iter(job.prompt, usage_limits=LIMITS) as run,
    ):
        async for _ in run:
            pass
        return "" if run.result is None else run.result.output


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream, "iter": by_node},
    capped=UsageLimitExceeded,
    at_cap=(12, 12),
    run_span=f"invoke_agent {AGENT}",
    agent_span=f"invoke_agent {AGENT}",
    run_agent=AGENT,
    spans_above=1,
    vetoed=frozenset({"llm", "tool"}),
    title="Pydantic AI",
    packages=(
        "pydantic-ai-slim",
        "openai",
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

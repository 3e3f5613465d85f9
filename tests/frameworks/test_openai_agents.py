"""The contract on the OpenAI Agents SDK, with the spans of its two OpenTelemetry packages."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from agents import (
    Agent,
    MaxTurnsExceeded,
    Model,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
)
from openai import AsyncOpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
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
from tests.frameworks._framework import AGENT, CAP, Framework, Job, genai_content, thread_loop


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    agents, client = OpenAIAgentsInstrumentor(), OpenAIInstrumentor()
    with genai_content(content=content):
        agents.instrument(tracer_provider=provider, disable_openai_trace_export=True)
        client.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        client.uninstrument()
        agents.uninstrument()


def agent(job: Job, model: Model, settings: ModelSettings | None = None) -> Agent[None]:
    return Agent(
        name=AGENT,
        model=model,
        model_settings=settings or ModelSettings(),
        tools=[function_tool(tool) for tool in job.tools],
    )


def sync(job: Job) -> str:
    with thread_loop() as loop:
        client = AsyncOpenAI(base_url=job.url, api_key="none")
        try:
            model = OpenAIResponsesModel(job.script, client)
            return str(Runner.run_sync(agent(job, model), job.prompt, max_turns=CAP).final_output)
        finally:
            loop.run_until_complete(client.close())


async def asynchronous(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        model = OpenAIResponsesModel(job.script, client)
        return str((await Runner.run(agent(job, model), job.prompt, max_turns=CAP)).final_output)


async def stream(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        return await streamed(job, OpenAIResponsesModel(job.script, client))


async def chat_stream(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        model = OpenAIChatCompletionsModel(job.script, client)
        return await streamed(job, model, ModelSettings(include_usage=True))


async def streamed(job: Job, model: Model, settings: ModelSettings | None = None) -> str:
    result = Runner.run_streamed(agent(job, model, settings), job.prompt, max_turns=CAP)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream, "chat-stream": chat_stream},
    capped=MaxTurnsExceeded,
    at_cap=(12, 12),
    run_span="invoke_workflow Agent workflow",
    agent_span=f"invoke_agent {AGENT}",
    run_agent="Agent workflow",
    spans_above=2,
    vetoed=frozenset({"llm"}),
    title="OpenAI Agents SDK",
    packages=(
        "openai-agents",
        "openai",
        "opentelemetry-instrumentation-genai-openai-agents",
        "opentelemetry-instrumentation-genai-openai",
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

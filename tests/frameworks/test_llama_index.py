"""The contract on LlamaIndex's `FunctionAgent`, with the spans of OpenInference."""

# Without `TestBaseForm`: its callers wait for ever when a step raises what is no `Exception`.

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from workflows.errors import WorkflowRuntimeError

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

# LlamaIndex, and what traces it, use old names of Pydantic; raised, that would lose spans.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def instrument(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    return openinference(LlamaIndexInstrumentor(), provider=provider, content=content)


async def answer(job: Job, *, streaming: bool) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        model = OpenAILike(
            model=job.script,
            is_chat_model=True,
            is_function_calling_model=True,
            async_openai_client=client,
            # Without it no usage is streamed, and asked for at once it is refused.
            additional_kwargs={"stream_options": {"include_usage": True}} if streaming else {},
        )
        agent = FunctionAgent(name=AGENT, tools=[*job.tools], llm=model, streaming=streaming)
        run = agent.run(user_msg=job.prompt, max_iterations=CAP)
        async for _ in run.stream_events():
            pass
        return str(await run)


async def asynchronous(job: Job) -> str:
    return await answer(job, streaming=False)


async def stream(job: Job) -> str:
    return await answer(job, streaming=True)


def sync(job: Job) -> str:
    return asyncio.run(answer(job, streaming=False))


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream},
    capped=WorkflowRuntimeError,
    # It looks at its limit before it runs the tools that the last answer asks for.
    at_cap=(12, 11),
    run_span="FunctionAgent.run",
    agent_span="FunctionAgent.run",
    run_agent="FunctionAgent.run",
    # The run, its beginning, five beside each model call's, and two beside each tool call's.
    spans_above=21,
    model_spans=frozenset({"OpenAILike.achat", "OpenAILike.astream_chat"}),
    tool_span="FunctionTool.acall",
    spans_between=frozenset(
        {
            "BaseWorkflowAgent.call_tool",
            "BaseWorkflowAgent.run_agent_step",
            "OpenAILike.achat",
            "OpenAILike.astream_chat",
        }
    ),
    agent="FunctionAgent.run",
    title="LlamaIndex `FunctionAgent`",
    packages=(
        "llama-index-core",
        "llama-index-llms-openai-like",
        "openai",
        "openinference-instrumentation-llama-index",
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

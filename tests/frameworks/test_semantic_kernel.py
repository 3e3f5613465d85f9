"""The contract on Semantic Kernel, with the spans that it emits itself.

Without what the contract asks of violations one by one: answers of the model are on none of its
spans, and a function is called by the name of its plugin too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

import pytest
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import chat_completion_client_base
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import KernelFunctionFromMethod, KernelPlugin, kernel_function
from semantic_kernel.utils.telemetry.agent_diagnostics import decorators as agent_spans
from semantic_kernel.utils.telemetry.model_diagnostics import decorators as model_spans
from semantic_kernel.utils.telemetry.model_diagnostics import function_tracer

from tests.frameworks._contract_calm import TestHealthy
from tests.frameworks._contract_company import (
    TestOneAfterAnother,
    TestOneInsideAnother,
    TestOtherRequests,
    TestTwoAtOnce,
)
from tests.frameworks._contract_hooks import TestCancel
from tests.frameworks._contract_limits import TestModelCalls
from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._contract_stops import TestGuardedRun
from tests.frameworks._contract_veto import TestBaseForm, TestVeto
from tests.frameworks._framework import AGENT, CAP, Framework, Job

PLUGIN = "tools"
TRACED = (
    chat_completion_client_base,
    import_module("semantic_kernel.functions.kernel_function"),  # a decorator has that name too
    agent_spans,
    model_spans,
)
"""Modules that hold a tracer of the provider of the process, which can be set only once."""
SWITCHED = (agent_spans, model_spans, function_tracer)
"""Modules that have read the environment for whether to write spans, and what in them."""


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in TRACED:
            patch.setattr(module, "tracer", provider.get_tracer(module.__name__))
        for module in SWITCHED:
            settings = module.MODEL_DIAGNOSTICS_SETTINGS
            patch.setattr(settings, "enable_otel_diagnostics", value=True)
            patch.setattr(settings, "enable_otel_diagnostics_sensitive", content)
        yield


def agent(job: Job, client: AsyncOpenAI) -> ChatCompletionAgent:
    functions = [KernelFunctionFromMethod(kernel_function(tool), PLUGIN) for tool in job.tools]
    choice = FunctionChoiceBehavior.Auto()
    # One more request, without functions, is made after that many.
    choice.maximum_auto_invoke_attempts = CAP - 1
    return ChatCompletionAgent(
        name=AGENT,
        service=OpenAIChatCompletion(ai_model_id=job.script, async_client=client),
        plugins=[KernelPlugin(name=PLUGIN, functions=functions)],
        function_choice_behavior=choice,
    )


async def asynchronous(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        return str(await agent(job, client).get_response(job.prompt))


def sync(job: Job) -> str:
    return asyncio.run(asynchronous(job))


async def invoked(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        return "".join([str(each) async for each in agent(job, client).invoke(job.prompt)])


async def stream(job: Job) -> str:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        return "".join([str(each) async for each in agent(job, client).invoke_stream(job.prompt)])


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "invoke": invoked, "stream": stream},
    capped=type(None),  # the answer is then what the model says without functions
    at_cap=(12, 11),
    run_span=f"invoke_agent {AGENT}",
    agent_span=f"invoke_agent {AGENT}",
    run_agent=AGENT,
    spans_above=2,
    spans_between=frozenset({"AutoFunctionInvocationLoop"}),
    tool_span=f"execute_tool {PLUGIN}-search",
    vetoed=frozenset({"llm", "tool"}),
    answers_vetoes=True,
    title="Semantic Kernel",
    packages=("semantic-kernel", "openai"),
)

__all__ = [
    "FRAMEWORK",
    "TestBaseForm",
    "TestCancel",
    "TestGuardedRun",
    "TestHealthy",
    "TestMatrix",
    "TestModelCalls",
    "TestOneAfterAnother",
    "TestOneInsideAnother",
    "TestOtherRequests",
    "TestTwoAtOnce",
    "TestVeto",
]

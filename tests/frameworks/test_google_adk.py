"""The contract on Google's Agent Development Kit, with the spans that it emits itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.integrations.openai import OpenAILlm
from google.adk.runners import InMemoryRunner
from google.adk.telemetry import tracing
from google.genai import types
from openai import AsyncOpenAI
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
from tests.frameworks._framework import AGENT, CAP, Framework, Job, genai_content

USER = "somebody"


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with genai_content(content=content), pytest.MonkeyPatch.context() as patch:
        # ADK traces with the global provider, which a process can set once; here each test has one.
        patch.setattr(tracing.tracer, "_real_tracer", provider.get_tracer("gcp.vertex.agent"))
        yield


def runner(job: Job, client: AsyncOpenAI) -> InMemoryRunner:
    model = OpenAILlm(model=job.script, client=client)
    agent = LlmAgent(name=AGENT, model=model, tools=list(job.tools))
    runner = InMemoryRunner(agent, app_name=AGENT)
    runner.auto_create_session = True
    return runner


def sync(job: Job) -> str:
    # The event loop is in a thread of ADK's, and over before anybody could close the client in it.
    client = AsyncOpenAI(base_url=job.url, api_key="none", default_headers={"connection": "close"})
    message = types.UserContent(job.prompt)
    config = RunConfig(max_llm_calls=CAP)
    said = ""
    for event in runner(job, client).run(
        user_id=USER, session_id=job.script, new_message=message, run_config=config
    ):
        said = text(event) or said
    return said


async def asynchronous(job: Job) -> str:
    return await last_words(job, RunConfig(max_llm_calls=CAP))


async def stream(job: Job) -> str:
    return await last_words(job, RunConfig(max_llm_calls=CAP, streaming_mode=StreamingMode.SSE))


async def last_words(job: Job, config: RunConfig) -> str:
    said = ""
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        events: AsyncGenerator[Event, None] = runner(job, client).run_async(
            user_id=USER,
            session_id=job.script,
            new_message=types.UserContent(job.prompt),
            run_config=config,
        )
        async with aclosing(events):
            async for event in events:
                said = text(event) or said
    return said


def text(event: Event) -> str:
    """Return what the agent says in an event, or nothing where that is a part of it."""
    parts = event.content.parts if event.content and not event.partial else None
    return "".join(part.text or "" for part in parts or ())


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream},
    capped=LlmCallsLimitExceededError,
    at_cap=(12, 12),
    run_span=f"invoke_workflow {AGENT}",
    agent_span=f"invoke_agent {AGENT}",
    run_agent=AGENT,
    spans_above=2,
    model_spans=frozenset({"generate_content endless"}),
    vetoed=frozenset({"llm", "tool"}),
    shows_arguments_late=True,
    wraps=frozenset({"sync"}),  # the thread hands on what is an `Exception` only
    title="Google ADK",
    packages=("google-adk", "openai"),
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

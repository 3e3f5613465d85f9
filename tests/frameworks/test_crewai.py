"""The contract on CrewAI, with the spans of OpenInference for it and for its client."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import pytest
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
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

# What it tells its makers is settled when it is imported, and so are the warnings that it raises.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from crewai import LLM, Agent, Crew, Task, hooks
    from crewai.tools import tool
    from crewai.utilities import agent_utils

    from otel_loopguard.integrations import crewai as integration

# Its own code uses what it has declared deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@contextmanager
def instrumented(
    *packages: BaseInstrumentor, provider: TracerProvider, content: bool
) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # It stops by itself at the very call that the default policy stops a run at; older ones
        # than 1.15.30 may not.
        patch.setattr(agent_utils, "MAX_REPEATED_TOOL_CALLS", 2 * CAP, raising=False)
        with openinference(*packages, provider=provider, content=content):
            yield


def instrument(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    packages = CrewAIInstrumentor(), OpenAIInstrumentor()
    return instrumented(*packages, provider=provider, content=content)


def agent(job: Job) -> Agent:
    return Agent(
        role=AGENT,
        goal="answer",
        backstory="none",
        llm=LLM(model=f"openai/{job.script}", base_url=job.url, api_key="none"),
        tools=[tool(each) for each in job.tools],
        max_iter=CAP,
        cache=False,  # else a tool that is called again is not executed
    )


def crew(job: Job) -> Crew:
    member = agent(job)
    task = Task(description=job.prompt, expected_output="an answer", agent=member)
    return Crew(name="company", agents=[member], tasks=[task])


def sync(job: Job) -> str:
    return crew(job).kickoff().raw


async def threaded(job: Job) -> str:
    return (await crew(job).kickoff_async()).raw


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"thread": threaded},
    capped=type(None),
    at_cap=(13, 12),
    # It asks for a last answer, without tools.
    at_cap_status="complete",
    run_span="company.kickoff",
    agent_span=f"{AGENT}._execute_core",
    run_agent="company.kickoff",
    spans_above=2,
    model_spans=frozenset({"ChatCompletion"}),
    tool_span="search.run",
    vetoed=frozenset({"tool"}),
    answers_vetoes=True,
    shows_arguments_late=True,
    title="CrewAI `Crew.kickoff`",
    packages=(
        "crewai",
        "openai",
        "openinference-instrumentation-crewai",
        "openinference-instrumentation-openai",
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
    "hooks",
    "integration",
]

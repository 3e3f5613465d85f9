"""The contract on LangChain's `create_agent`, with OpenInference's spans.

Where it is awaited these are not current while its requests are made: what the requests tell says
whose they are.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import Policy
from tests.frameworks import test_langchain
from tests.frameworks._contract_calm import TestHealthy
from tests.frameworks._contract_company import TestOneAfterAnother, TestTwoAtOnce
from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._expected import aborted, ended_runs
from tests.frameworks._framework import AGENT
from tests.frameworks._openinference import openinference
from tests.frameworks._workbench import Counts, Workbench

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11),
    reason="awaited, LangChain's model calls hang below no span: tasks take no context yet",
)


def instrument(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    return openinference(LangChainInstrumentor(), provider=provider, content=content)


FRAMEWORK = test_langchain.FRAMEWORK._replace(
    instrument=instrument,
    run_span=AGENT,
    agent_span=AGENT,
    spans_between=frozenset({AGENT, "model", "tools"}),
    run_agent=AGENT,
    spans_above=6,  # the run's, and one around each of its turns and tool calls
    model_spans=frozenset({"ChatOpenAI"}),
    tool_span="search",
    title="LangChain `create_agent`, by OpenInference",
    packages=(
        "langchain",
        "langgraph",
        "langchain-openai",
        "openai",
        "openinference-instrumentation-langchain",
    ),
)

ONLY_CALLS = Policy.none().with_limits(max_llm_calls=5)


class TestModelCalls:
    """Five calls are five requests, if it can be told whose they are."""

    def test_with_content(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY_CALLS) as scene:
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "llm_call_budget"
        assert outcome.counts == Counts(requests=5, executions=5)
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_without_content(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY_CALLS, content=False) as scene:
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "llm_call_budget"
        # Awaited, its requests are those of a loop without spans: the first one tells nothing.
        late = mode in bench.framework.awaited
        assert outcome.counts == Counts(requests=5 + late, executions=5 + late)


__all__ = [
    "FRAMEWORK",
    "TestHealthy",
    "TestMatrix",
    "TestOneAfterAnother",
    "TestTwoAtOnce",
]

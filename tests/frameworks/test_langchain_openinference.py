"""The contract on LangChain's `create_agent`, with OpenInference's spans.

Where it is awaited these are not current while its requests are made: what the requests tell says
whose they are.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import Policy
from tests.frameworks import test_langchain
from tests.frameworks._contract_calm import TestHealthy
from tests.frameworks._contract_company import TestOneAfterAnother, TestTwoAtOnce
from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._expected import aborted, ended_runs
from tests.frameworks._framework import AGENT
from tests.frameworks._workbench import Counts, Workbench

BEFORE_TASKS_HAD_CONTEXTS = sys.version_info < (3, 11)
"""LangChain's awaited model calls are then not known to be of the agent, and hang below no span."""

pytestmark = pytest.mark.skipif(BEFORE_TASKS_HAD_CONTEXTS, reason="model calls hang below no span")


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    langchain = LangChainInstrumentor()
    config = TraceConfig(hide_inputs=not content, hide_outputs=not content)
    langchain.instrument(tracer_provider=provider, config=config)
    try:
        yield
    finally:
        langchain.uninstrument()


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

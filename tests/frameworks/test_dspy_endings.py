"""How programs of DSPy end that its integration stops: untraced, traced later, over a call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import DSPyError
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, RunInterrupted
from otel_loopguard.integrations import dspy as integration
from otel_loopguard.integrations.dspy import DSPyRunAborted
from otel_loopguard.testing import ModelServer, model_server
from tests.frameworks._expected import ANSWER
from tests.frameworks._framework import Job
from tests.frameworks._stage import Stage
from tests.frameworks.test_dspy_integration import (
    INTEGRATED,
    instrument,
    single,
    surroundings,
)


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query}"


@contextmanager
def guarded(policy: Policy | None = None, **options: Any) -> Generator[ModelServer]:
    guard = LoopGuardSpanProcessor(policy, mode="enforce", **options)
    integration.install(guard)
    try:
        with model_server(cap=20) as server:
            yield server
    finally:
        guard.shutdown()


def run(server: ModelServer, history: dspy.History | None = None) -> Any:
    job = Job("endless", server.url, (search,))
    with surroundings(job):
        return single(job)(question="go", history=history or dspy.History(messages=[]))


def untraced(_provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


@pytest.mark.parametrize("how", ["sync", "async", "stream"])
def test_without_any_span(how: str):
    """Nothing else stops DSPy then: the model gate does not see the requests of its own engine."""
    with model_server(cap=20) as server:
        stage = Stage(INTEGRATED._replace(instrument=untraced), server)
        with stage.guarded() as scene:
            stopped, went_on = scene.talk(how, "endless", "finish3")
    assert (type(stopped.error), stopped.counts) == (DSPyRunAborted, (5, 5))
    assert went_on.answer == ANSWER


def test_the_error_is_one_of_dspy():
    with guarded() as server, pytest.raises(DSPyError, match="repeated_result") as stopped:
        run(server)
    assert isinstance(stopped.value, RunAborted)
    assert (stopped.value.code, stopped.value.report.tool_calls) == ("run_aborted", 5)


def test_a_refused_call_is_in_the_history():
    history = dspy.History(messages=[])
    policy = Policy.none().with_limits(max_tool_calls=2)
    with guarded(policy) as server, pytest.raises(DSPyRunAborted):
        run(server, history)
    results = [each["tool_calls"].tool_call_results for each in history.messages]
    told = [str(each.tool_call_results[0].value) for each in results]
    assert told[:2] == [search("alpha")] * 2
    assert "tool_call_budget" in told[2]
    assert (len(told), server.count()) == (3, 3)


def test_spans_that_are_put_on_later_raise_themselves():
    provider = TracerProvider(shutdown_on_exit=False)
    guard = LoopGuardSpanProcessor(mode="enforce")
    provider.add_span_processor(guard)
    integration.install(guard)
    with model_server(cap=20) as server, instrument(provider, content=True):
        with pytest.raises(RunAborted):
            run(server)
        assert server.count() == 5
    provider.shutdown()


def test_what_is_no_exception_ends_at_the_edge_of_the_run():
    with guarded(abort_exception="base") as server, pytest.raises(RunAborted) as stopped:
        run(server)
    assert isinstance(stopped.value.__cause__, RunInterrupted)
    assert server.count() == 5

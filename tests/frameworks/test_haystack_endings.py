"""How agents of Haystack end that its integration stops: in pipelines, untraced, over a call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.routers import ConditionalRouter
from haystack.dataclasses import ChatMessage
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, RunInterrupted
from otel_loopguard.integrations import haystack
from otel_loopguard.testing import ModelServer, model_server
from tests.frameworks._expected import ANSWER
from tests.frameworks._framework import Job
from tests.frameworks._stage import Stage
from tests.frameworks.test_haystack_integration import INTEGRATED, instrument, single

GO = [ChatMessage.from_user("go")]


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query}"


@contextmanager
def guarded(policy: Policy | None = None, **options: Any) -> Generator[tuple[Agent, ModelServer]]:
    """Have every stop in place, the veto too, and a runaway to be run."""
    guard = LoopGuardSpanProcessor(policy, mode="enforce", **options)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(guard)
    haystack.install(guard)
    try:
        with model_server(cap=20) as server, instrument(provider, content=True):
            agent = single(Job("endless", server.url, (search,)))
            yield agent, server
            agent.close()
    finally:
        provider.shutdown()


def untraced(_provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


@pytest.mark.parametrize("how", ["sync", "stream", "async", "async-stream"])
def test_without_any_span(how: str):
    with model_server(cap=20) as server:
        stage = Stage(INTEGRATED._replace(instrument=untraced), server)
        with stage.guarded() as scene:
            stopped, went_on = scene.talk(how, "endless", "finish3")
    assert (stopped.ended, stopped.error) == ("exit_reason='run_aborted'", None)
    assert stopped.counts == (5, 5)
    assert went_on.answer == ANSWER


def test_a_pipeline_routes_by_it():
    routes: list[Any] = [
        {
            "condition": f"{{{{ why {sign} '{haystack.RUN_ABORTED}' }}}}",
            "output": "{{ why }}",
            "output_name": name,
            "output_type": str,
        }
        for sign, name in (("==", "stopped"), ("!=", "answered"))
    ]
    with guarded() as (agent, server):
        pipeline = Pipeline()
        pipeline.add_component("agent", agent)
        pipeline.add_component("router", ConditionalRouter(routes))
        pipeline.connect("agent.exit_reason", "router.why")
        outcome = pipeline.run({"agent": {"messages": GO}})
    assert outcome["router"] == {"stopped": haystack.RUN_ABORTED}
    assert server.count() == 5


def test_a_refused_call_has_a_result_and_no_span_refuses_it_first():
    with guarded(Policy.none().with_limits(max_tool_calls=2)) as (agent, server):
        outcome = agent.run(GO)
    assert outcome["exit_reason"] == haystack.RUN_ABORTED
    told = [str(each.tool_call_results[0].result) for each in outcome["messages"][2::2]]
    assert told[:2] == [search("alpha")] * 2
    assert "tool_call_budget" in told[2]
    assert (len(told), server.count()) == (3, 3)


def test_what_is_no_exception_ends_at_the_edge_of_the_run():
    with guarded(abort_exception="base") as (agent, server), pytest.raises(RunAborted) as stopped:
        agent.run(GO)
    assert isinstance(stopped.value.__cause__, RunInterrupted)
    assert server.count() == 5

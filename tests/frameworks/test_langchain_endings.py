"""How runs of LangChain end that its integration stops, whatever surrounds and retries them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import pytest
from langchain.agents.middleware import (
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, RunInterrupted, guarded_run
from otel_loopguard.integrations import langchain
from otel_loopguard.integrations.langchain import LangChainRunAborted, LoopGuardMiddleware
from otel_loopguard.slots import CURRENT
from otel_loopguard.testing import ModelServer, model_server
from tests.frameworks._expected import ANSWER
from tests.frameworks._framework import Job
from tests.frameworks._openinference import openinference
from tests.frameworks._stage import Stage
from tests.frameworks.test_langchain import HTTP_CLIENT, answer
from tests.frameworks.test_langchain_integration import (
    CONFIG,
    INTEGRATED,
    Shared,
    agent,
    chat,
    said,
)


class Bench(NamedTuple):
    """A guard that LangChain asks, and a scripted server."""

    guard: LoopGuardSpanProcessor
    server: ModelServer
    shared: Shared
    calls: list[str]

    def model(self, script: str) -> Any:
        return chat(Job(script, self.server.url, ()), self.shared)

    def agent(self, script: str = "endless", tools: Any = None, **more: Any) -> Any:
        job = Job(script, self.server.url, ())
        return agent(job, tools or [self.search], self.shared, **more)

    def search(self, query: str) -> str:
        """Search for a text."""
        self.calls.append(query)
        return f"nothing found for {query}"

    def spent(self) -> tuple[int, int]:
        return self.server.count(), len(self.calls)


@contextmanager
def bench_of(
    policy: Policy | None = None, *, installed: bool = True, **options: Any
) -> Generator[Bench]:
    guard = LoopGuardSpanProcessor(policy, mode="enforce", **options)
    if installed:
        langchain.install(guard)
    try:
        with model_server(cap=20) as server, HTTP_CLIENT() as client:
            yield Bench(guard, server, Shared({"http_client": client}, InMemorySaver()), [])
    finally:
        guard.shutdown()


@pytest.fixture
def bench() -> Generator[Bench]:
    with bench_of() as made:
        yield made


def untraced(_provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


def by_openinference(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    return openinference(LangChainInstrumentor(), provider=provider, content=content)


def model_retry(_bench: Bench) -> Any:
    return ModelRetryMiddleware(max_retries=2)


def tool_retry(_bench: Bench) -> Any:
    return ToolRetryMiddleware(max_retries=2)


def model_fallback(bench: Bench) -> Any:
    return ModelFallbackMiddleware(bench.model("finish3"))


PLAIN = pytest.mark.parametrize("how", ["sync", "stream", "async", "async-stream"])
TRACING = pytest.mark.parametrize("tracing", [untraced, by_openinference])


@PLAIN
@TRACING
def test_whatever_traces_it(how: str, tracing: Any):
    """Where no span is current, or there is none at all, the graph's own run is known."""
    with model_server(cap=20) as server:
        stage = Stage(INTEGRATED._replace(instrument=tracing), server)
        with stage.guarded() as scene:
            stopped, went_on = scene.talk(how, "endless", "finish3")
    assert type(stopped.error) is LangChainRunAborted
    assert stopped.counts == (5, 5)
    assert (went_on.answer, went_on.error) == (ANSWER, None)


def test_streams_that_are_pulled_in_turn(bench: Bench):
    outside = CURRENT.get()  # what other tests have left there
    streams = {
        script: bench.agent(script).stream(said("go"), CONFIG, stream_mode="values")
        for script in ("endless", "finish3")
    }
    for stream in streams.values():
        for _ in range(3):
            next(stream)
    assert CURRENT.get() is outside, "their runs are not that of who pulls them"
    with pytest.raises(RunAborted):
        list(streams["endless"])
    assert answer([*streams["finish3"]][-1]) == ANSWER


class TestEnding:
    def test_the_checkpoint_is_that_of_the_step_before(self, bench: Bench):
        graph = bench.agent(checkpointer=bench.shared.memory)
        with pytest.raises(GraphDrained, match="repeated_result") as stopped:
            graph.invoke(said("go"), CONFIG)
        assert isinstance(stopped.value, RunAborted)
        assert stopped.value.reason == str(stopped.value)
        assert graph.get_state(CONFIG).next == ("model",)
        assert bench.agent("finish3", checkpointer=bench.shared.memory).invoke(None, CONFIG)

    def test_messages_go_on_without_a_checkpointer(self, bench: Bench):
        with pytest.raises(LangChainRunAborted) as stopped:
            bench.agent().invoke(said("go"))
        history = stopped.value.messages
        assert [each.type for each in history] == ["human", *["ai", "tool"] * 5]
        messages = [*history, {"role": "user", "content": "and now?"}]
        assert answer(bench.agent("finish3").invoke({"messages": messages})) == ANSWER

    @pytest.mark.parametrize("middleware", [model_retry, tool_retry, model_fallback])
    def test_nothing_is_tried_again(self, bench: Bench, middleware: Callable[[Bench], Any]):
        with pytest.raises(LangChainRunAborted):
            bench.agent(middleware=[middleware(bench)]).invoke(said("go"))
        assert bench.spent() == (5, 5)

    def test_an_agent_below_leaves_no_call_without_an_answer(self, bench: Bench):
        def delegate(query: str) -> str:
            """Have another agent look something up."""
            return answer(bench.agent(name="inner").invoke(said(query)))

        with pytest.raises(LangChainRunAborted) as stopped:
            bench.agent(tools=[delegate]).invoke(said("go"))
        _, call, result = stopped.value.messages
        assert isinstance(call, AIMessage)
        assert isinstance(result, ToolMessage)
        assert result.tool_call_id == call.tool_calls[0]["id"]
        assert (result.status, "repeated_result" in str(result.content)) == ("error", True)
        assert bench.spent() == (6, 5)

    def test_a_run_in_a_tool_is_stopped_alone(self, bench: Bench):
        def delegate(query: str) -> str:
            """Have another agent look something up."""
            with guarded_run():
                return answer(bench.agent(name="inner").invoke(said(query)))

        ended = bench.agent("finish3", tools=[delegate, bench.search]).invoke(said("go"))
        [told] = [each for each in ended["messages"] if getattr(each, "status", "") == "error"]
        assert (answer(ended), told.name) == (ANSWER, "delegate")
        assert bench.spent() == (3 + 5, 5 + 1)

    def test_what_is_no_exception_ends_at_the_edge_of_the_run(self):
        with bench_of(abort_exception="base") as bench, pytest.raises(RunAborted) as stopped:
            bench.agent().invoke(said("go"))
        assert isinstance(stopped.value.__cause__, RunInterrupted)
        assert bench.spent() == (5, 5)


@pytest.mark.parametrize("is_wrapped", [False, True], ids=["alone", "and-installed"])
class TestMiddleware:
    """The same by hand, in one agent, beside what is installed for all of them or without that."""

    def test_the_run_ends_as_if_it_were_installed(self, *, is_wrapped: bool):
        with bench_of(installed=is_wrapped) as bench, guarded_run():
            middleware = LoopGuardMiddleware(bench.guard)
            with pytest.raises(LangChainRunAborted) as stopped:
                bench.agent(middleware=[middleware]).invoke(said("go"))
        assert stopped.value.report.tool_calls == 5
        assert [each.type for each in stopped.value.messages] == ["human", *["ai", "tool"] * 5]
        assert bench.spent() == (5, 5)

    def test_a_refused_call_is_not_made(self, *, is_wrapped: bool):
        policy = Policy.none().with_limits(max_tool_calls=2)
        with bench_of(policy, installed=is_wrapped) as bench, guarded_run():
            middleware = LoopGuardMiddleware(bench.guard)
            with pytest.raises(LangChainRunAborted) as stopped:
                asyncio.run(bench.agent(middleware=[middleware]).ainvoke(said("go")))
        assert (stopped.value.report.rule, stopped.value.report.tool_calls) == (
            "tool_call_budget",
            2,
        )
        [*_, last] = stopped.value.messages
        assert isinstance(last, ToolMessage)
        assert last.status == "error"
        assert bench.spent() == (3, 2)

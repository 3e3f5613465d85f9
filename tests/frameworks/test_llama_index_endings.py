"""How runs of LlamaIndex end that its integration stops: what is kept, what the caller hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any

import pytest
from llama_index.core.agent.workflow import ToolCallResult
from llama_index.core.workflow import WorkflowRuntimeError
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted
from otel_loopguard.integrations import llama_index
from otel_loopguard.integrations.llama_index import LlamaIndexRunAborted
from otel_loopguard.testing import ModelServer, model_server
from tests.frameworks._expected import ANSWER
from tests.frameworks._framework import Job
from tests.frameworks._stage import Stage
from tests.frameworks.test_llama_index import pytestmark
from tests.frameworks.test_llama_index_integration import INTEGRATED, Shared, shared, single


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query}"


@contextmanager
def guarded(policy: Policy | None = None, **options: Any) -> Generator[ModelServer]:
    guard = LoopGuardSpanProcessor(policy, mode="enforce", **options)
    llama_index.install(guard)
    try:
        with model_server(cap=20) as server:
            yield server
    finally:
        guard.shutdown()


@asynccontextmanager
async def begun(server: ModelServer) -> AsyncGenerator[tuple[Any, Shared]]:
    """Begin a runaway; what it is asked for is over before the block is."""
    parts = shared(streaming=False)
    async with parts.client:
        agent = single(Job("endless", server.url, (search,)), parts)
        yield agent.run(user_msg="go", memory=parts.memory), parts


def untraced(_provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


@pytest.mark.parametrize("how", ["sync", "async", "stream"])
def test_without_any_span(how: str):
    """The run is the agent's, from its beginning until its handler is done."""
    with model_server(cap=20) as server:
        stage = Stage(INTEGRATED._replace(instrument=untraced), server)
        with stage.guarded() as scene:
            stopped, went_on = scene.talk(how, "endless", "finish3")
            healthy = scene.talk(how, "finish3")
            ended = {labels["loopguard.tripped"]: n for labels, n in scene.points("loopguard.runs")}
    assert (type(stopped.error), stopped.counts) == (LlamaIndexRunAborted, (5, 5))
    assert went_on.answer == healthy[0].answer == ANSWER
    assert ended == {True: 1, False: 2}


def test_what_is_kept_is_the_whole_run():
    async def main() -> None:
        with guarded() as server:
            async with begun(server) as (run, parts):
                with pytest.raises(WorkflowRuntimeError, match="repeated_result") as stopped:
                    await run
                assert isinstance(stopped.value, RunAborted)
                kept = [str(each.role.value) for each in parts.memory.get_all()]
        assert kept == ["user", *["assistant", "tool"] * 5]

    asyncio.run(main())


def test_a_refused_call_is_told_of_like_a_failed_one():
    async def main() -> None:
        with guarded(Policy.none().with_limits(max_tool_calls=2)) as server:
            async with begun(server) as (run, _):
                results = [
                    each async for each in run.stream_events() if isinstance(each, ToolCallResult)
                ]
                with pytest.raises(LlamaIndexRunAborted):
                    await run
        outputs = [each.tool_output for each in results]
        assert [each.is_error for each in outputs] == [False, False, True]
        assert "tool_call_budget" in outputs[-1].content
        assert server.count() == 3

    asyncio.run(main())


def test_what_is_no_exception_keeps_nobody_waiting():
    async def main() -> None:
        with guarded(abort_exception="base") as server:
            async with begun(server) as (run, _):
                with pytest.raises(LlamaIndexRunAborted):
                    await asyncio.wait_for(run, timeout=20)

    asyncio.run(main())


__all__ = ["pytestmark"]

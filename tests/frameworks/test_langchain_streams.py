"""LangChain's streams, two of which one task pulls in turn: only the runaway is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from otel_loopguard import RunAborted
from tests.frameworks._expected import ANSWER, HEALTHY, REPEATED, ended_runs
from tests.frameworks._framework import Job
from tests.frameworks._workbench import Scene, Workbench
from tests.frameworks.test_langchain import (
    ASYNC_HTTP_CLIENT,
    CONFIG,
    FRAMEWORK,
    HTTP_CLIENT,
    agent,
    answer,
    asked,
)

BEGUN = 3
"""Parts after which each of them is in the middle of its work."""

ORDERS = pytest.mark.parametrize(
    "scripts",
    [("endless", "finish3"), ("finish3", "endless")],
    ids=["runaway-first", "healthy-first"],
)

__all__ = ["FRAMEWORK"]


def states(job: Job) -> Generator[Any]:
    with HTTP_CLIENT() as client:
        yield from agent(job, http_client=client).stream(asked(job), CONFIG, stream_mode="values")


async def awaited_states(job: Job) -> AsyncGenerator[Any]:
    async with ASYNC_HTTP_CLIENT() as client:
        graph = agent(job, http_async_client=client)
        async for state in graph.astream(asked(job), CONFIG, stream_mode="values"):
            yield state


def jobs(scene: Scene, scripts: tuple[str, ...]) -> list[Job]:
    return [Job(script, scene.server.url, scene.tools(script)) for script in scripts]


def rest_of(stream: Iterator[Any]) -> str:
    *_, last = stream
    return answer(last)


async def awaited_rest_of(stream: AsyncIterator[Any]) -> str:
    *_, last = [state async for state in stream]
    return answer(last)


def check(scene: Scene) -> None:
    assert scene.counts("endless") == REPEATED
    assert scene.counts("finish3") == HEALTHY
    assert ended_runs(scene) == {("aborted", True): 1, ("complete", False): 1}


@ORDERS
def test_pulled_in_turn(bench: Workbench, scripts: tuple[str, ...]) -> None:
    with bench.guarded() as scene:
        streams = {job.script: states(job) for job in jobs(scene, scripts)}
        for stream in streams.values():
            for _ in range(BEGUN):
                next(stream)
        with pytest.raises(RunAborted):
            rest_of(streams["endless"])
        assert rest_of(streams["finish3"]) == ANSWER
    check(scene)


@ORDERS
def test_awaited_in_turn(bench: Workbench, scripts: tuple[str, ...]) -> None:
    async def main() -> None:
        streams = {job.script: awaited_states(job) for job in jobs(scene, scripts)}
        for stream in streams.values():
            for _ in range(BEGUN):
                await anext(stream)
        with pytest.raises(RunAborted):
            await awaited_rest_of(streams["endless"])
        assert await awaited_rest_of(streams["finish3"]) == ANSWER

    with bench.guarded() as scene:
        asyncio.run(main())
    check(scene)

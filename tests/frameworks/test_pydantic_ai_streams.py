"""Two runs of Pydantic AI that one task pulls in turn: its spans hang the second in the first.

The healthy one is the outer one here: the other way round the framework itself fails, for it leaves
its cancel scopes in another order than it has entered them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import pytest
from openai import AsyncOpenAI

from otel_loopguard import RunAborted, guarded_run
from tests.frameworks._expected import ANSWER, HEALTHY, REPEATED
from tests.frameworks._framework import Job
from tests.frameworks._workbench import Scene, Workbench
from tests.frameworks.test_pydantic_ai import FRAMEWORK, LIMITS, agent

Answers = Callable[[Job], AsyncGenerator[str]]

BEGUN = 3
"""Nodes after which each of them is in the middle of its work."""

__all__ = ["FRAMEWORK"]


async def answers(job: Job) -> AsyncGenerator[str]:
    async with (
        AsyncOpenAI(base_url=job.url, api_key="none") as client,
        agent(job, client).iter(job.prompt, usage_limits=LIMITS) as run,
    ):
        async for _ in run:
            yield "" if run.result is None else run.result.output


async def last_of(stream: AsyncIterator[str]) -> str:
    return [each async for each in stream][-1]


async def in_turn(scene: Scene, begin: Answers) -> str:
    """Begin a healthy run, then a runaway; return what the first says once that is stopped."""
    healthy, runaway = (
        begin(Job(script, scene.server.url, scene.tools(script)))
        for script in ("finish3", "endless")
    )
    for stream in (healthy, runaway):
        for _ in range(BEGUN):
            await anext(stream)
    with pytest.raises(RunAborted):
        await last_of(runaway)
    return await last_of(healthy)


def test_one_inside_the_other_is_one_run(bench: Workbench) -> None:
    with bench.guarded() as scene, pytest.raises(RunAborted):
        asyncio.run(in_turn(scene, answers))
    assert scene.counts("endless") == REPEATED


def test_each_in_a_block_of_its_own(bench: Workbench) -> None:
    with bench.guarded() as scene:
        assert asyncio.run(in_turn(scene, guarded_run()(answers))) == ANSWER
    assert scene.counts("endless") == REPEATED
    assert scene.counts("finish3") == HEALTHY

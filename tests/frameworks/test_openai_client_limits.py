"""Five model calls are five requests, whichever instrumentation of the `openai` client says so."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context

import pytest
from openai import AsyncOpenAI, OpenAI
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.options.kinds import BuiltIn
from tests.frameworks._expected import ended_runs, violations
from tests.frameworks._openai_loop import INSTRUMENTATIONS, OPENAI_LOOP, schema
from tests.frameworks._surroundings import around_of
from tests.frameworks._workbench import Counts, Scene, Workbench

FRAMEWORK = OPENAI_LOOP
FIVE = Policy.none().with_limits(max_llm_calls=5)
AT_ONCE = 12
"""Requests that are started together."""

# Traceloop's instrumentation is written in the style of an older Pydantic.
pytestmark = pytest.mark.filterwarnings("ignore:Support for class-based `config`")

EACH = pytest.mark.parametrize("name", INSTRUMENTATIONS)
EACH_ORDER = pytest.mark.parametrize("order", ["spans-first", "guard-first"])
"""Whether the client was instrumented when the guard was made."""


def no_spans(provider: TracerProvider, *, content: bool) -> AbstractContextManager[object]:
    """Leave the client as it is, for a guard that is there before its instrumentation."""
    return nullcontext((provider, content))


@contextmanager
def guarded(
    bench: Workbench, name: str, order: str, *, abort: Sequence[BuiltIn] | None = None
) -> Generator[Scene]:
    """Guard the client with this instrumentation of it."""
    instrument = INSTRUMENTATIONS[name]
    first, later = (instrument, no_spans) if order == "spans-first" else (no_spans, instrument)
    instrumented = Workbench(bench.framework._replace(instrument=first), bench.server)
    with (
        instrumented.guarded(FIVE, abort=abort) as scene,
        later(scene.provider, content=True),
    ):
        yield scene


@EACH
@EACH_ORDER
def test_one_after_another(bench: Workbench, mode: str, name: str, order: str):
    with guarded(bench, name, order) as scene:
        outcome = scene.play(mode, around=around_of("own-span", scene.provider, "handle order"))
    assert type(outcome.error) is RunAborted
    report = outcome.error.report
    assert (report.rule, report.status, report.model_calls) == ("llm_call_budget", "aborted", 5)
    assert outcome.counts == Counts(requests=5, executions=5)
    assert [each["loopguard.rule"] for each in violations(scene)] == ["llm_call_budget"]
    assert ended_runs(scene) == {("aborted", True): 1}


@EACH
@EACH_ORDER
def test_at_once_in_threads(bench: Workbench, name: str, order: str):
    def turn() -> object:
        try:
            return client.chat.completions.create(
                model="endless",
                messages=[{"role": "user", "content": "go"}],
                tools=[schema(tool) for tool in scene.tools("endless")],
            )
        except RunAborted as aborted:
            return aborted

    block = guarded_run()
    with (
        guarded(bench, name, order) as scene,
        OpenAI(base_url=bench.server.url, api_key="none") as client,
        block,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        turns = [pool.submit(copy_context().run, turn) for _ in range(AT_ONCE)]
    only_five_left(scene, [each.result() for each in turns])
    assert block.report is not None
    assert (block.report.rule, block.report.model_calls) == ("llm_call_budget", 5)


@EACH
@EACH_ORDER
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_at_once_in_one_event_loop(bench: Workbench, name: str, order: str, *, stream: bool):
    async def all_at_once() -> list[object]:
        async with AsyncOpenAI(base_url=scene.server.url, api_key="none") as client:
            turns = [ask(client, scene, stream=stream) for _ in range(AT_ONCE)]
            return await asyncio.gather(*turns, return_exceptions=True)

    # With the gate alone: the last resort would cancel a task in which a request is on its way.
    with guarded(bench, name, order, abort=("gate",)) as scene, scene.span("handle order"):
        results = asyncio.run(all_at_once())
    only_five_left(scene, results)


@EACH
def test_at_once_in_one_event_loop_with_every_stop(bench: Workbench, name: str):
    async def all_at_once() -> None:
        async with AsyncOpenAI(base_url=scene.server.url, api_key="none") as client, guarded_run():
            await asyncio.gather(*(ask(client, scene, stream=False) for _ in range(AT_ONCE)))

    with guarded(bench, name, "spans-first") as scene, pytest.raises(RunAborted) as raised:
        asyncio.run(all_at_once())
    assert raised.value.report.rule == "llm_call_budget"
    assert scene.counts().requests <= 5  # those that were on their way are cancelled


async def ask(client: AsyncOpenAI, scene: Scene, *, stream: bool) -> object:
    """Ask for one turn, and read it to its end."""
    tools = [schema(tool) for tool in scene.tools("endless")]
    if not stream:
        return await client.chat.completions.create(
            model="endless", messages=[{"role": "user", "content": "go"}], tools=tools
        )
    chunks = await client.chat.completions.create(
        model="endless", messages=[{"role": "user", "content": "go"}], tools=tools, stream=True
    )
    return [chunk async for chunk in chunks]


def only_five_left(scene: Scene, results: Sequence[object]) -> None:
    """See that five requests have left, that each other one was refused, and that it is noted."""
    refused = [each for each in results if isinstance(each, BaseException)]
    assert [type(each) for each in refused] == [RunAborted] * (AT_ONCE - 5)
    assert len(results) == AT_ONCE
    assert scene.counts() == Counts(requests=5, executions=0)
    assert [each["loopguard.rule"] for each in violations(scene)] == ["llm_call_budget"]
    assert ended_runs(scene) == {("aborted", True): 1}


__all__ = ["FRAMEWORK"]

"""Many agents at once, in threads, tasks and pools: exact counts, no cross-talk, exact trips."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, TracerProvider

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.decisions import RunReport
from otel_loopguard.runs import Run
from tests._tracing import Traced

THREADS, AGENTS, LIMIT = 8, 25, 6


def reports(process: Traced) -> list[tuple[str, RunReport]]:
    """Return what became of each run that a span ended, from now on."""
    told: list[tuple[str, RunReport]] = []
    (guard,) = process.guards
    written: Any = guard
    tell = written._telemetry.run_ended

    def run_ended(agent: str, report: RunReport, *more: object) -> None:
        told.append((agent, report))
        tell(agent, report, *more)

    written._telemetry.run_ended = run_ended
    return told


def limit(calls: int = LIMIT) -> Policy:
    return Policy.none().with_limits(max_tool_calls=calls)


def use_tools(process: Traced, calls: int) -> None:
    for number in range(calls):
        with process.tool(arguments={"n": number}):
            pass


# ---------------------------------------------------------------------------- threads and tasks


def test_runs_of_many_threads_do_not_touch_each_other(process: Traced) -> None:
    process.guard(limit())
    told = reports(process)
    together = threading.Barrier(THREADS)

    def work(thread: int) -> None:
        together.wait()
        for number in range(AGENTS):
            with process.agent(f"{thread}.{number}"):
                use_tools(process, calls_of(thread, number))

    with ThreadPoolExecutor(THREADS) as pool:
        for job in [pool.submit(work, thread) for thread in range(THREADS)]:
            job.result()

    assert process.counts("loopguard.errors") == []
    assert {agent: report.tool_calls for agent, report in told} == {
        f"{thread}.{number}": calls_of(thread, number)
        for thread in range(THREADS)
        for number in range(AGENTS)
    }
    assert len(told) == THREADS * AGENTS
    for _, report in told:
        if report.tool_calls <= LIMIT:
            assert report.violations == ()
        else:
            assert [(v.rule, v.count, v.step) for v in report.violations] == [
                ("tool_call_budget", LIMIT + 1, LIMIT + 1)
            ]


def calls_of(thread: int, number: int) -> int:
    return (thread * AGENTS + number) % (2 * LIMIT) + 1


def test_agents_that_are_gathered_are_runs_of_their_own(process: Traced) -> None:
    process.guard(limit())
    told = reports(process)

    async def agent(number: int) -> None:
        with process.agent(f"{number}"):
            for call in range(number % (2 * LIMIT)):
                with process.tool(arguments={"n": call}):
                    await asyncio.sleep(0)

    async def gather() -> None:
        with process.tracer.start_as_current_span("GET /"):
            await asyncio.gather(*(agent(number) for number in range(60)))

    asyncio.run(gather())

    assert {agent: report.tool_calls for agent, report in told} == {
        f"{number}": number % (2 * LIMIT) for number in range(60)
    }
    assert all((report.trip is None) is (report.tool_calls <= LIMIT) for _, report in told)


async def in_tasks(process: Traced, calls: int) -> None:
    async def call(number: int) -> None:
        with process.tool(arguments={"n": number}):
            await asyncio.sleep(0)

    await asyncio.gather(*(asyncio.create_task(call(number)) for number in range(calls)))


async def in_threads(process: Traced, calls: int) -> None:
    await asyncio.gather(*(asyncio.to_thread(use_tools, process, 1) for _ in range(calls)))


async def in_copied_contexts(process: Traced, calls: int) -> None:
    with ThreadPoolExecutor(3) as pool:
        for _ in range(calls):
            pool.submit(contextvars.copy_context().run, use_tools, process, 1)


@pytest.mark.parametrize("way", [in_tasks, in_threads, in_copied_contexts])
def test_tools_may_run_elsewhere_if_they_take_the_context_along(
    process: Traced, way: Callable[[Traced, int], Any]
) -> None:
    process.guard(limit())
    told = reports(process)

    async def agent(number: int) -> None:
        with process.agent(f"{number}"):
            await way(process, LIMIT + number)

    async def gather() -> None:
        await asyncio.gather(*(agent(number) for number in range(4)))

    asyncio.run(gather())

    assert {agent: report.tool_calls for agent, report in told} == {
        f"{number}": LIMIT + number for number in range(4)
    }
    assert process.total("loopguard.violations") == 3


@pytest.mark.parametrize("threads", [1, 3])
def test_a_pool_without_the_context_leaves_tools_to_nobody_s_run(
    process: Traced, threads: int
) -> None:
    """What is weaker: such a tool has neither a parent nor a context, so it is a run of its own."""
    process.guard(limit(1))
    told = reports(process)

    with process.agent("caller"), ThreadPoolExecutor(threads) as pool:
        for _ in range(9):
            pool.submit(use_tools, process, 1)

    assert [(agent, report.tool_calls) for agent, report in told] == [("", 1)] * 9 + [("caller", 0)]
    assert process.total("loopguard.violations") == 0


def test_a_pool_without_the_context_is_no_way_out_of_a_conversation(process: Traced) -> None:
    process.guard(limit(4))
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "c"}

    def call() -> None:
        with process.tracer.start_as_current_span("execute_tool t", attributes=named):
            pass

    with process.agent("caller"), ThreadPoolExecutor(3) as pool:
        for _ in range(9):
            pool.submit(call)

    assert process.total("loopguard.violations", rule="tool_call_budget") == 1


# ------------------------------------------------------------------- callbacks in threads of a pool


@pytest.fixture
def pooled(process: Traced) -> Traced:
    """Return a process whose processors are called in threads that know no context."""
    concurrent = ConcurrentMultiSpanProcessor(2)
    process.provider = TracerProvider(active_span_processor=concurrent, shutdown_on_exit=False)
    process.tracer = process.provider.get_tracer("agents")
    process.export()
    return process


def test_callbacks_in_a_pool_find_runs_by_their_spans(pooled: Traced) -> None:
    pooled.guard(limit())
    told = reports(pooled)

    def work(thread: int) -> None:
        for number in range(5):
            with pooled.agent(f"{thread}.{number}"):
                use_tools(pooled, calls_of(thread, number))

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(work, thread) for thread in range(4)]:
            job.result()

    assert {agent: report.tool_calls for agent, report in told} == {
        f"{thread}.{number}": calls_of(thread, number) for thread in range(4) for number in range(5)
    }
    assert all((report.trip is None) is (report.tool_calls <= LIMIT) for _, report in told)


def test_callbacks_in_a_pool_do_not_mix_what_its_threads_have_seen(pooled: Traced) -> None:
    """The contexts of the pool's threads are nobody's: a span without a parent is in no run."""
    pooled.guard(limit())
    told = reports(pooled)

    with pooled.agent("a"):
        use_tools(pooled, 2)
        elsewhere = threading.Thread(target=use_tools, args=(pooled, 5))
        elsewhere.start()
        elsewhere.join()
        use_tools(pooled, 2)

    assert [(agent, report.tool_calls) for agent, report in told] == [("", 1)] * 5 + [("a", 4)]


def test_callbacks_in_a_pool_see_no_guarded_run(pooled: Traced) -> None:
    """What is weaker: a block is known by its context, so that agents in it are runs by themselves.

    Requests are made in the block's own thread: there the gate knows it.
    """
    guard = pooled.guard(Policy.none().with_limits(max_llm_calls=2), mode="enforce")
    told = reports(pooled)

    with pytest.raises(RunAborted), guarded_run() as run:
        for _ in range(2):
            with pooled.agent():
                use_tools(pooled, 2)
        for _ in range(3):
            allowed = guard.admit()
            assert allowed is not None
            allowed.over(failed=False)

    assert run.report is not None
    assert (run.report.model_calls, run.report.tool_calls) == (2, 0)
    assert [report.tool_calls for _, report in told] == [2, 2, 0]


def test_one_span_that_is_told_of_out_of_its_context_does_not_settle_it(process: Traced) -> None:
    """A processor of the user's may pass spans on without the context that they were given."""
    guard = process.guard(limit())
    other = TracerProvider(shutdown_on_exit=False).get_tracer("other")
    with process.agent() as agent:
        alone = contextvars.Context().run(other.start_span, "nobody's")
        passed_on: Any = other.start_span("span")
        contextvars.Context().run(guard.on_start, passed_on)
        use_tools(process, 1)
        contextvars.Context().run(guard.on_start, passed_on)
        found: Run | None = guard._tracker.runs.in_context()  # pyright: ignore[reportPrivateUsage]

    assert found is not None, "it is known again that contexts are the spans' own"
    assert alone.is_recording()
    assert agent is not None


# ------------------------------------------------------------------------------- nothing suppressed


def test_suppressed_instrumentation_does_not_suppress_the_guard(process: Traced) -> None:
    process.guard(limit())
    with process.agent(), suppress_instrumentation():
        use_tools(process, LIMIT + 1)

    assert process.total("loopguard.violations") == 1

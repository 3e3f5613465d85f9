"""`RunInterrupted`: what code that goes on after any `Exception` makes of it, and what not."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from multiprocessing import TimeoutError as ProcessTimeout
from multiprocessing import get_context
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI, OpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from otel_loopguard import (
    LoopGuard,
    LoopGuardSpanProcessor,
    Policy,
    RunAborted,
    RunInterrupted,
    abort_of,
    guarded_run,
)
from otel_loopguard.options.kinds import AbortException
from otel_loopguard.testing import ModelServer, model_server
from otel_loopguard.testing._loopback import serving
from tests._tracing import Traced

TWO_CALLS = Policy.none().with_limits(max_llm_calls=2)
TURNS = 8
"""How often a loop tries before it would give up by itself."""


@pytest.fixture(scope="module")
def server() -> Generator[ModelServer]:
    with model_server() as served:
        yield served


class Loop:
    """A loop around a client, that goes on after any `Exception`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tried = 0

    def run(self) -> None:
        with OpenAI(base_url=self.url, api_key="none", max_retries=0) as client:
            for _ in range(TURNS):
                self.tried += 1
                try:
                    client.chat.completions.create(
                        model="endless", messages=[{"role": "user", "content": "go"}]
                    )
                except Exception:  # noqa: BLE001, S112 -- as they do
                    continue

    async def arun(self) -> None:
        async with AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0) as client:
            for _ in range(TURNS):
                self.tried += 1
                try:
                    await client.chat.completions.create(
                        model="endless", messages=[{"role": "user", "content": "go"}]
                    )
                except Exception:  # noqa: BLE001, S112 -- as they do
                    continue


def interrupting(process: Traced, **options: Any) -> LoopGuardSpanProcessor:
    return process.guard(TWO_CALLS, mode="enforce", abort_exception="base", **options)


@contextmanager
def counting(server: ModelServer) -> Generator[Callable[[], int]]:
    before = server.count()
    yield lambda: server.count() - before


# ------------------------------------------------------------------------------ the raw loop


def test_the_ordinary_form_lets_such_a_loop_try_on_and_no_request_leaves(
    process: Traced, server: ModelServer
) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    loop = Loop(server.url)
    with counting(server) as requests, guarded_run() as run:
        loop.run()

    assert (loop.tried, requests()) == (TURNS, 2)
    assert run.report is not None
    assert (run.report.status, run.report.model_calls) == ("aborted", 2)


@pytest.mark.parametrize("in_block", [True, False])
def test_the_base_form_ends_it_at_once(
    process: Traced, server: ModelServer, *, in_block: bool
) -> None:
    interrupting(process)
    loop = Loop(server.url)
    expected = RunAborted if in_block else RunInterrupted
    block = guarded_run() if in_block else process.agent()
    with counting(server) as requests, pytest.raises(expected) as raised, block:
        loop.run()

    assert (loop.tried, requests()) == (3, 2)
    found = abort_of(raised.value)
    assert found is not None
    assert (found.report.rule, found.report.model_calls) == ("llm_call_budget", 2)


def test_so_in_a_task(process: Traced, server: ModelServer) -> None:
    interrupting(process)
    loop = Loop(server.url)

    async def main() -> None:
        async with guarded_run():
            await asyncio.create_task(loop.arun())

    with counting(server) as requests, pytest.raises(RunAborted):
        asyncio.run(main())
    assert (loop.tried, requests()) == (3, 2)


def test_the_variable_says_it_too(
    process: Traced, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_ABORT_EXCEPTION", "base")
    process.guard(TWO_CALLS, mode="enforce")
    loop = Loop(server.url)
    with pytest.raises(RunAborted), guarded_run():
        loop.run()
    assert loop.tried == 3


def test_the_veto_raises_it_as_well(process: Traced) -> None:
    process.tracer = process.provider.get_tracer("pydantic-ai")
    process.guard(
        Policy.none().with_limits(max_tool_calls=1), abort=("veto",), abort_exception="base"
    )
    made = 0
    with pytest.raises(RunInterrupted), process.agent():
        for _ in range(TURNS):
            try:
                with process.tool():
                    made += 1
            except Exception:  # noqa: BLE001, S112 -- as they do
                continue
    assert made == 1


# ------------------------------------------------------------------------------ blocks in blocks


@pytest.mark.parametrize("form", ["ordinary", "base"])
def test_a_loop_between_two_blocks_does_not_go_on_when_the_outer_one_is_stopped(
    process: Traced, form: AbortException
) -> None:
    guard = process.guard(TWO_CALLS, mode="enforce", abort_exception=form)
    tried = 0
    with guarded_run("outer") as outer:
        try:
            for _ in range(TURNS):
                tried += 1
                try:
                    with guarded_run("inner"):
                        guard.admit()
                except Exception:  # noqa: BLE001, S112 -- as they do
                    continue
        except RunInterrupted:
            assert form == "base"
    assert tried == (TURNS if form == "ordinary" else 3)
    assert outer.report is not None
    assert outer.report.status == "aborted"


def test_the_outer_block_makes_an_ordinary_exception_of_what_an_inner_one_lets_out(
    process: Traced,
) -> None:
    guard = interrupting(process)
    with pytest.raises(RunAborted) as raised, guarded_run("outer"):
        for _ in range(TURNS):
            with guarded_run("inner"):
                guard.admit()
    assert raised.value.run_id == "outer"
    assert raised.value.report.rule == "llm_call_budget"


def test_what_stops_an_inner_block_ends_with_it(process: Traced) -> None:
    guard = process.guard(Policy.none(), mode="enforce", abort_exception="base")
    with guarded_run("outer") as outer:
        with pytest.raises(RunAborted) as raised, guarded_run("inner", max_llm_calls=1):
            for _ in range(TURNS):
                guard.admit()
        assert raised.value.run_id == "inner"
    assert outer.report is not None
    assert outer.report.status != "aborted"


# ------------------------------------------------------------------------------ as documented


def stop(guard: LoopGuardSpanProcessor) -> None:
    for _ in range(TURNS):
        guard.admit()


def test_gathered_results_may_hold_it(process: Traced) -> None:
    """As they hold an ordinary exception: whoever asks for that is told of nothing."""
    guard = interrupting(process)

    async def one() -> None:
        stop(guard)

    async def main() -> list[Any]:
        return list(await asyncio.gather(one(), return_exceptions=True))

    with process.agent():
        [result] = asyncio.run(main())
    assert type(result) is RunInterrupted


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no task groups before 3.11")
def test_a_task_group_makes_a_group_that_is_no_exception_either(process: Traced) -> None:
    guard = interrupting(process)

    async def one() -> None:
        stop(guard)

    async def main() -> None:
        groups: Any = asyncio
        async with groups.TaskGroup() as group:
            group.create_task(one())

    with pytest.raises(BaseException, match="TaskGroup") as raised, process.agent():
        asyncio.run(main())
    assert not isinstance(raised.value, Exception)
    assert abort_of(raised.value) is not None

    with pytest.raises(RunAborted), guarded_run():
        asyncio.run(main())


def test_a_thread_pool_hands_it_on(process: Traced) -> None:
    guard = interrupting(process)
    with ThreadPoolExecutor(1) as pool, process.agent():
        with pytest.raises(RunInterrupted):
            pool.submit(copy_context().run, stop, guard).result()
        assert pool.submit(int, "1").result() == 1, "its thread works on"


def interrupted() -> None:
    """Do what a job does whose run is stopped."""
    raise RunInterrupted(LoopGuard().report(), "order-4711")


def working() -> bool:
    """Do what any other job does."""
    return True


def test_an_executor_of_processes_hands_it_on() -> None:
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with pool, pytest.raises(RunInterrupted) as raised:
        pool.submit(interrupted).result()
    assert raised.value.aborted.run_id == "order-4711"


def test_a_job_of_a_pool_of_processes_never_comes_back() -> None:
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(working), "its process is there, and has imported what it needs"
        with pytest.raises(ProcessTimeout):
            pool.apply_async(interrupted).get(timeout=1)


@pytest.mark.parametrize("is_ordinary", [True, False])
def test_handlers_for_exceptions_of_a_web_server_are_not_called(*, is_ordinary: bool) -> None:
    called: list[str] = []

    def endpoint(_: Request) -> Response:
        try:
            interrupted()
        except RunInterrupted as error:
            if is_ordinary:
                raise error.aborted from None
            raise
        raise AssertionError

    def handler(_: Request, error: Exception) -> Response:
        called.append(type(error).__name__)
        return PlainTextResponse("handled", 500)

    application = Starlette(routes=[Route("/", endpoint)], exception_handlers={Exception: handler})
    with serving(application, name="test-server") as root:
        answer = httpx.get(root)
    assert answer.status_code == 500
    assert called == (["RunAborted"] if is_ordinary else [])


def test_a_thread_of_its_own_dies_of_it_as_of_any_exception(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = interrupting(process)
    died: list[object] = []

    def excepthook(args: threading.ExceptHookArgs) -> None:
        died.append(args.exc_type)

    monkeypatch.setattr(threading, "excepthook", excepthook)
    with process.agent():
        thread = threading.Thread(target=copy_context().run, args=(stop, guard))
        thread.start()
        thread.join()
    assert died == [RunInterrupted]


@pytest.mark.parametrize(("form", "status"), [("ordinary", "ERROR"), ("base", "UNSET")])
def test_spans_that_it_passes_do_not_say_that_they_failed(
    process: Traced, form: AbortException, status: str
) -> None:
    guard = process.guard(TWO_CALLS, mode="enforce", abort_exception=form)
    with pytest.raises((RunAborted, RunInterrupted)), process.agent():
        stop(guard)
    [agent] = process.spans
    assert agent.status.status_code.name == status
    assert (agent.attributes or {})["loopguard.run.status"] == "aborted"

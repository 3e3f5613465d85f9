"""`guarded_run`: one block, one run, and its stop comes out as `RunAborted`."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from opentelemetry import trace

from otel_loopguard import Policy, RunAborted, abort_of, guarded_run
from otel_loopguard.slots import CURRENT
from tests._tracing import Traced

TWO_CALLS = Policy.none().with_limits(max_llm_calls=2)


def offer(process: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the traced process the one whose tracer `guarded_run` gets."""

    def tracer(*_name_and_version: str) -> trace.Tracer:
        return process.tracer

    monkeypatch.setattr(trace, "get_tracer", tracer)


def test_a_run_that_comes_through_is_reported(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    with guarded_run("order-4711") as run:
        assert run.report is None
        with process.agent():
            process.turn()
            with process.chat(asks=False):
                process.request_model()

    assert run.report is not None
    assert (run.report.status, run.report.model_calls, run.report.tool_calls) == ("complete", 2, 1)
    assert run.report.rule is None
    scout = {"gen_ai.agent.name": "scout"}
    assert process.counts("loopguard.run.active") == [
        ({"loopguard.tripped": tripped, **scout}, 0) for tripped in (False, True)
    ]


def test_a_block_without_a_step_has_no_report(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    with guarded_run() as run, process.tracer.start_as_current_span("nobody's step"):
        pass

    assert run.report is None
    assert len(run.run_id) == 32
    assert process.counts("loopguard.runs") == []


def test_a_stopped_run_raises(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    with pytest.raises(RunAborted) as raised, guarded_run("r") as run:
        process.loop_for_ever()

    assert raised.value.report.rule == "llm_call_budget"
    assert run.report is not None
    assert run.report.status == "aborted"
    assert (run.report.model_calls, run.report.tool_calls) == (2, 2)


def wrapped(cause: RunAborted) -> BaseException:
    error = RuntimeError("model request failed")
    error.__cause__ = cause
    return error


def as_text(cause: RunAborted) -> BaseException:
    return RuntimeError(f"agent failed: {cause}")


class Group(BaseException):
    """A group as it is before Python 3.11: from a package, known by its members only."""

    def __init__(self, *members: BaseException) -> None:
        self.exceptions = members


def grouped(cause: RunAborted) -> BaseException:
    if sys.version_info >= (3, 11):
        return BaseExceptionGroup("tasks", [cause, asyncio.CancelledError()])  # noqa: F821 -- not on 3.10
    return Group(cause, asyncio.CancelledError())


@pytest.mark.parametrize("disguise", [wrapped, as_text, grouped])
def test_however_a_framework_wraps_the_stop_it_comes_out(
    process: Traced, disguise: Callable[[RunAborted], BaseException]
) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    def framework() -> None:
        try:
            process.loop_for_ever()
        except RunAborted as error:
            raise disguise(error) from None

    with pytest.raises(RunAborted) as raised, guarded_run() as run:
        framework()

    assert raised.value.report == run.report
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("sign", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_person_who_interrupts_a_stopped_run_is_heard(
    process: Traced, sign: type[BaseException]
) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    def interrupted() -> None:
        try:
            process.loop_for_ever()
        except RunAborted:
            raise sign from None

    with pytest.raises(sign), guarded_run():
        interrupted()


def test_an_error_of_a_run_that_was_not_stopped_passes_through(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    error = ValueError("of the application")

    def application() -> None:
        with process.agent():
            process.turn()
        raise error

    with pytest.raises(ValueError, match="of the application") as raised, guarded_run() as run:
        application()

    assert raised.value is error
    assert run.report is not None
    assert abort_of(raised.value) is None


def test_an_error_of_a_run_that_only_tripped_passes_through(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="observe")

    def application() -> None:
        with process.agent():
            process.work(4)
        raise ValueError("later")

    with pytest.raises(ValueError, match="later"), guarded_run() as run:
        application()

    assert run.report is not None
    assert run.report.rule == "llm_call_budget"
    assert run.report.status == "running", "nothing stopped it"


def test_a_block_can_be_entered_again(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    run = guarded_run("again")

    for _ in range(3):
        with run, process.agent():
            process.turn()
        assert run.report is not None
        assert run.report.model_calls == 1


# ------------------------------------------------------------------------------ runs and spans


def test_all_agents_of_a_block_are_one_run(process: Traced) -> None:
    process.guard(TWO_CALLS)

    with guarded_run("both") as run:
        for name in ("one", "other"):
            with process.agent(name):
                process.work(1)

    assert run.report is not None
    assert run.report.model_calls == 2
    assert process.total("loopguard.runs") == 1


def test_what_is_known_of_the_run_stands_on_the_span_around_it(process: Traced) -> None:
    process.guard(TWO_CALLS)

    with process.tracer.start_as_current_span("web request"):
        for name in ("first", "second"):
            with process.tracer.start_as_current_span(name), guarded_run(name):
                process.work(1 if name == "first" else 3)

    described = {
        span.name: {
            name.removeprefix("loopguard."): value
            for name, value in (span.attributes or {}).items()
            if name.startswith("loopguard.")
        }
        for span in process.spans
    }
    assert described["web request"] == {}
    assert described["first"] == {
        "run.id": "first",
        "run.status": "running",
        "run.steps": 2,
        "tripped": False,
    }
    assert described["second"] == {
        "run.id": "second",
        "run.status": "running",
        "run.steps": 6,
        "run.steps_after_trip": 1,
        "tripped": True,
        "rule": "llm_call_budget",
    }


def test_a_span_of_its_own_is_opened_only_where_there_is_none(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(process, monkeypatch)

    with guarded_run("own"):
        assert trace.get_current_span().is_recording()
    assert not trace.get_current_span().is_recording()
    with process.tracer.start_as_current_span("mine"), guarded_run("theirs"):
        pass

    assert [(span.name, dict(span.attributes or {})) for span in process.spans] == [
        ("guarded_run", {"loopguard.run.id": "own"}),
        ("mine", {"loopguard.run.id": "theirs"}),
    ]


def test_an_error_is_recorded_on_its_own_span(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(process, monkeypatch)
    process.guard(TWO_CALLS, mode="enforce")

    with pytest.raises(RunAborted), guarded_run():
        process.loop_for_ever()

    (own,) = [span for span in process.spans if span.name == "guarded_run"]
    assert not own.status.is_ok
    assert dict(own.attributes or {})["loopguard.run.status"] == "aborted"
    assert [event.name for event in own.events] == ["exception"]


def test_threads_take_the_run_along_with_their_context(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    def work() -> None:
        with process.agent():
            process.turn()

    with guarded_run() as run, ThreadPoolExecutor(2) as pool:
        inside = contextvars.copy_context()
        pool.submit(inside.run, work).result()
        pool.submit(work).result()

    assert run.report is not None
    assert run.report.model_calls == 1, "the second thread was not told of the run"
    assert process.total("loopguard.runs") == 2


def test_what_outlives_a_block_belongs_to_no_run_of_it(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    contexts: list[contextvars.Context] = []

    def run() -> None:
        contexts.append(contextvars.copy_context())
        process.loop_for_ever()

    with pytest.raises(RunAborted), guarded_run():
        run()

    for inside in contexts * 2:
        inside.run(process.turn)
    assert process.total("loopguard.aborts", abort__result="ok") == 1, "only the run was stopped"
    # Nothing is around what comes after it: ids alone hold that together, and only silence ends it.
    assert process.total("loopguard.run.active") == len(contexts * 2)


def test_a_block_may_be_left_in_another_context(process: Traced) -> None:
    process.guard(TWO_CALLS)
    run = guarded_run()

    contextvars.copy_context().run(run.__enter__)
    run.__exit__(None, None, None)

    assert run.report is None
    assert CURRENT.get() is None


def test_a_block_opened_in_a_generator_can_be_closed(process: Traced) -> None:
    process.guard(TWO_CALLS)

    def pages() -> Generator[int]:
        with guarded_run():
            yield 1
            yield 2

    numbers = pages()
    assert next(numbers) == 1
    numbers.close()
    assert CURRENT.get() is None


def test_without_any_provider_the_block_is_harmless() -> None:
    program = """
import asyncio
from opentelemetry import trace
from otel_loopguard import guarded_run

with guarded_run("a") as run:
    assert not trace.get_current_span().is_recording()
assert run.report is None

async def main():
    async with guarded_run() as inner:
        await asyncio.sleep(0)
    assert inner.report is None

asyncio.run(main())
try:
    with guarded_run():
        raise KeyError("x")
except KeyError:
    print("harmless")
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert (ran.stdout, ran.stderr) == ("harmless\n", "")


# ---------------------------------------------------------------------------------------- async


async def endless(process: Traced) -> None:
    """Go on for ever, whatever happens to the model requests."""
    with process.agent():
        while True:
            try:
                process.turn()
            except RunAborted:
                with process.tool():
                    pass
            await asyncio.sleep(0)


def test_async_a_run_that_comes_through_is_reported(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def main() -> guarded_run:
        async with guarded_run() as run:
            await asyncio.sleep(0)
            with process.agent():
                process.turn()
        return run

    report = asyncio.run(main()).report
    assert report is not None
    assert report.model_calls == 1


def test_our_own_cancellation_comes_out_as_the_stop(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def main() -> str:
        with pytest.raises(RunAborted) as raised:
            async with guarded_run():
                await endless(process)
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        assert raised.value.report.rule == "llm_call_budget"
        await asyncio.sleep(0)
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
        return "went on"

    assert asyncio.run(main()) == "went on"
    assert process.total("loopguard.aborts", abort__hook="cancel", abort__result="ok") == 1


def test_our_own_cancellation_of_a_child_s_parent_comes_out_as_the_stop(process: Traced) -> None:
    """The block is in the root task, the agent in a child: cancelling the child would hang."""
    process.guard(TWO_CALLS, mode="enforce")

    async def main() -> None:
        with pytest.raises(RunAborted):
            async with guarded_run():
                await asyncio.gather(endless(process), asyncio.sleep(60))

    asyncio.run(main())


def test_a_framework_that_turns_our_cancellation_into_an_error_is_seen_through(
    process: Traced,
) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def framework() -> None:
        try:
            await endless(process)
        except asyncio.CancelledError:
            raise RuntimeError("worker lost") from None

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async with guarded_run():
                await framework()
        assert str(raised.value.__cause__) == "worker lost"
        if sys.version_info >= (3, 11):
            # Else an `asyncio.timeout` around the block would take itself for cancelled.
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    asyncio.run(main())


def test_a_framework_that_ends_without_a_word_after_our_cancellation_raises(
    process: Traced,
) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def framework() -> None:
        with suppress(asyncio.CancelledError):
            await endless(process)

    async def main() -> None:
        with pytest.raises(RunAborted):
            async with guarded_run():
                await framework()

    asyncio.run(main())


def test_a_swallowed_cancellation_is_asserted_again(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    swallowed: list[int] = []

    async def stubborn() -> None:
        with process.agent():
            while True:
                try:
                    process.turn()
                except RunAborted:
                    with process.tool():
                        pass
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    if len(swallowed) == 3:
                        raise
                    swallowed.append(1)

    async def main() -> None:
        with pytest.raises(RunAborted):
            async with guarded_run():
                await stubborn()
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    asyncio.run(main())
    assert len(swallowed) == 3
    assert process.total("loopguard.aborts", abort__hook="cancel") == 1, "told of once"


def test_model_calls_that_the_gate_does_not_know_are_cancelled(process: Traced) -> None:
    """Their client is none of those that the gate stands in front of."""
    process.guard(TWO_CALLS, mode="enforce")
    turns: list[int] = []

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async with guarded_run():
                with process.agent():
                    while True:
                        turns.append(1)
                        with process.chat():
                            await asyncio.sleep(0)
        assert raised.value.report.model_calls == len(turns)

    asyncio.run(main())
    assert len(turns) == 4, "refused at the third, which ran; cancelled in the fourth"


def test_tools_that_the_model_had_asked_for_already_are_no_reason_to_cancel(
    process: Traced,
) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1), mode="enforce")

    async def main() -> None:
        async with guarded_run():
            with process.agent():
                for _ in range(5):
                    with process.tool():
                        await asyncio.sleep(0)
                with pytest.raises(RunAborted):
                    process.turn()

    asyncio.run(main())
    assert process.total("loopguard.aborts", abort__hook="cancel") == 0


def test_a_run_that_only_asks_again_and_again_is_cancelled(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    asked: list[int] = []

    async def main() -> None:
        with pytest.raises(RunAborted):
            async with guarded_run():
                while True:
                    asked.append(1)
                    with suppress(RunAborted):
                        process.request_model()
                    await asyncio.sleep(0)

    asyncio.run(main())
    assert len(asked) == 2 + 4


def test_a_cancellation_that_comes_too_late_does_not_hit_what_follows(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    def framework() -> None:
        with process.agent():
            for _ in range(4):  # no await in here: a cancellation waits for the loop
                try:
                    process.turn()
                except RunAborted:
                    with process.tool():
                        pass
            process.turn()

    async def main() -> str:
        with pytest.raises(RunAborted):
            async with guarded_run():
                framework()
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        return "untouched"

    assert asyncio.run(main()) == "untouched"


def test_without_a_block_the_task_in_which_the_run_began_is_cancelled(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await endless(process)

    asyncio.run(main())
    assert process.total("loopguard.aborts", abort__hook="cancel", abort__result="ok") == 1


def test_a_task_goes_on_with_its_next_job_after_a_run_without_a_block(process: Traced) -> None:
    """Without `guarded_run` too, a cancellation on its way must not outlive the run."""
    process.guard(TWO_CALLS, mode="enforce")

    async def main() -> str:
        with process.agent():
            for _ in range(4):
                try:
                    process.turn()
                except RunAborted:
                    with process.tool():
                        pass
        await asyncio.sleep(0.01)
        return "next job"

    assert asyncio.run(main()) == "next job"


def test_the_caller_s_own_cancellation_passes_through(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    reached = asyncio.Event()

    async def run() -> None:
        async with guarded_run():
            with process.agent():
                process.turn()
                reached.set()
                await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(run())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_the_caller_s_own_cancellation_of_a_stopped_run_passes_through(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce", abort=("gate",))
    reached = asyncio.Event()

    async def run() -> None:
        async with guarded_run():
            try:
                process.loop_for_ever()
            except RunAborted:
                reached.set()
                await asyncio.sleep(60)  # a framework that is busy with its clean-up

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(run())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_the_caller_s_timeout_passes_through(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def run() -> None:
        async with guarded_run():
            with process.agent():
                process.turn()
                await asyncio.sleep(60)

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run(), 0.02)
        if sys.version_info >= (3, 11):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02), guarded_run():
                    await asyncio.sleep(60)

    asyncio.run(main())


def test_many_runs_at_once_are_told_apart(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")

    async def healthy() -> str:
        async with guarded_run() as run:
            with process.agent("healthy"):
                process.turn()
                await asyncio.sleep(0)
                with process.chat(asks=False):
                    process.request_model()
        assert run.report is not None
        return run.report.status

    async def runaway() -> str:
        with pytest.raises(RunAborted):
            async with guarded_run():
                await endless(process)
        return "stopped"

    async def main() -> list[str]:
        jobs = [each() for _ in range(10) for each in (healthy, runaway)]
        return await asyncio.gather(*jobs)

    assert asyncio.run(main()) == ["complete", "stopped"] * 10


def test_a_block_in_a_worker_thread_has_no_task_to_cancel(process: Traced) -> None:
    process.guard(TWO_CALLS, mode="enforce")
    caught: list[BaseException] = []

    def work() -> None:
        try:
            with guarded_run():
                process.loop_for_ever()
        except BaseException as error:  # noqa: BLE001
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [type(error) for error in caught] == [RunAborted]

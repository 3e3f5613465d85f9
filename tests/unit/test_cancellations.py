"""Whose cancellation it is: ours comes out as `RunAborted`, the caller's passes through."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest

from otel_loopguard import Policy, RunAborted, guarded_run
from tests._tracing import Traced, traced

TWO_CALLS = Policy.none().with_limits(max_llm_calls=2)


@pytest.fixture
def process() -> Generator[Traced]:
    """Trace a process whose guard has nothing but cancellation to stop a run with."""
    with traced() as made:
        made.guard(TWO_CALLS, mode="enforce", abort=("cancel",))
        yield made


async def endless(process: Traced) -> None:
    with process.agent():
        while True:
            process.work(1)
            await asyncio.sleep(0)


async def healthy(process: Traced) -> None:
    """Work a little, and wait for ever."""
    with process.agent():
        process.work(1)
        await asyncio.sleep(60)


def nobody_asks_for_cancellation() -> bool:
    task = asyncio.current_task()
    assert task is not None
    return getattr(task, "cancelling", lambda: 0)() == 0


def assert_aborted(run: guarded_run) -> None:
    assert run.report is not None
    assert (run.report.rule, run.report.status) == ("llm_call_budget", "aborted")


def assert_not_aborted(run: guarded_run) -> None:
    assert run.report is not None
    assert (run.report.rule, run.report.model_calls) == (None, 1)
    assert run.report.status != "aborted"


# -------------------------------------------------------------------------------------- asyncio


def test_waiting_for_a_block_with_a_time_limit(process: Traced) -> None:
    stopped, slow = guarded_run(), guarded_run()

    async def go(run: guarded_run, work: Callable[[Traced], object]) -> None:
        async with run:
            await work(process)  # type: ignore[misc]  # a coroutine function

    async def main() -> None:
        with pytest.raises(RunAborted):
            await asyncio.wait_for(go(stopped, endless), 60)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(go(slow, healthy), 0.01)

    asyncio.run(main())
    assert_aborted(stopped)
    assert_not_aborted(slow)


def test_the_caller_cancels_at_the_same_moment(process: Traced) -> None:
    """A task that counts its cancellations knows of both; before 3.11 it is just cancelled."""
    run = guarded_run()

    async def work() -> None:
        async with run:
            with process.agent():
                for _ in range(6):
                    process.work(1)
                # Ours is on its way: it arrives when the loop comes round, and so does theirs.
                asyncio.get_running_loop().call_soon(task.cancel)
                await asyncio.sleep(60)

    async def main() -> None:
        nonlocal task
        task = asyncio.get_running_loop().create_task(work())
        caller_is_heard = sys.version_info >= (3, 11)
        with pytest.raises(asyncio.CancelledError if caller_is_heard else RunAborted):
            await task

    task: asyncio.Task[None]
    asyncio.run(main())
    assert_aborted(run)


# ----------------------------------------------------------------------------------------- anyio


def test_a_cancel_scope_around_a_block_that_we_stop(process: Traced) -> None:
    async def main() -> None:
        with pytest.raises(RunAborted), anyio.fail_after(60):
            async with guarded_run():
                await endless(process)
        assert nobody_asks_for_cancellation()
        await anyio.lowlevel.checkpoint()

    asyncio.run(main())


def test_a_cancel_scope_around_a_block_runs_out(process: Traced) -> None:
    run = guarded_run()

    async def main() -> None:
        with anyio.move_on_after(0.01) as scope:
            async with run:
                await healthy(process)
        assert scope.cancelled_caught
        await anyio.lowlevel.checkpoint()
        assert nobody_asks_for_cancellation()

    asyncio.run(main())
    assert_not_aborted(run)


def test_a_cancel_scope_in_a_block_is_the_application_s(process: Traced) -> None:
    run = guarded_run()

    async def main() -> None:
        async with run:
            with anyio.move_on_after(0.01) as scope:
                await healthy(process)
            assert scope.cancelled_caught

    asyncio.run(main())
    assert_not_aborted(run)


def test_a_cancel_scope_in_a_block_that_we_stop_is_seen_through(process: Traced) -> None:
    async def main() -> None:
        with pytest.raises(RunAborted):
            async with guarded_run():
                with anyio.fail_after(60):
                    await endless(process)
        assert nobody_asks_for_cancellation()

    asyncio.run(main())


def test_a_task_group_of_anyio_in_a_block_that_we_stop(process: Traced) -> None:
    async def main() -> None:
        with pytest.raises(RunAborted):
            async with guarded_run(), anyio.create_task_group() as group:
                group.start_soon(endless, process)
                group.start_soon(anyio.sleep, 60)
        assert nobody_asks_for_cancellation()

    asyncio.run(main())


def test_a_shielded_clean_up_is_finished_before_the_block_is_left(process: Traced) -> None:
    cleaned: list[bool] = []

    async def main() -> None:
        with pytest.raises(RunAborted), suppress(asyncio.TimeoutError):
            async with guarded_run():
                try:
                    await endless(process)
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.sleep(0.01)
                        cleaned.append(True)

    asyncio.run(main())
    assert cleaned == [True]


# ------------------------------------------------------- what there is since Python 3.11 only


if sys.version_info >= (3, 11):

    def test_a_timeout_around_a_block_that_we_stop_has_not_run_out(process: Traced) -> None:
        async def main() -> None:
            with pytest.raises(RunAborted):
                async with asyncio.timeout(60), guarded_run():
                    await endless(process)
            assert nobody_asks_for_cancellation()

        asyncio.run(main())

    def test_a_timeout_in_a_block_is_the_application_s(process: Traced) -> None:
        run = guarded_run()

        async def main() -> None:
            async with run:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await healthy(process)
            assert nobody_asks_for_cancellation()

        asyncio.run(main())
        assert_not_aborted(run)

    def test_a_timeout_in_a_block_that_we_stop_is_seen_through(process: Traced) -> None:
        async def main() -> None:
            with pytest.raises(RunAborted) as raised:
                async with guarded_run(), asyncio.timeout(60):
                    await endless(process)
            assert isinstance(raised.value.__cause__, asyncio.CancelledError)

        asyncio.run(main())

    def test_a_task_group_in_a_block_that_we_stop(process: Traced) -> None:
        ended: list[str] = []

        async def sibling() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("sibling")

        async def main() -> None:
            with pytest.raises(RunAborted):
                async with guarded_run(), asyncio.TaskGroup() as group:
                    group.create_task(endless(process))
                    group.create_task(sibling())
            assert nobody_asks_for_cancellation()

        asyncio.run(main())
        assert ended == ["sibling"]

    def test_a_task_group_around_blocks(process: Traced) -> None:
        stopped, beside = guarded_run(), guarded_run()

        async def go(run: guarded_run, work: Callable[[Traced], object]) -> None:
            async with run:
                await work(process)  # type: ignore[misc]  # a coroutine function

        async def main() -> None:
            with pytest.raises(ExceptionGroup) as raised:  # noqa: F821 -- not on 3.10
                async with asyncio.TaskGroup() as group:
                    group.create_task(go(beside, healthy))
                    group.create_task(go(stopped, endless))
            assert [type(error) for error in raised.value.exceptions] == [RunAborted]

        asyncio.run(main())
        assert_aborted(stopped)
        assert_not_aborted(beside)

    def refuse(process: Traced) -> None:
        """Make model requests until one is refused."""
        with process.agent():
            while True:
                for guard in process.guards:
                    allowed = guard.admit()
                    assert allowed is not None
                    allowed.over(failed=False)

    @pytest.mark.parametrize("other", [LookupError("of the application"), asyncio.CancelledError()])
    def test_a_group_that_holds_the_stop_comes_out_as_the_stop(other: BaseException) -> None:
        def framework(process: Traced) -> None:
            try:
                refuse(process)
            except RunAborted as error:
                raise BaseExceptionGroup("tasks", [other, error]) from None  # noqa: F821 -- not on 3.10

        with traced() as process:
            process.guard(TWO_CALLS, mode="enforce", abort=("gate",))
            with pytest.raises(RunAborted) as raised, guarded_run():
                framework(process)

        assert isinstance(raised.value.__cause__, BaseExceptionGroup)  # noqa: F821 -- not on 3.10

    def test_a_group_that_holds_a_person_s_interruption_passes_through() -> None:
        def framework(process: Traced) -> None:
            try:
                refuse(process)
            except RunAborted as error:
                raise BaseExceptionGroup("tasks", [error, KeyboardInterrupt()]) from None  # noqa: F821 -- not on 3.10

        with traced() as process:
            process.guard(TWO_CALLS, mode="enforce", abort=("gate",))
            with pytest.raises(BaseExceptionGroup), guarded_run():  # noqa: F821 -- not on 3.10
                framework(process)

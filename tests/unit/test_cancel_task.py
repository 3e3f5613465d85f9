"""Cancelling the task that a run began in."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest

from otel_loopguard.abort.cancel_task import MESSAGE, RootTask

COUNTS = sys.version_info >= (3, 11)
"""Tasks count requests for their cancellation."""


def always() -> bool:
    return True


def nothing() -> None:
    """Hear of a delivery, and do nothing."""


def noted() -> RootTask:
    task = RootTask.running()
    assert task is not None
    return task


def test_there_is_no_task_without_a_loop() -> None:
    assert RootTask.running() is None


def test_a_callback_of_the_loop_has_no_task() -> None:
    async def main() -> RootTask | None:
        loop, seen = asyncio.get_running_loop(), asyncio.Event()
        found: list[RootTask | None] = []
        loop.call_soon(lambda: (found.append(RootTask.running()), seen.set()))
        await seen.wait()
        return found[0]

    assert asyncio.run(main()) is None


def test_a_child_reaches_the_task_that_was_noted() -> None:
    delivered: list[str] = []

    async def child(root: RootTask) -> None:
        assert root.cancel(always, lambda: delivered.append("root"))
        await asyncio.sleep(60)

    async def main() -> None:
        root = noted()
        with pytest.raises(asyncio.CancelledError) as raised:
            await asyncio.gather(child(root), asyncio.sleep(60))
        assert raised.value.args in {(MESSAGE,), ()}
        assert root.take_back()

    asyncio.run(main())
    assert delivered == ["root"]


def test_another_thread_reaches_it_too() -> None:
    async def main() -> None:
        root = noted()
        thread = threading.Thread(target=root.cancel, args=(always, nothing))
        thread.start()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(60)
        thread.join()
        assert root.take_back()

    asyncio.run(main())


def test_a_cancellation_that_is_not_wanted_any_more_does_not_arrive() -> None:
    wanted = [True]

    async def main() -> str:
        root = noted()
        assert root.cancel(lambda: wanted[0], nothing)
        wanted[0] = False  # the run ends before the loop comes round
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not root.take_back()
        return "untouched"

    assert asyncio.run(main()) == "untouched"


def test_a_swallowed_cancellation_can_be_repeated() -> None:
    swallowed: list[asyncio.CancelledError] = []

    async def main() -> None:
        root = noted()
        for _ in range(3):
            assert root.cancel(always, nothing)
            assert root.cancel(always, nothing), "one on its way is enough"
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                swallowed.append(error)
        assert root.take_back()
        if sys.version_info >= (3, 11):
            current = asyncio.current_task()
            assert current is not None
            assert current.cancelling() == 0, "each of ours has been taken back"

    asyncio.run(main())
    assert len(swallowed) == 3


def test_a_cancellation_of_somebody_else_is_left_alone() -> None:
    verdicts: list[bool] = []

    async def run() -> None:
        root = noted()
        root.cancel(always, nothing)
        try:
            await asyncio.sleep(60)
        finally:
            verdicts.append(root.take_back())

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(run())
        await asyncio.sleep(0)
        task.cancel("by the caller")
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert verdicts == [not COUNTS]


def test_a_run_inside_a_cancelled_clean_up_is_told_apart() -> None:
    verdicts: list[bool] = []

    async def run() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            root = noted()  # the caller has cancelled us already: that is not ours
            root.cancel(always, nothing)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                verdicts.append(root.take_back())
            raise

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(run())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert verdicts == [True]


def test_nothing_of_ours_is_nothing_to_take_back() -> None:
    async def main() -> bool:
        return noted().take_back()

    assert asyncio.run(main()) is False


def test_a_task_that_is_over_cannot_be_asked() -> None:
    async def main() -> RootTask:
        return noted()

    async def both() -> bool:
        child = asyncio.get_running_loop().create_task(main())
        root = await child
        return root.cancel(always, nothing)

    assert asyncio.run(both()) is False
    assert asyncio.run(main()).cancel(always, nothing) is False


def test_a_task_whose_loop_is_closed_cannot_be_asked() -> None:
    found: list[RootTask] = []

    async def forgotten() -> None:
        found.append(noted())
        await asyncio.sleep(60)

    loop = asyncio.new_event_loop()
    coroutine = forgotten()
    task = loop.create_task(coroutine)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    assert not task.done()
    assert found[0].cancel(always, nothing) is False
    coroutine.close()
    quiet: Any = task
    quiet._log_destroy_pending = False

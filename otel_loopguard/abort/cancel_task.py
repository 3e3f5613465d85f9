"""Cancel the task that a run was started in: for runs that go on although they were refused.

The task and its loop are noted where the run begins. Cancelling whatever task happens to run in a
callback is a trap: it is often a child, and frameworks hang or end without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MESSAGE = "stopped by the loop guard"


class RootTask:
    """The task that a run began in, and the loop it belongs to."""

    __slots__ = ("_delivered", "_foreign", "_on_its_way", "loop", "task")

    def __init__(self, task: asyncio.Task[object], loop: asyncio.AbstractEventLoop) -> None:
        self.task = task
        self.loop = loop
        self._foreign = _cancellations(task)
        """Cancellations that somebody had asked for before the run began."""
        self._delivered = 0
        self._on_its_way = False

    @classmethod
    def running(cls) -> RootTask | None:
        """Return the task that this code runs in, if it runs in one."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return None
        return None if task is None else cls(task, task.get_loop())

    @property
    def is_current(self) -> bool:
        """Whether this code runs in it."""
        current = self.running()
        return current is not None and current.task is self.task

    def cancel(self, wanted: Callable[[], bool], delivered: Callable[[], object]) -> bool:
        """Ask the task to end, from any thread; say whether it can be asked.

        The cancellation arrives when the loop comes round to it. `wanted` is asked again then: the
        run may be over by that time, and the task may have gone on to something else. `delivered`
        is called once it has arrived.
        """
        if self.task.done() or self.loop.is_closed():
            return False
        if not self._on_its_way:
            self._on_its_way = True
            self.loop.call_soon_threadsafe(self._deliver, wanted, delivered)
        return True

    def take_back(self) -> bool:
        """Take our cancellations back; say whether there were any, and nobody else asks for one.

        Before Python 3.11 a task does not count requests: then it was ours.
        """
        uncancel = getattr(self.task, "uncancel", lambda: 0)
        ours, self._delivered = self._delivered, 0
        for _ in range(ours):
            uncancel()
        return ours > 0 and _cancellations(self.task) <= self._foreign

    def _deliver(self, wanted: Callable[[], bool], delivered: Callable[[], object]) -> None:
        self._on_its_way = False
        if wanted() and self.task.cancel(MESSAGE):
            self._delivered += 1
            delivered()


class _Nobody:
    """Stands for the task of a run whose code does not run at the moment."""

    is_current = False

    def cancel(self, wanted: Callable[[], bool], delivered: Callable[[], object]) -> bool:
        """Say that nobody can be asked."""
        del wanted, delivered
        return False


NOBODY = _Nobody()


def _cancellations(task: asyncio.Task[object]) -> int:
    return getattr(task, "cancelling", lambda: 0)()

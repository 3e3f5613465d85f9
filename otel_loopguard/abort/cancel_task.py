"""Cancel the task that a run was started in: for runs that go on although they were refused.

The task and its loop are noted where the run begins. Cancelling whatever task happens to run in a
callback is a trap: it is often a child, and frameworks hang or end without a word.
"""

from __future__ import annotations

import asyncio

MESSAGE = "stopped by the loop guard"


class RootTask:
    """The task that a run began in, and the loop it belongs to."""

    __slots__ = ("cancelled", "loop", "task")

    def __init__(self, task: asyncio.Task[object], loop: asyncio.AbstractEventLoop) -> None:
        self.task = task
        self.loop = loop
        self.cancelled = False
        """We have asked it to end."""

    @classmethod
    def running(cls) -> RootTask | None:
        """Return the task that this code runs in, if it runs in one."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return None
        return None if task is None else cls(task, task.get_loop())

    def cancel(self) -> bool:
        """Ask the task to end, from any thread; say whether it can be asked."""
        if self.task.done() or self.loop.is_closed():
            return False
        self.cancelled = True
        self.loop.call_soon_threadsafe(self.task.cancel, MESSAGE)
        return True

    def take_back(self) -> bool:
        """Take our cancellation back; say whether nobody else has asked for one.

        Before Python 3.11 a task does not count requests: then it was ours.
        """
        uncancel = getattr(self.task, "uncancel", None)
        return uncancel is None or uncancel() == 0

"""Plays a run until it ends, or until its time is over: then it is ended, by and by harder.

First the model is told to refuse, which ends a loop as a provider's own error would. Then a task is
cancelled. What goes on for all that is interrupted where it executes Python. A thread that waits in
foreign code cannot be reached: it is told of. The run's own is a daemon.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import functools
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

GRACE_S = 1.0
"""Seconds that each way of ending a run is given."""

Playable: TypeAlias = "Callable[[], object] | Awaitable[object]"
"""A run: a function without arguments, plain or async, or what is to be awaited."""


class RunEnd(msgspec.Struct, kw_only=True):
    """How a run has ended."""

    value: object = None
    error: BaseException | None = None
    seconds: float = 0.0
    is_overdue: bool = False
    """Its time was over before it ended."""
    still_runs: bool = False
    """Nothing could end it."""


class _InterruptedError(BaseException):
    """What ends a run that nothing else ends; no `except Exception` goes on after it."""


def play(run: Playable, timeout_s: float | None, refuse: Callable[[], object]) -> RunEnd:
    """Play a run in a thread of its own, in a copy of the calling context.

    An async one gets a loop of its own there. Without a limit on time it is played in the calling
    thread. `refuse` is called when the time is over.
    """
    return _play(_Played(run), timeout_s, refuse)


def _play(played: _Played, timeout_s: float | None, refuse: Callable[[], object]) -> RunEnd:
    if timeout_s is None:
        played()
        if isinstance(played.end.error, (KeyboardInterrupt, SystemExit)):
            raise played.end.error  # it is this thread that is to end, and not the run
        return played.end
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=context.run, args=(played,), name="loopguard-tested-run", daemon=True
    )
    began_s = time.monotonic()
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        played.end.is_overdue = True
        for ending in (refuse, played.cancel, lambda: _interrupt(thread.ident)):
            ending()
            thread.join(GRACE_S)
            if not thread.is_alive():
                break
        played.end.still_runs = thread.is_alive()
        if played.end.still_runs:
            played.end.seconds = time.monotonic() - began_s
    return played.end


async def play_here(run: Playable, timeout_s: float | None, refuse: Callable[[], object]) -> RunEnd:
    """Play an async run on the running loop of asyncio.

    A plain function is called in a thread; what it returns is awaited here if it is to be awaited.
    """
    if not (inspect.isawaitable(run) or _is_async(run)):
        end = await asyncio.to_thread(_play, _Played(run, awaits=False), timeout_s, refuse)
        if end.error is not None or not inspect.isawaitable(end.value):
            return end
        run = end.value
    began_s = time.monotonic()
    end = RunEnd()
    task = asyncio.ensure_future(_awaited(run))
    over = threading.Event()
    task.add_done_callback(lambda _: over.set())
    if timeout_s is not None:
        threading.Thread(
            target=_keep_watch,
            args=(task, over, threading.get_ident(), timeout_s, refuse, end),
            name="loopguard-tested-run-watch",
            daemon=True,
        ).start()
    longest_s = None if timeout_s is None else timeout_s + 4 * GRACE_S
    try:
        await asyncio.wait({task}, timeout=longest_s)
    except asyncio.CancelledError:
        task.cancel()  # it is the test itself that is to end
        raise
    end.seconds = time.monotonic() - began_s
    end.still_runs = not task.done()
    if task.done():
        end.error = asyncio.CancelledError() if task.cancelled() else task.exception()
        end.value = None if end.error is not None else task.result()
    return end


def _keep_watch(
    task: asyncio.Future[object],
    over: threading.Event,
    thread_id: int,
    timeout_s: float,
    refuse: Callable[[], object],
    end: RunEnd,
) -> None:
    """End a task from outside: one that never waits lets nothing else happen on its loop."""
    loop, here = task.get_loop(), threading.Event()
    if over.wait(timeout_s):
        return
    end.is_overdue = True
    refuse()
    if over.wait(GRACE_S):
        return
    with suppress(RuntimeError):  # the loop has been closed meanwhile
        loop.call_soon_threadsafe(task.cancel)
        loop.call_soon_threadsafe(here.set)
        if not over.wait(GRACE_S) and not here.is_set():
            _interrupt(thread_id)


class _Played:
    """A run on its way in some thread."""

    def __init__(self, run: Playable, *, awaits: bool = True) -> None:
        self.end = RunEnd()
        self._run = run
        self._awaits = awaits
        self._task: asyncio.Task[object] | None = None

    def __call__(self) -> None:
        """Play it to its end; nothing is raised."""
        began_s = time.monotonic()
        try:
            self.end.value = self._run() if callable(self._run) else self._run
            if self._awaits and inspect.isawaitable(self.end.value):
                self.end.value = asyncio.run(self._await(self.end.value))
        except BaseException as error:  # noqa: BLE001 -- however it ends, that is what is asked
            self.end.error = error
        self.end.seconds = time.monotonic() - began_s

    def cancel(self) -> None:
        """Cancel the task, if it is one that a loop plays."""
        if self._task is not None:
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _await(self, awaitable: Awaitable[object]) -> object:
        self._task = asyncio.current_task()
        return await awaitable


async def _awaited(run: Playable) -> object:
    made = run() if callable(run) else run
    return await made if inspect.isawaitable(made) else made


def _is_async(run: object) -> bool:
    """Say whether a callable is a coroutine function, be it behind a `partial` or an object."""
    inner: Any = run
    while isinstance(inner, functools.partial):
        inner = inner.func
    call = getattr(inner, "__call__", None)  # noqa: B004 -- an object may have an async one
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(call)


def _interrupt(thread_id: int | None) -> None:
    """Raise in another thread, at the next Python instruction that it executes."""
    if thread_id is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread_id), ctypes.py_object(_InterruptedError)
        )

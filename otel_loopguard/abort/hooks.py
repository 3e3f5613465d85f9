"""Abort hooks: what the user wants called when a run trips, and what became of the calls."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias, cast

import msgspec
from opentelemetry import context

from otel_loopguard.decisions import RunReport, Violation
from otel_loopguard.options.errors import wrong
from otel_loopguard.options.kinds import seconds_of
from otel_loopguard.slots import CURRENT
from otel_loopguard.steps import SpanKey

AbortResult: TypeAlias = Literal["ok", "failed", "timeout"]


class AbortRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an abort hook is told: which run is to stop, and why."""

    run_id: str
    violation: Violation
    """The trip: the first violation whose action is abort."""
    report: RunReport
    """The run up to the trip."""
    attempt: int = 1
    """1 at the trip; one more each time that failed hooks are asked, while steps still start."""
    run_span: SpanKey | None = None
    """The topmost span of the run."""
    id: str = msgspec.field(default_factory=lambda: uuid.uuid4().hex)
    """Names the stop: the same for every hook, and each time that one is asked."""
    timeout_s: float = 2.0
    """Seconds that the call may take."""


AbortHook: TypeAlias = Callable[[AbortRequest], object]
"""Stops a run, or tells somebody. May be a coroutine function: it then runs on the run's own event
loop, if it has one. What it returns is not looked at."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of one call of one hook."""

    hook: AbortHook
    name: str
    result: AbortResult
    error: BaseException | None
    at_last: Callable[[], AbortResult | None]
    """What has become of a call that took too long; `None` while it still runs."""


def deliver(
    hooks: Iterable[AbortHook],
    request: AbortRequest,
    *,
    timeout_s: float,
    loop: asyncio.AbstractEventLoop | None,
    tell: Callable[[Outcome], None],
) -> None:
    """Call every hook in order, whatever the one before did, and tell what became of each.

    Each call has a thread of its own and `timeout_s` seconds; one that takes longer is left behind
    and told of as a timeout. Coroutines run on `loop` if it is running, and are only waited for
    where that does not block it.
    """
    for hook in hooks:
        _Call(hook, request, timeout_s, loop, tell).make()


def checked(hooks: object, timeout_s: object) -> tuple[AbortHook, ...]:
    """Return the hooks as a tuple.

    Raises:
        PolicyError: if they are no list of callables, or the time limit is no number of
            seconds above 0 that a thread can wait.

    """
    if callable(hooks) or isinstance(hooks, str) or not isinstance(hooks, Iterable):
        raise wrong("abort_hooks", "a list of callables, as in abort_hooks=[...]", hooks)
    listed = tuple(cast("Iterable[object]", hooks))
    for index, hook in enumerate(listed):
        if not callable(hook):
            raise wrong(f"abort_hooks[{index}]", "a callable that takes an AbortRequest", hook)
        if _is_generator(hook):
            expected = "a function without `yield`: calling this one does nothing"
            raise wrong(f"abort_hooks[{index}]", expected, hook)
    seconds_of(timeout_s, "hook_timeout_s")
    return cast("tuple[AbortHook, ...]", listed)


def name_of(hook: AbortHook) -> str:
    """Return what metrics and logs call a hook: its own name, or that of its type.

    A `functools.partial` is called as what it calls.
    """
    called: object = hook
    while isinstance(called, functools.partial):
        called = cast("functools.partial[object]", called).func
    name: object = getattr(called, "__qualname__", None)
    return name if isinstance(name, str) else type(called).__qualname__


IN_HOOK: ContextVar[bool] = ContextVar("loopguard_in_hook", default=False)
"""Whether an abort hook is running here: a run that it makes, and that trips, asks no hooks."""


class _Call:
    """One call of one hook. The first word on what became of it counts."""

    def __init__(
        self,
        hook: AbortHook,
        request: AbortRequest,
        timeout_s: float,
        loop: asyncio.AbstractEventLoop | None,
        tell: Callable[[Outcome], None],
    ) -> None:
        self._hook = hook
        self._request = request
        self._timeout_s = timeout_s
        self._loop = loop if loop is not None and loop.is_running() else None
        self._is_made_on_loop = self._loop is not None and _running_loop() is self._loop
        self._tell = tell
        self._lock = threading.Lock()
        self._told = False
        self._at_last: AbortResult | None = None
        self._need_not_wait = threading.Event()

    def make(self) -> None:
        """Make the call and wait for it, unless that would block the loop that it needs."""
        name = f"loopguard-{name_of(self._hook)}"
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError as error:  # no more threads, or the interpreter is shutting down
            self._end("failed", error)
        if not self._need_not_wait.wait(self._timeout_s):
            self._finish("timeout", None)

    def _run(self) -> None:
        """Call the hook outside the run, so that its own requests are not the run's."""
        CURRENT.set(None)
        IN_HOOK.set(True)
        context.attach(context.Context())
        try:
            returned = self._hook(self._request)
            in_time = not inspect.isawaitable(returned) or self._wait(returned)
        except BaseException as error:  # noqa: BLE001 -- a foreign hook may raise anything
            self._end("failed", error)
        else:
            self._end("ok" if in_time else "timeout", None)

    def _wait(self, awaitable: Awaitable[object]) -> bool:
        """Wait for a coroutine; say whether it ended in time."""

        async def limited() -> bool:
            hook = asyncio.ensure_future(awaitable)
            try:
                await asyncio.wait((hook,), timeout=self._timeout_s)
            except asyncio.CancelledError:
                if not hook.done():  # else it was faster than the end of the run's loop
                    raise
            if not hook.done():
                hook.cancel()
                return False
            hook.result()
            return True

        if self._loop is None:
            return asyncio.run(limited())
        ended = asyncio.run_coroutine_threadsafe(limited(), self._loop)
        if self._is_made_on_loop:
            self._need_not_wait.set()
        # The loop keeps the time itself; it may also be stopped and never come round to it.
        return ended.result(2 * self._timeout_s)

    def _end(self, result: AbortResult, error: BaseException | None) -> None:
        self._at_last = result
        self._finish(result, error)

    def _finish(self, result: AbortResult, error: BaseException | None) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        try:
            name = name_of(self._hook)
            self._tell(Outcome(self._hook, name, result, error, lambda: self._at_last))
        finally:
            self._need_not_wait.set()


def _is_generator(hook: Any) -> bool:
    """Say whether a call makes a generator, whose code nobody would run."""
    calls: tuple[Any, ...] = (hook, type(hook).__call__)
    return any(inspect.isgeneratorfunction(c) or inspect.isasyncgenfunction(c) for c in calls)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

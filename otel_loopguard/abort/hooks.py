"""Abort hooks: what the user wants called when a run trips, and what became of the calls."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, TypeAlias

import msgspec
from opentelemetry import context

from otel_loopguard.decisions import RunReport, Violation
from otel_loopguard.runs import CURRENT
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
    """Which time the hook is asked: one that failed is asked again while steps still start."""
    run_span: SpanKey | None = None
    """The topmost span of the run."""


AbortHook: TypeAlias = Callable[[AbortRequest], object]
"""Stops a run, or tells somebody. May be a coroutine function: it then runs on the run's own event
loop, if it has one. What it returns is not looked at."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of one call of one hook."""

    hook: AbortHook
    name: str
    result: AbortResult
    error: BaseException | None = None


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
        call = _Call(hook, request, loop, tell)
        thread = threading.Thread(target=call.run, name=f"loopguard-{call.name}", daemon=True)
        thread.start()
        thread.join(0 if call.needs_this_loop() else timeout_s)
        if thread.is_alive() and not call.needs_this_loop():
            call.finish("timeout", None)
        elif thread.is_alive():
            patience = threading.Timer(timeout_s, call.finish, ("timeout", None))
            patience.daemon = True
            patience.start()


def name_of(hook: AbortHook) -> str:
    """Return what metrics and logs call a hook: its own name, or that of its type."""
    name: object = getattr(hook, "__qualname__", None)
    return name if isinstance(name, str) else type(hook).__qualname__


class _Call:
    """One call of one hook. The first word on what became of it counts."""

    def __init__(
        self,
        hook: AbortHook,
        request: AbortRequest,
        loop: asyncio.AbstractEventLoop | None,
        tell: Callable[[Outcome], None],
    ) -> None:
        self.name = name_of(hook)
        self._hook = hook
        self._request = request
        self._loop = loop if loop is not None and loop.is_running() else None
        self._tell = tell
        self._lock = threading.Lock()
        self._told = False

    def needs_this_loop(self) -> bool:
        """Say whether waiting here would block the event loop that the hook needs."""
        call: object = getattr(self._hook, "__call__", None)  # noqa: B004 -- may be `async def`
        if self._loop is None or not any(map(inspect.iscoroutinefunction, (self._hook, call))):
            return False
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def run(self) -> None:
        contextvars.copy_context().run(self._run_outside)

    def finish(self, result: AbortResult, error: BaseException | None) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        self._tell(Outcome(self._hook, self.name, result, error))

    def _run_outside(self) -> None:
        """Call the hook outside the run, so that its own requests are not the run's."""
        CURRENT.set(None)
        context.attach(context.Context())
        try:
            returned = self._hook(self._request)
            if inspect.isawaitable(returned):
                self._wait(returned)
        except BaseException as error:  # noqa: BLE001 -- a foreign hook may raise anything
            self.finish("failed", error)
        else:
            self.finish("ok", None)

    def _wait(self, awaitable: Awaitable[object]) -> None:
        async def waited() -> None:
            await awaitable

        if self._loop is None:
            asyncio.run(waited())
        else:
            asyncio.run_coroutine_threadsafe(waited(), self._loop).result()

"""`guarded_run`: the block in which a run happens, and where its stop comes out as `RunAborted`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING

from opentelemetry import trace

from otel_loopguard.abort.aborted import RunAborted, RunInterrupted, abort_of, parts_of
from otel_loopguard.abort.cancel_task import RootTask
from otel_loopguard.abort.decorated import Function, decorated
from otel_loopguard.decisions import RunReport
from otel_loopguard.policy import LimitOptions, Policy
from otel_loopguard.registry import names
from otel_loopguard.slots import CURRENT, Slot
from otel_loopguard.version import VERSION

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span
    from typing_extensions import Self, Unpack

_FOREIGN = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends a block for reasons of its own, whatever else has happened."""


class guarded_run:  # noqa: N801 -- used as a statement, like `contextlib.suppress`
    """A block that is one run, whatever spans are in it: `with`, `async with`, or a decorator.

        with guarded_run("order-4711", max_duration_s=60) as run:
            agent.run("...")
        print(run.report)

    Every span in the block, in threads too if they take the context along, belongs to the run. If
    its stop leaves the block as an exception, that is `RunAborted`, however the framework wrapped
    it; one that the framework swallowed shows in `report.status` alone. Our own
    cancellation of the task becomes `RunAborted` too, as with `asyncio.timeout`. The caller's own
    cancellation, and every other exception of a run that was not stopped, passes through.

    Opens a span of its own where none is current, and writes `loopguard.run.id` on the current one.

    A block inside another is a run of its own, whose totals count for the outer one too. What stops
    the outer one stops both; what stops the inner one ends with it.

    `@guarded_run()` makes a block of each call of a function, coroutine function or generator.

    Args:
        run_id: what to call the run in telemetry; made up if not given, for each call of a function
            anew. Must not be a secret.
        limits: `max_duration_s`, `max_steps` and the other limits of `Policy`, for this run alone:
            each takes the place of what the policy of the guard says.

    Raises:
        PolicyError: for an unknown limit or a bad value.

    """

    __slots__ = ("_given_id", "_limits", "_own_span", "_slot", "_token", "report", "run_id")

    def __init__(self, run_id: str | None = None, **limits: Unpack[LimitOptions]) -> None:
        if limits:
            Policy.none().with_limits(**limits)  # a mistake fails here, not where the run begins
        self._given_id = _checked(run_id)
        self._limits = limits
        self.run_id = run_id if run_id is not None else uuid.uuid4().hex
        self.report: RunReport | None = None
        """What became of the run; `None` until the block is left, or if nothing was seen in it."""
        self._slot = Slot(self.run_id, limits)
        self._token: Token[Slot | None] | None = None
        self._own_span: AbstractContextManager[Span] | None = None

    def __call__(self, function: Function) -> Function:
        """Return the function with a block around each call of it, each a run of its own.

        With a generator that is the whole of it: the block is entered when the first item is asked
        for, and is not there for the code that the items are given to.
        """
        given: object = function
        if not callable(given):
            raise TypeError(f"guarded_run: expected a function to decorate, got {given!r}")
        return decorated(function, lambda: guarded_run(self._given_id, **self._limits))

    def __enter__(self) -> Self:
        """Make the code in this block one run."""
        if self._token is not None:
            message = f"guarded_run {self.run_id!r} is entered already; make another one"
            raise RuntimeError(message)
        self._slot = Slot(self.run_id, self._limits, CURRENT.get())
        self._show(self._slot)
        self._slot.task = RootTask.running()
        self._token = CURRENT.set(self._slot)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the run; raise `RunAborted` if it was stopped."""
        with self._slot.lock:
            self._slot.explicit_id = None
            runs = tuple(self._slot.runs.items())
        reports = [(run.stopped_by is not None, tracker.close(run)) for tracker, run in runs]
        stopped = any(run.is_stopped_by_us for _, run in runs)
        self.report = max(reports, key=_weight, default=(False, None))[1]
        token, self._token = self._token, None
        if token is not None:
            with suppress(ValueError):  # a fixture may leave the block in another context
                CURRENT.reset(token)
        if self._own_span is not None:
            self._own_span.__exit__(kind, exception, traceback)
            self._own_span = None
        task = self._slot.task
        cancelled_by_us = isinstance(task, RootTask) and task.take_back()
        if self.report is None:
            return
        if isinstance(exception, RunAborted) and (exception.run_id == self.run_id or not stopped):
            return  # this run's already, or that of one inside it
        if isinstance(exception, RunInterrupted) and self.report.stopped_with is not None:
            return  # code between this block and the one that is stopped must not go on either
        if self._is_stop(exception, stopped=stopped, cancelled_by_us=cancelled_by_us):
            raise RunAborted(self.report, self.run_id) from exception

    def _show(self, slot: Slot) -> None:
        """Write the run's id on the current span, or on one of its own."""
        if not trace.get_current_span().get_span_context().is_valid:
            tracer = trace.get_tracer("otel_loopguard", VERSION)
            self._own_span = tracer.start_as_current_span("guarded_run")
            self._own_span.__enter__()
        span = trace.get_current_span()
        written: Mapping[str, object] = getattr(span, "attributes", None) or {}
        if span.is_recording() and not written.get(names.TRIPPED):
            span.set_attribute(names.RUN_ID, self.run_id)
        slot.span_id = span.get_span_context().span_id

    def _is_stop(
        self, exception: BaseException | None, *, stopped: bool, cancelled_by_us: bool
    ) -> bool:
        """Say whether the block was left because the gate or our cancellation stopped its run."""
        if exception is None or isinstance(exception, asyncio.CancelledError):
            return cancelled_by_us
        if any(isinstance(inner, _FOREIGN) for inner in parts_of(exception)):
            return False
        aborted = abort_of(exception)
        is_ours = aborted is not None and aborted.run_id in {"", self.run_id}
        return is_ours or (stopped and (aborted is not None or isinstance(exception, Exception)))

    async def __aenter__(self) -> Self:
        """Make the code in this block one run."""
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the run; raise `RunAborted` if it was stopped."""
        self.__exit__(kind, exception, traceback)


def _checked(run_id: object) -> str | None:
    if run_id is None or isinstance(run_id, str):
        return run_id
    message = f"guarded_run: expected a run id, got {run_id!r}; write @guarded_run() with "
    raise TypeError(message + "parentheses, or guarded_run(str(...))")


def _weight(candidate: tuple[bool, RunReport]) -> tuple[bool, bool]:
    """Several guards may have watched: the report of the one that stopped the run comes first."""
    stopped, report = candidate
    return stopped, report.trip is not None

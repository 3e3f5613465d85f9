"""Stopping a run: what is asked, in which order, how often, and what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, TypeAlias, cast

from otel_loopguard.abort.cancel_task import RootTask
from otel_loopguard.abort.hooks import (
    AbortHook,
    AbortRequest,
    AbortResult,
    Outcome,
    deliver,
    name_of,
)
from otel_loopguard.runs import Run
from otel_loopguard.steps import SpanKey

BuiltIn: TypeAlias = Literal["gate", "cancel"]
"""`gate`: model requests of the run do not leave. `cancel`: its root task is cancelled, if steps
still start although requests were refused."""

BUILT_IN: tuple[BuiltIn, ...] = ("gate", "cancel")

_PATIENCE = 3
"""Refused requests after which a run that keeps asking counts as one that goes on."""

_logger = logging.getLogger(__name__)


class Ladder:
    """Stops the runs of one guard.

    Every hook is asked once when a run trips. While steps still start after that, the hooks that
    failed are asked again, and the run's root task is cancelled.

    Args:
        hooks: the user's, in the order in which they are asked.
        built_in: the built-in stops that are in use.
        timeout_s: seconds that one call of a hook may take.
        tell: told what became of each attempt: the run, what was to stop it, and the result.

    """

    def __init__(
        self,
        hooks: tuple[AbortHook, ...],
        built_in: frozenset[BuiltIn],
        *,
        timeout_s: float,
        tell: Callable[[Run, str, AbortResult], object],
    ) -> None:
        self.built_in = built_in
        self._hooks = hooks
        self._timeout_s = timeout_s
        self._tell = tell

    @property
    def names(self) -> tuple[str, ...]:
        """What can stop a run here, as metrics call it."""
        return (*(sorted(self.built_in)), *(name_of(hook) for hook in self._hooks))

    def tripped(self, run: Run) -> None:
        """Ask every hook to stop the run."""
        self._ask(run, self._hooks, attempt=1)

    def went_on(self, run: Run) -> None:
        """Hear that a step started although the run had tripped."""
        again, run.unheard = cast("tuple[AbortHook, ...]", run.unheard), ()
        if again:
            self._ask(run, again, attempt=run.steps_after_trip + 1)
        slipped = run.refused_requests > 0 or "gate" not in self.built_in
        task = run.slot.task
        if slipped and "cancel" in self.built_in and task is not None and not task.cancelled:
            self._came_out(run, "cancel", "ok" if task.cancel() else "failed")

    def refused(self, run: Run) -> None:
        """Hear that a model request of the run was refused."""
        if run.refused_requests == 1:
            self._came_out(run, "gate", "ok")
        elif run.refused_requests > _PATIENCE:
            self.went_on(run)

    def _ask(self, run: Run, hooks: tuple[AbortHook, ...], attempt: int) -> None:
        if not hooks or run.trip is None:
            return
        top, task = run.top, run.slot.task
        request = AbortRequest(
            run_id=run.id,
            violation=run.trip,
            report=run.guard.report(),
            attempt=attempt,
            run_span=None if top is None else SpanKey(top.trace_id, top.span_id),
        )
        deliver(
            hooks,
            request,
            timeout_s=self._timeout_s,
            loop=task.loop if isinstance(task, RootTask) else None,
            tell=lambda outcome: self._told(run, outcome),
        )

    def _told(self, run: Run, outcome: Outcome) -> None:
        if outcome.result != "ok":
            run.unheard = (*run.unheard, outcome.hook)
            why = f"raised {outcome.error!r}" if outcome.error else f"took over {self._timeout_s} s"
            _logger.warning("abort hook %s %s (run %s)", outcome.name, why, run.id)
        self._came_out(run, outcome.name, outcome.result)

    def _came_out(self, run: Run, name: str, result: AbortResult) -> None:
        run.stopped = run.stopped or result == "ok"
        self._tell(run, name, result)

"""Stopping a run: what is asked, in which order, how often, and what became of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, cast

from otel_loopguard.abort.cancel_task import RootTask
from otel_loopguard.abort.hooks import (
    IN_HOOK,
    AbortHook,
    AbortRequest,
    AbortResult,
    Outcome,
    deliver,
    name_of,
)
from otel_loopguard.forks import renew_in_children
from otel_loopguard.options.errors import wrong
from otel_loopguard.options.kinds import BUILT_IN, BuiltIn
from otel_loopguard.runs import Run
from otel_loopguard.steps import SpanKey, StepKind

Word: TypeAlias = AbortResult | Literal["asked"]
"""What is told of a stop: that it is asked for, then what became of it."""

_PATIENCE = 3
"""Refused requests after which a run that keeps asking counts as one that goes on."""

_logger = logging.getLogger(__name__)


def checked(names: Iterable[BuiltIn]) -> frozenset[BuiltIn]:
    """Return the built-in stops that are named.

    Raises:
        PolicyError: if there is no such stop.

    """
    listed = cast("object", names)  # callers without a type checker may give anything
    is_some = isinstance(listed, Iterable) and not isinstance(listed, str)
    chosen = tuple(names) if is_some else None
    if chosen is None or any(name not in BUILT_IN for name in chosen):
        expected = f"a tuple of any of {', '.join(map(repr, BUILT_IN))}"
        raise wrong("abort", expected, names)
    return frozenset(chosen)


class Ladder:
    """Stops the runs of one guard.

    Every hook is asked once when a run trips. While steps still start after that, the hooks that
    failed are asked again, and the run's root task is cancelled; that of a run which hangs is too.

    Args:
        hooks: the user's, in the order in which they are asked.
        built_in: the built-in stops that are in use.
        timeout_s: seconds that one call of a hook may take.
        tell: told of each attempt, when it is made and what became of it: the run, what is to stop
            it, and `asked` or the result.

    """

    def __init__(
        self,
        hooks: tuple[AbortHook, ...],
        built_in: frozenset[BuiltIn],
        *,
        timeout_s: float,
        tell: Callable[[Run, str, Word], object],
    ) -> None:
        self.built_in = built_in
        self._hooks = hooks
        self._timeout_s = timeout_s
        self._tell = tell
        self._lock = threading.RLock()
        renew_in_children(self, "_lock")

    @property
    def names(self) -> tuple[str, ...]:
        """What can stop a run here, as metrics call it."""
        return (*(sorted(self.built_in)), *(name_of(hook) for hook in self._hooks))

    def tripped(self, run: Run) -> None:
        """Arm the gate, and ask every hook to stop the run."""
        if "gate" in self.built_in:
            self._say_once(run, "gate", "asked")
        self._ask(run, self._hooks)

    def went_on(self, run: Run, *, ran: bool) -> None:
        """Hear that a step started although the run had tripped, and whether it happened."""
        with self._lock:
            unheard = [(outcome, outcome.at_last()) for outcome in _unheard(run)]
            run.unheard = tuple(outcome for outcome, result in unheard if result is None)
        self._ask(run, [outcome.hook for outcome, result in unheard if result not in (None, "ok")])
        # One that did not happen has raised: the run ends, unless it has been told before.
        if run.has_refused_calls or run.escaped or (ran and "gate" not in self.built_in):
            self._cancel(run)

    def hung(self, run: Run) -> None:
        """Hear that nothing happens any more in a run that has tripped, so nothing is refused."""
        self._cancel(run)

    def refused(self, run: Run, times: int, *, by: BuiltIn = "gate") -> None:
        """Hear that a model request of the run was refused, for the `times`-th time."""
        self._delivered(run, by)
        if times > _PATIENCE:
            self.went_on(run, ran=False)

    def kept(self, run: Run, kind: StepKind, by: BuiltIn) -> None:
        """Hear that a step was kept from happening, and by what."""
        with self._lock:
            run.vetoed_steps += 1
            run.vetoed_calls += kind == "llm"
        self._delivered(run, by)

    def _cancel(self, run: Run) -> None:
        task = run.slot.task
        if "cancel" not in self.built_in or task is None:
            return
        if run.gives_way and not task.is_current:
            return  # another loop may go on in there
        self._say_once(run, "cancel", "asked")

        def wanted() -> bool:  # the task may have gone on to something else
            return run.slot.task is task and not run.ended

        if not task.cancel(wanted, lambda: self._say_once(run, "cancel", "ok")):
            self._say_once(run, "cancel", "failed")

    def _ask(self, run: Run, hooks: Sequence[AbortHook]) -> None:
        if not hooks or run.trip is None or IN_HOOK.get():  # else there may be no end of it
            return
        with self._lock:
            run.attempts += 1
        top, task = run.top, run.slot.task
        request = AbortRequest(
            run_id=run.id,
            violation=run.trip,
            report=run.report(),
            attempt=run.attempts,
            run_span=None if top is None else SpanKey(top.trace_id, top.span_id),
            id=run.tripped.stop_id,
            timeout_s=self._timeout_s,
        )
        deliver(
            self._asking(run, hooks),
            request,
            timeout_s=self._timeout_s,
            loop=task.loop if isinstance(task, RootTask) else None,
            tell=lambda outcome: self._told(run, outcome),
        )

    def _asking(self, run: Run, hooks: Sequence[AbortHook]) -> Iterator[AbortHook]:
        for hook in hooks:
            self._tell(run, name_of(hook), "asked")
            yield hook

    def _told(self, run: Run, outcome: Outcome) -> None:
        if outcome.result != "ok":
            with self._lock:
                run.unheard = (*run.unheard, outcome)
            why = f"raised {outcome.error!r}" if outcome.error else f"took over {self._timeout_s} s"
            _logger.warning("abort hook %s %s (run %s)", outcome.name, why, run.id)
        run.heard = run.heard or outcome.result == "ok"
        self._tell(run, outcome.name, outcome.result)

    def _delivered(self, run: Run, stop: BuiltIn) -> None:
        """Tell that a built-in stop has reached a run; nobody had asked for all of them before."""
        self._say_once(run, stop, "asked")
        self._say_once(run, stop, "ok")

    def _say_once(self, run: Run, stop: BuiltIn, word: Word) -> None:
        """Tell of a built-in stop: it is asserted often, and told of once."""
        with self._lock:
            is_news = (stop, word) not in run.outcomes
            run.outcomes.add((stop, word))
        if is_news:
            self._tell(run, stop, word)


def _unheard(run: Run) -> tuple[Outcome, ...]:
    return cast("tuple[Outcome, ...]", run.unheard)

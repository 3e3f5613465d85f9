"""The context that a span starts in: whether the guard is told in there, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import baggage, trace

from otel_loopguard.registry import names
from otel_loopguard.run_finder import RunFinder
from otel_loopguard.slots import CURRENT, Slot

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span

    from otel_loopguard.runs import Run


class Surroundings:
    """Sees whether callbacks come in the context of the code that starts the spans.

    Those of a `ConcurrentMultiSpanProcessor` come in threads of a pool, whose contexts belong to
    nobody's run: what they hold is not believed. A parent that is not the current span shows it,
    one that is settles it for good.
    """

    __slots__ = ("__weakref__", "_runs", "settled")

    def __init__(self, runs: RunFinder) -> None:
        self._runs = runs
        self.settled = False
        """There is no need to look again."""

    def look(self, span: Span, context: Context | None) -> None:
        """Look at a span that starts; without a `context` its parent is the current span."""
        if span.parent is not None and context is None:
            current = trace.get_current_span().get_span_context()
            self.settled = current.span_id == span.parent.span_id
            self._runs.hears_in_context = self.settled

    def are_a_run(self) -> bool:
        """Say whether the calling code is in a run already that is more than a trace's root."""
        slot = CURRENT.get()
        with Slot.lock:
            in_block = slot is not None and slot.going_on() is not None
        return in_block or run_in_baggage(None) is not None or bool(self._around())

    def stopped(self) -> Run | None:
        """Return the run that the calling code is in, if we have stopped it."""
        return next((run for run in self._around() if run.is_stopped_by_us), None)

    def hold_a_run(self) -> bool:
        """Say whether the calling code is in a run, be it one that is no more than a trace's root.

        Spans that nobody makes current say nothing of that.
        """
        return self.are_a_run() or self._runs.at(_span_id()) is not None

    def agent(self) -> str:
        """Return the name of the agent that the calling code belongs to; empty if not known."""
        with self._runs.lock:
            node = self._runs.spans.get(_span_id())
            return "" if node is None else node.agent

    def runs(self) -> tuple[Run, ...]:
        """Return the open runs that the calling code is in, nearest first."""
        with self._runs.lock:
            run = self._runs.at(_span_id())
            return () if run is None or run.ended else (run, *run.around())

    def _around(self) -> tuple[Run, ...]:
        return self._runs.around(_span_id())


def _span_id() -> int:
    return trace.get_current_span().get_span_context().span_id


def run_in_baggage(context: Context | None) -> str | None:
    """Return the run that the baggage of a span's context names, as `guarded_run` would."""
    name = baggage.get_baggage(names.RUN_ID, context)
    return name if isinstance(name, str) and name else None

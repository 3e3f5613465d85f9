"""What the guards of a process say for a while, whoever made them, and the spans that they see."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor

from otel_loopguard.decisions import Decision, RunReport, Violation
from otel_loopguard.dialects import read_step
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.listeners import LISTENERS, Said
from otel_loopguard.live_spans import record_of
from otel_loopguard.steps import StepKind
from otel_loopguard.testing.run_tree import tree_of_engines, tree_of_spans
from otel_loopguard.testing.runs_heard import RunHeard, RunsHeard
from otel_loopguard.testing.span_tap import span_tap

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span
    from typing_extensions import Self

DECISIONS = 10_000
"""Decisions that are kept; past that the oldest is forgotten."""

SPANS = 4_096
"""Spans that are kept, ended ones and open ones each."""


class Observer:
    """Observes every guard of the process, and the spans of every provider, while it is entered.

        with Observer() as observer:
            agent.run("...")
        assert [violation.rule for violation in observer.violations] == ["repeated_result"]

    It hears guards that were there before, guards that come, and engines that a loop asks itself.
    It changes nothing about them. Everything that it keeps is bounded.

    Args:
        contents: whether trees show arguments, results and answers, in place of fingerprints.

    """

    def __init__(self, *, contents: bool = False) -> None:
        self.contents = contents
        self.models: list[object] = []
        """The scripted models that are known to be at work, besides those that are named."""
        self.heard = 0
        """How many things were heard: a mark for `since`."""
        self._decisions: deque[Decision] = deque(maxlen=DECISIONS)
        self._runs = RunsHeard()
        self._open: OrderedDict[int, ReadableSpan] = OrderedDict()
        self._ended: deque[tuple[int, ReadableSpan]] = deque(maxlen=SPANS)
        self._lock = threading.RLock()  # the garbage collector may end a span meanwhile
        self._hear = self._take_said  # one method, to be found again
        self._seen = _Seen(self._take_span)

    def __enter__(self) -> Self:
        """Begin to listen."""
        LISTENERS.append(self._hear)
        span_tap().open(self._seen)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Listen no more; what was heard stays."""
        LISTENERS.remove(self._hear)
        span_tap().close(self._seen)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The latest 10,000 decisions, oldest first: two for each step that started and ended."""
        with self._lock:
            return tuple(self._decisions)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What was reported of all runs, run by run: each rule once per level and run."""
        return tuple(each for run in self.runs() for each in run.violations)

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """What became of the runs that have ended, and of those that a loop asks about itself."""
        reports = [run.report for run in self.runs()]
        return tuple(report for report in reports if report is not None)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The latest 4,096 spans that have ended, in the order of their ends."""
        return tuple(self.spans_since(0, ended_only=True))

    def runs(self, since: int = 0) -> list[RunHeard]:
        """Return the runs that guards have spoken of, after so many things were heard."""
        with self._lock:
            return self._runs.since(since)

    def spans_since(self, since: int, *, ended_only: bool = False) -> list[ReadableSpan]:
        """Return the spans that have ended after so many things were heard, and open ones."""
        with self._lock:
            ended = [span for at, span in self._ended if at > since]
            return ended if ended_only else [*ended, *self._open.values()]

    def spans_of(self, since: int, kind: StepKind) -> int | None:
        """Count the spans that show such steps; `None` where there is none."""
        dialects = chosen(None)
        steps = [read_step(record_of(span), dialects) for span in self.spans_since(since)]
        return sum(1 for step in steps if step is not None and step.kind == kind) or None

    def tree(self, since: int = 0) -> str:
        """Return what happened as a tree: agents, model calls and tool calls, repetitions folded.

        Drawn from spans; from what engines were asked where there are none.
        """
        runs = self.runs(since)
        offenders = _offenders(runs)
        drawn = tree_of_spans(self.spans_since(since), offenders, contents=self.contents)
        if drawn and len(self._ended) == SPANS:
            drawn = f"(of the latest {SPANS:,} spans)\n{drawn}"
        return drawn or tree_of_engines(runs, contents=self.contents)

    def _take_said(self, said: Said) -> None:
        with self._lock:
            self.heard += 1
            self._runs.take(said, self.heard)
            if said.decision is not None:
                self._decisions.append(said.decision)

    def _take_span(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        span_id = 0 if context is None else context.span_id
        with self._lock:
            self.heard += 1
            if span.end_time is None:
                self._open[span_id] = span
                if len(self._open) > SPANS:
                    self._open.popitem(last=False)
            else:
                self._open.pop(span_id, None)
                self._ended.append((self.heard, span))


class _Seen(SpanProcessor):
    """Sees the spans. Nothing ever leaves it."""

    def __init__(self, take: Callable[[ReadableSpan], object]) -> None:
        self._take = take

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 -- the SDK's
        with suppress(Exception):  # telemetry must never break the application
            self._take(span)

    def on_end(self, span: ReadableSpan) -> None:
        with suppress(Exception):  # nor here
            self._take(span)


def _offenders(runs: Iterable[RunHeard]) -> dict[int, Violation]:
    """Return the trips by the ids of the spans that they were found at."""
    trips = [run.trip for run in runs]
    return {trip.span.span_id: trip for trip in trips if trip is not None and trip.span is not None}

"""Recordings, played through the guard: as if they happened now, or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import Context
from functools import cache
from typing import NamedTuple

from otel_loopguard.agent_totals import AgentTotals
from otel_loopguard.decisions import RunReport
from otel_loopguard.policy import Policy
from otel_loopguard.replay.span_order import in_order
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import SpanKey, Step
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict
from tests._recordings import Recording, Truth

Feed = Iterable[tuple[SpanRecord, bool]]
"""Spans, and whether each ends."""


class Found(NamedTuple):
    """A violation as far as live and recorded spans must agree."""

    rule: str
    action: str
    tool: str
    times: float
    threshold: float
    span: SpanKey | None


class Played(NamedTuple):
    """What the guard made of a recording."""

    reports: tuple[RunReport, ...]
    steps: tuple[Step, ...]
    """Model and tool calls that came back, those known from messages among them."""
    calls_without_spans: int
    """Calls of tools that no span shows, as the gaps of the runs have them."""
    totals: AgentTotals
    """What was added up while the runs went on."""

    @property
    def counts(self) -> Truth:
        """Model requests and tool executions."""
        return Truth(
            sum(report.model_calls for report in self.reports),
            sum(report.tool_calls for report in self.reports),
        )

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens."""
        return (
            sum(report.input_tokens for report in self.reports),
            sum(report.output_tokens for report in self.reports),
        )

    @property
    def found(self) -> list[Found]:
        """Everything that was reported, sorted."""
        return sorted(
            Found(v.rule, v.action, v.tool, v.count, v.threshold, v.span)
            for report in self.reports
            for v in report.violations
        )

    @property
    def trips(self) -> frozenset[str]:
        """The rules that said stop."""
        return frozenset(found.rule for found in self.found if found.action == "abort")


@cache
def replayed(recording: Recording) -> Played:
    """Play the spans of a recording as those of a file."""
    ordered = in_order(recording.ended())
    return _played(RunTracker(Policy()), [(span, is_end) for span, is_end in ordered])


def live(recording: Recording, *, in_context: bool) -> Played:
    """Play the starts and ends of a recording as they happened, with what each start showed.

    All in one context, as in a plain program, or each in one of its own, as nowhere: then nothing
    but the spans themselves tells where they belong.
    """
    feed = [(event.record, not event.is_start) for event in recording.events()]
    tracker = RunTracker(Policy(), live=True)
    one = _empty_context()
    return _played(tracker, feed, lambda: one if in_context else _empty_context())


def _played(
    tracker: RunTracker, feed: Feed, context: Callable[[], Context] | None = None
) -> Played:
    runs: dict[Run, RunReport | None] = {}
    steps: list[Step] = []
    for span, is_end in feed:
        hear = tracker.ended if is_end else tracker.started
        verdict: Verdict | None = hear(span) if context is None else context().run(hear, span)
        if verdict is None:
            continue
        runs[verdict.run] = verdict.report
        steps += verdict.answered
        if is_end and verdict.step is not None and verdict.step.kind in {"llm", "tool"}:
            steps.append(verdict.step)
    for run, report in runs.items():
        runs[run] = tracker.runs.close(run) if report is None else report
    reports = tuple(report for report in runs.values() if report is not None)
    without_spans = sum(run.gaps.tool_span for run in runs)
    return Played(reports, tuple(steps), without_spans, tracker.runs.totals)


def _empty_context() -> Context:
    context = Context()
    context.run(CURRENT.set, None)
    return context

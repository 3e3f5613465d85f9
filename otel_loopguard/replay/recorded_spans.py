"""Recorded spans, played through the run tracker as if they happened now."""

from __future__ import annotations

from collections.abc import Iterable

from otel_loopguard.decisions import RunReport
from otel_loopguard.policy import Policy
from otel_loopguard.replay.results import ReplayedRun, replayed_violation
from otel_loopguard.replay.savings import Savings
from otel_loopguard.replay.span_order import in_order
from otel_loopguard.runs import Run
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RUNS, RunTracker


def replay_spans(records: Iterable[SpanRecord], policy: Policy, source: str) -> list[ReplayedRun]:
    """Play the spans of a file under `policy`, past every trip; runs in the order of their starts.

    A span in a file is complete: its arguments are taken as known when it starts.
    """
    tracker = RunTracker(policy)
    runs: dict[Run, Savings] = {}
    reports: dict[Run, RunReport] = {}
    going: dict[Run, None] = {}
    for span, is_end in in_order(records):
        verdict = tracker.ended(span) if is_end else tracker.started(span)
        if verdict is None:
            continue
        run = verdict.run
        if run not in runs:
            runs[run] = Savings()
            going[run] = None
        savings = runs[run]
        savings.tripped |= verdict.tripped
        if verdict.step is not None:
            play = savings.ended if is_end else savings.started
            play((span.trace_id, span.span_id), verdict.step)
        if verdict.report is not None:
            reports[run] = verdict.report
            going.pop(run, None)
        if len(going) >= RUNS:
            # The tracker is about to give up the oldest: its report is taken while there is one.
            oldest = next(iter(going))
            del going[oldest]
            reports[oldest] = tracker.close(oldest)
    reports.update({run: tracker.close(run) for run in going})
    return [_result(run.id, reports[run], savings, source) for run, savings in runs.items()]


def _result(run_id: str, report: RunReport, savings: Savings, source: str) -> ReplayedRun:
    return ReplayedRun(
        run_id=run_id,
        source=source,
        status=report.status,
        steps=report.steps,
        model_calls=report.model_calls,
        tool_calls=report.tool_calls,
        input_tokens=report.input_tokens,
        output_tokens=report.output_tokens,
        tripped=report.trip is not None,
        violations=tuple(replayed_violation(found, found.step) for found in report.violations),
        saved=savings.total(),
    )

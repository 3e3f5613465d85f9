"""Recorded spans, played through the run tracker as if they happened now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf, nextafter

from otel_loopguard.decisions import RunReport
from otel_loopguard.guard import LoopGuard
from otel_loopguard.open_runs import RUNS
from otel_loopguard.policy import Policy
from otel_loopguard.replay.results import PlayedRun, ReplayedRun, replayed_violation
from otel_loopguard.replay.savings import Savings
from otel_loopguard.replay.span_order import in_order
from otel_loopguard.runs import Run
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

_NANOSECONDS = 1e9


def replay_spans(records: Iterable[SpanRecord], policy: Policy, source: str) -> list[ReplayedRun]:
    """Play the spans of a file under `policy`, past every trip; runs in the order of their starts.

    A span in a file is complete: its arguments are taken as known when it starts.
    """
    return [played.run for played in play_spans(records, policy, source)]


def play_spans(
    records: Iterable[SpanRecord],
    policy: Policy,
    source: str,
    listen: Callable[[str], LoopGuard] | None = None,
) -> list[PlayedRun]:
    """Play the spans of a file as `replay_spans` does; cost and duration come with each run.

    `listen` makes, for the run of an id, a guard that is told of the same steps. It has no say.
    """
    play = _Play(policy, listen)
    for span, is_end in in_order(records):
        at_ns = max(span.ended_ns or 0, span.started_ns) if is_end else span.started_ns
        play.wait(at_ns / _NANOSECONDS)
        play.hear(span, is_end=is_end)
    return [_result(run, report, savings, source) for run, report, savings in play.over()]


class _Play:
    """The spans of one file, while they are played on the recording's own time line."""

    def __init__(self, policy: Policy, listen: Callable[[str], LoopGuard] | None) -> None:
        self._tracker = RunTracker(policy)
        self._usage = policy.settings.usage
        self._timed = policy.settings.is_timed
        self._listen = listen
        self._listeners: dict[Run, LoopGuard] = {}
        self._savings: dict[Run, Savings] = {}
        self._reports: dict[Run, RunReport] = {}
        self._going: dict[Run, None] = {}
        self._due_s = inf
        """Until then no limit on time is reached."""

    def wait(self, until_s: float) -> None:
        """Let time pass; the limits on time are asked whenever one is due."""
        if self._due_s >= until_s:
            return
        self._due_s = inf
        for run in self._going:
            due_s = run.due_s()
            if due_s is not None and due_s < until_s:
                # The sum of large times may be rounded to a moment that is not late yet.
                for at_s in (due_s, nextafter(due_s, inf)):
                    verdict = self._tracker.tick(run, at_s)
                    self._savings[run].tripped |= verdict is not None and verdict.tripped
                due_s = run.due_s()
            self._due_s = min(self._due_s, inf if due_s is None else due_s)

    def hear(self, span: SpanRecord, *, is_end: bool) -> None:
        """Let a span start or end."""
        verdict = self._tracker.ended(span) if is_end else self._tracker.started(span)
        if verdict is None:
            return
        run = verdict.run
        if run not in self._savings:
            self._savings[run] = Savings(self._usage)
            self._going[run] = None
        savings = self._savings[run]
        savings.tripped |= verdict.tripped
        self._tell_of_spanless(run, verdict)
        if verdict.step is not None:
            play = savings.ended if is_end else savings.started
            play((span.trace_id, span.span_id), verdict.step)
            self._tell_listener(run, verdict.step, is_end=is_end)
        if verdict.report is not None:
            self._reports[run] = verdict.report
            self._going.pop(run, None)
            self._listeners.pop(run, None)
        due_s = run.due_s() if self._timed else None
        self._due_s = min(self._due_s, inf if due_s is None else due_s)
        if len(self._going) >= RUNS:
            # The tracker is about to give up the oldest: its report is taken while there is one.
            self._close(next(iter(self._going)))

    def over(self) -> Iterator[tuple[Run, RunReport, Savings]]:
        """End the runs that go on, and yield all runs in the order of their starts."""
        for run in tuple(self._going):
            self._close(run)
        for run, savings in self._savings.items():
            yield run, self._reports[run], savings

    def _tell_listener(self, run: Run, step: Step, *, is_end: bool) -> None:
        if self._listen is None:
            return
        if run not in self._listeners:
            self._listeners[run] = self._listen(run.id)
        if is_end:
            self._listeners[run].record(step)
        else:
            self._listeners[run].check(step, commit=True)

    def _tell_of_spanless(self, run: Run, verdict: Verdict) -> None:
        for step in verdict.called:
            self._tell_listener(run, step, is_end=False)
        for step in verdict.answered:
            self._tell_listener(run, step, is_end=True)

    def _close(self, run: Run) -> None:
        del self._going[run]
        self._listeners.pop(run, None)
        self._reports[run] = self._tracker.runs.close(run)


def _result(run: Run, report: RunReport, savings: Savings, source: str) -> PlayedRun:
    replayed = ReplayedRun(
        run_id=run.id,
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
    return PlayedRun(
        run=replayed,
        cost_usd=savings.all_usd,
        saved_cost_usd=savings.saved_usd,
        duration_s=report.duration_s,
        agent=run.agent,
    )

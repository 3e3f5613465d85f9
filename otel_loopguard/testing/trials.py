"""One run that a test plays: what is expected of it, what came, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict

import msgspec

from otel_loopguard.abort.aborted import RunAborted, abort_of
from otel_loopguard.decisions import RunReport, Violation
from otel_loopguard.testing import counted
from otel_loopguard.testing.outside import seen_from_outside
from otel_loopguard.testing.run_to_end import RunEnd
from otel_loopguard.testing.runs_heard import distinct, outermost
from otel_loopguard.testing.stop_raised import (
    is_failure_of_handler,
    is_outcome,
    is_stop,
    rule_of,
    stops_in,
)
from otel_loopguard.testing.to_check import things_to_check, time_to_check

if TYPE_CHECKING:
    from otel_loopguard.testing.observer import Observer
    from otel_loopguard.testing.runs_heard import RunHeard


TIMEOUT_S = 2.0
"""Seconds that a run is given, unless it is said otherwise."""


class Expectations(TypedDict, total=False):
    """What a run is to come to. What is not said is not looked at.

    `model_calls` and `tool_executions` are exact counts: as the model and the tools have them where
    they are given, else as the guard has them. `rule` is the one that stops the run. `model` is the
    scripted model, in process or as a server: it is told to refuse when the time is over, so that
    a runaway ends. `tools` are recording tools. `timeout` is in seconds; with `None` there is no
    limit, and a plain function is called in the calling thread.
    """

    model_calls: int | None
    tool_executions: int | None
    rule: str | None
    model: object
    tools: Iterable[object]
    timeout: float | None


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is to come to; `None` is not looked at."""

    stops: bool
    rule: str | None = None
    model_calls: int | None = None
    tool_executions: int | None = None

    def __str__(self) -> str:
        """Say it in half a sentence."""
        by = self.rule or "its guard"
        end = f"stopped by {by}" if self.stops else "to end by itself"
        return " ".join((end, *_after(self.model_calls, self.tool_executions)))


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has come to."""

    stopped: bool
    rule: str | None
    status: str | None
    """That of the guard's report; `None` if no guard saw the run."""
    model_calls: int | None
    tool_executions: int | None
    seconds: float
    error: str | None
    """The type of what the run raised."""
    overdue: bool
    still_runs: bool = False
    """Nothing could end it."""
    guards_seen: int
    """Guards that have spoken of the run."""

    def __str__(self) -> str:
        """Say it in half a sentence."""
        if self.overdue:
            end = "still running" if self.still_runs else "ended from outside"
            counts = _after(self.model_calls, self.tool_executions)
            return ", ".join((f"{end} after {self.seconds:.1f} s", *counts))
        if self.stopped:
            end = f"stopped by {self.rule or 'a guard'}"
        else:
            end = f"{self.error} raised" if self.error else "ended by itself"
        return " ".join((end, *_after(self.model_calls, self.tool_executions)))


class Trial:
    """One run that a test plays.

    Args:
        observer: hears the guards meanwhile.
        expected: what the run is to come to.
        models: scripted ones, that count and can be told to refuse.
        tools: recording ones.
        timeout_s: when they are told to.

    """

    def __init__(
        self,
        observer: Observer,
        expected: Expected,
        models: Sequence[object],
        tools: Sequence[object],
        timeout_s: float | None,
    ) -> None:
        self.expected = expected
        self.models = models
        self.observed: Observed | None = None
        """What came, once the run has ended."""
        self._observer = observer
        self._tools = tools
        self._timeout_s = timeout_s
        self._since = observer.heard
        self._calls_before = [counted.calls_of(model) for model in models]
        self._executions_before = [counted.executions_of(tool) for tool in tools]
        self._results_before = counted.results_of(models)
        self._could_refuse = False

    def refuse(self) -> None:
        """Let the models answer no more: the time is over."""
        reason = f"the run has not been stopped within {self._timeout_s:g} s"
        self._could_refuse = counted.refuse(self.models, reason)

    def judge(self, end: RunEnd) -> RunReport | None:
        """Fail unless the run has come to what was expected; return the report of its stop."""
        __tracebackhide__ = True
        if is_outcome(end.error):
            raise end.error
        runs = self._observer.runs(self._since)
        report, stopped = _stop_of(end, runs)
        seen = [run.report for run in outermost(distinct(runs))]
        reports = [each for each in seen if each is not None] or ([report] if report else [])
        shown = report or (reports[-1] if reports else None)
        self.observed = observed = Observed(
            stopped=stopped and not end.is_overdue,
            rule=None if report is None else report.rule,
            status=None if shown is None else shown.status,
            model_calls=self._model_calls(reports),
            tool_executions=self._tool_executions(reports),
            seconds=end.seconds,
            error=None if end.error is None else type(end.error).__name__,
            overdue=end.is_overdue,
            still_runs=end.still_runs,
            guards_seen=len({id(run.guard) for run in runs}),
        )
        faults = list(self._faults(observed, end))
        if faults:
            raise AssertionError(self._text(faults, runs)) from _cause(end)
        return report

    def _faults(self, observed: Observed, end: RunEnd) -> Iterator[str]:
        expected = self.expected
        if end.is_overdue:
            yield f"the run was still going after {self._timeout_s:g} s"
            if not self._could_refuse:
                yield "no model could be told to refuse: give model=, a scripted one"
            if end.still_runs:
                yield "it still runs, in a thread or task that nothing reaches"
        elif expected.stops and not observed.stopped:
            yield "the run was not stopped by a guard"
        elif not expected.stops and observed.stopped:
            yield f"the run was stopped by {observed.rule}"
        elif end.error is not None and (not expected.stops or is_failure_of_handler(end.error)):
            yield f"the run raised {end.error!r}"
        if observed.stopped and expected.rule not in (None, observed.rule):
            yield f"it was stopped by {observed.rule}, not by {expected.rule}"
        yield from _difference("model calls", expected.model_calls, observed.model_calls)
        yield from _difference(
            "tool executions", expected.tool_executions, observed.tool_executions
        )

    def _text(self, faults: Sequence[str], runs: Sequence[RunHeard]) -> str:
        tree = self._observer.tree(self._since) or seen_from_outside(
            [*zip(self.models, self._calls(), strict=True)],
            [*zip(self._tools, self._executions(), strict=True)],
            contents=self._observer.contents,
        )
        found = [violation for run in runs for violation in run.violations]
        parts = [
            "; ".join(faults),
            f"expected: {self.expected}",
            f"came:     {self.observed}",
            "",
            tree,
            *(["", *map(_evidence, found)] if found else ()),
        ]
        checks = list(self._checks(runs))
        parts += ["", *(f"check: {each}" for each in checks)] if checks else []
        return "\n".join(parts)

    def _checks(self, runs: Sequence[RunHeard]) -> Iterator[str]:
        if self.expected.stops:
            yield from things_to_check(runs, self._observer.spans_since(self._since))
        if self.observed is not None and self.observed.overdue and self._timeout_s is not None:
            yield time_to_check(self._timeout_s)

    def _calls(self) -> list[int]:
        before = zip(self.models, self._calls_before, strict=True)
        return [counted.calls_of(model) - already for model, already in before]

    def _executions(self) -> list[int]:
        before = zip(self._tools, self._executions_before, strict=True)
        return [counted.executions_of(tool) - already for tool, already in before]

    def _model_calls(self, reports: Sequence[RunReport]) -> int | None:
        if self.models:
            return sum(self._calls())
        if reports:
            return sum(report.model_calls for report in reports)
        return self._observer.spans_of(self._since, "llm")

    def _tool_executions(self, reports: Sequence[RunReport]) -> int | None:
        if self._tools:
            return sum(self._executions())
        if reports:
            return sum(report.tool_calls for report in reports)
        shown = self._observer.spans_of(self._since, "tool")
        came = counted.results_of(self.models)
        before = self._results_before
        # Spans may tell of what no server was shown.
        seen = None if came is None or before is None else came - before
        return seen or shown or seen


def _stop_of(end: RunEnd, runs: Sequence[RunHeard]) -> tuple[RunReport | None, bool]:
    """Return the report of the stop, and whether there was one."""
    raised = (stop for stop in stops_in(end.error) if isinstance(stop, RunAborted))
    aborted = next(raised, None) or _aborted_in(end.value)
    stopped = [run for run in runs if run.was_stopped]
    heard = [run.report for run in stopped if run.report is not None]
    if aborted is not None:
        same = [report for report in heard if report.rule == aborted.report.rule]
        return (same or [aborted.report])[-1], True  # the final one says more
    if heard:
        return heard[-1], True
    named = {rule_of(stop) for stop in stops_in(end.error)}  # a loop's own: nothing else was said
    tripped = [run.report for run in runs if run.trip is not None and run.trip.rule in named]
    return next((report for report in reversed(tripped) if report), None), bool(named)


def _aborted_in(value: object) -> RunAborted | None:
    """Return the stop that a run hands back in place of raising it, as `run_agent` does."""
    aborted: object = value if isinstance(value, BaseException) else getattr(value, "aborted", None)
    return abort_of(aborted) if isinstance(aborted, BaseException) else None


def _cause(end: RunEnd) -> BaseException | None:
    """Return what the run raised, if that is news."""
    return None if end.is_overdue or is_stop(end.error) else end.error


def _difference(what: str, expected: int | None, came: int | None) -> Iterator[str]:
    if expected is not None and came is None:
        yield f"{what} cannot be counted: no guard saw the run; give model= and tools="
    elif expected is not None and expected != came:
        yield f"{came:,} {what}, not {expected:,}"


def _after(model_calls: int | None, tool_executions: int | None) -> Iterator[str]:
    counts = (("model call", model_calls), ("tool execution", tool_executions))
    said = [f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counts if n is not None]
    if said:
        yield f"after {' and '.join(said)}"


def _evidence(violation: Violation) -> str:
    where = "" if violation.span is None else f", span {violation.span.span_id:016x}"
    return f"{violation.message}{where}"

"""Tool calls that have no span: a run's guard is asked about them when a model's shows them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.runs import Run
from otel_loopguard.steps import ModelInput, Step


class SpanlessCalls:
    """What one span shows of such calls of its run, and what the guard says of them."""

    __slots__ = ("_refusal", "_run", "_violations", "answered", "called", "tripped")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._refusal: Violation | None = None
        self._violations: tuple[Violation, ...] = ()
        self.called: tuple[Step, ...] = ()
        """Those that turned out to have happened."""
        self.answered: tuple[Step, ...] = ()
        """Those that have come back."""
        self.tripped = False

    def happened(self, steps: Iterable[Step], at_s: float | None) -> None:
        """Count calls that have happened, as of `at_s` seconds; `None` for now."""
        for step in steps:
            called = msgspec.structs.replace(step, started_s=at_s)
            self.called += (called,)
            self._take(self._run.guard.check(called, commit=True))

    def came_back(
        self, steps: Iterable[Step], given: ModelInput | None, at_s: float | None
    ) -> None:
        """Record calls with what the model was told of them, as far as that is known."""
        waiting = tuple(steps)
        for step, result in zip(waiting, _results(waiting, given), strict=True):
            answered = msgspec.structs.replace(step, result=result, ended_s=at_s)
            self.answered += (answered,)
            self._run.gaps.take(answered)
            self._take(self._run.guard.record(answered))

    def with_them(self, decision: Decision) -> Decision:
        """Return a decision on the span's own step with what was said of these calls."""
        if not self._violations and self._refusal is None:
            return decision
        return msgspec.structs.replace(
            decision,
            allowed=decision.allowed and self._refusal is None,
            refusal=decision.refusal or self._refusal,
            violations=self._violations + decision.violations,
        )

    def _take(self, decision: Decision) -> None:
        self._violations += decision.violations
        self._refusal = self._refusal or decision.refusal
        self.tripped = self._run.trips_by(decision) or self.tripped


def _results(steps: tuple[Step, ...], given: ModelInput | None) -> list[object]:
    """Return what each call has come to: by its id, else by its place.

    OpenLLMetry's spans of the Responses API name calls by other ids than their answers do.
    """
    answers = () if given is None else given.answers
    by_id = {answer.call_id: answer.result for answer in answers}
    if len(answers) == len(steps) and not any(step.call_id in by_id for step in steps):
        return [answer.result for answer in answers]
    return [by_id.get(step.call_id or "", UNKNOWN) for step in steps]

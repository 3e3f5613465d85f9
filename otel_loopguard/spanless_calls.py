"""Tool calls that have no span: a run's guard is asked about them when a model's shows them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step
from otel_loopguard.verdicts import Verdict


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

    def answer(self, steps: Iterable[Step], at_s: float | None) -> None:
        """Count calls that were made and came back before `at_s` seconds; `None` for now."""
        for step in steps:
            asked = msgspec.structs.replace(step, result=UNKNOWN, started_s=at_s)
            answered = msgspec.structs.replace(step, ended_s=at_s)
            self._ask(asked)
            self.answered += (answered,)
            self._run.gaps.take(answered)
            self._take(self._run.guard.record(answered))

    def call(self, steps: Iterable[Step], at_s: float | None) -> None:
        """Count calls that were made; what they came to is not shown."""
        for step in steps:
            called = msgspec.structs.replace(step, started_s=at_s)
            self._ask(called)
            self._run.gaps.take(called)

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

    def verdict(
        self,
        node: Node,
        step: Step,
        decision: Decision,
        *,
        opened: bool,
        went_on: bool = False,
        ran_on: bool = False,
    ) -> Verdict:
        """Return what the span and these calls meant for their run, and count what ran on."""
        trips = self._run.trips_by(decision)
        self._run.steps_after_trip += ran_on
        return Verdict(
            self._run,
            node,
            step,
            self.with_them(decision),
            opened,
            self.tripped or trips,
            went_on,
            ran_on,
            called=self.called,
            answered=self.answered,
        )

    def _ask(self, called: Step) -> None:
        self.called += (called,)
        self._take(self._run.guard.check(called, commit=True))

    def _take(self, decision: Decision) -> None:
        self._violations += decision.violations
        self._refusal = self._refusal or decision.refusal
        self.tripped = self._run.trips_by(decision) or self.tripped

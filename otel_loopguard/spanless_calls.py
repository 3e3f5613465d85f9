"""Tool calls that have no span: a run's guard is asked about them when a model's shows them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.hearing import Hearing
from otel_loopguard.steps import Step
from otel_loopguard.verdicts import Verdict


class SpanlessCalls:
    """What one span shows of such calls of its run."""

    __slots__ = ("_hearing", "answered", "called")

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self.called: tuple[Step, ...] = ()
        """Those that turned out to have happened."""
        self.answered: tuple[Step, ...] = ()
        """Those that have come back."""

    def answer(self, steps: Iterable[Step], at_s: float | None) -> None:
        """Count calls that were made and came back before `at_s` seconds; `None` for now."""
        for step in steps:
            asked = msgspec.structs.replace(step, result=UNKNOWN, started_s=at_s)
            answered = msgspec.structs.replace(step, ended_s=at_s)
            self._ask(asked)
            self.answered += (answered,)
            self._hearing.run.gaps.take(answered)
            self._hearing.record(answered)

    def call(self, steps: Iterable[Step], at_s: float | None) -> None:
        """Count calls that were made; what they came to is not shown."""
        for step in steps:
            called = msgspec.structs.replace(step, started_s=at_s)
            self._ask(called)
            self._hearing.run.gaps.take(called)

    def with_them(self, verdict: Verdict) -> Verdict:
        """Return a verdict on the span's own step that tells of these calls too."""
        if not self.called:
            return verdict
        return msgspec.structs.replace(verdict, called=self.called, answered=self.answered)

    def _ask(self, called: Step) -> None:
        self.called += (called,)
        self._hearing.count(called)

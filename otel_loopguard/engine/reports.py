"""What a run has reported: each rule once for each level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from otel_loopguard.decisions import Violation
from otel_loopguard.detectors import RULES, Facts
from otel_loopguard.engine.open_steps import OpenStep

Found: TypeAlias = tuple[Violation | None, tuple[Violation, ...]]
"""The first violation that says stop, and the violations that the run has not reported yet."""

NOTHING: Found = (None, ())

Begun: TypeAlias = tuple[OpenStep, Facts, "Violation | None", tuple[Violation, ...]]
"""A step that may be about to happen, what is known of it, and what the rules say about it."""


class Reports:
    """The violations that a run has reported. There are at most two for each rule."""

    __slots__ = ("_reported", "due")

    def __init__(self) -> None:
        self._reported: dict[tuple[str, str], Violation] = {}
        self.due: Violation | None = None
        """What would have stopped the run, had its last turn not finished it."""

    def put_off(self, violations: Sequence[Violation], *, acts: bool) -> None:
        """Keep what is due if the run goes on after all.

        Rules, other than limits, wait for agents that act: models that are asked about one thing
        after another finish every turn, and may well say the same.
        """
        stops = (v for v in violations if v.action == "abort" and (acts or v.rule not in RULES))
        self.due = next(stops, self.due)

    def due_at(self, opened: OpenStep) -> Violation | None:
        """Return what is due as a violation of a step that starts; agents are no steps."""
        if self.due is None or opened.kind == "agent":
            return None
        tool = opened.name if opened.kind == "tool" else ""
        return msgspec.structs.replace(
            self.due,
            phase="pre",
            step=opened.number,
            kind=opened.kind,
            tool=tool,
            agent=opened.agent,
            span=opened.span,
        )

    def told(self, violations: Sequence[Violation]) -> Found:
        """Say what is news of these; a warning after an abort of the same rule is none."""
        told = self._reported
        refusal = next((v for v in violations if v.action == "abort"), None)
        news: dict[tuple[str, str], Violation] = {}
        for violation in violations:
            key = violation.rule, violation.action
            if key not in told and (violation.rule, "abort") not in told:
                news.setdefault(key, violation)
        return refusal, tuple(news.values())

    def note(self, news: Iterable[Violation]) -> None:
        """Keep what is reported, so that it is not reported again."""
        for violation in news:
            self._reported[violation.rule, violation.action] = violation

    def all(self) -> tuple[Violation, ...]:
        """Return all of them, in the order in which they were reported."""
        return tuple(self._reported.values())

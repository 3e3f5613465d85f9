"""What a run has reported: each rule once for each level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from otel_loopguard.decisions import Violation

Found: TypeAlias = tuple[Violation | None, tuple[Violation, ...]]
"""The first violation that says stop, and the violations that the run has not reported yet."""

NOTHING: Found = (None, ())


class Reports:
    """The violations that a run has reported. There are at most two for each rule."""

    __slots__ = ("_reported",)

    def __init__(self) -> None:
        self._reported: dict[tuple[str, str], Violation] = {}

    def told(self, violations: Sequence[Violation]) -> Found:
        """Say what is news of these; a warning after an abort of the same rule is none."""
        told = self._reported
        refusal = next((v for v in violations if v.action == "abort"), None)
        news = (v for v in violations if (v.rule, "abort") not in told)
        return refusal, tuple(v for v in news if (v.rule, v.action) not in told)

    def note(self, news: Iterable[Violation]) -> None:
        """Keep what is reported, so that it is not reported again."""
        for violation in news:
            self._reported[violation.rule, violation.action] = violation

    def all(self) -> tuple[Violation, ...]:
        """Return all of them, in the order in which they were reported."""
        return tuple(self._reported.values())

"""What a run's models are to be told before it is too late: once for each rule on repetition."""

from __future__ import annotations

from otel_loopguard.decisions import Violation

_SILENT = frozenset(("extra_turn", "truncated_turns"))
"""Rules of which a hint would say nothing that a model could act upon."""


class Hints:
    """The warnings of one run of which its models have not been told."""

    __slots__ = ("_told", "_waiting")

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._waiting: list[Violation] = []

    def note(self, violation: Violation) -> None:
        """Take in a violation: each rule is told of once."""
        is_about_repetition = violation.is_pattern and violation.rule not in _SILENT
        is_news = violation.action == "warn" and violation.rule not in self._told
        if is_about_repetition and is_news:
            self._told.add(violation.rule)
            self._waiting.append(violation)

    def take(self, agent: str) -> Violation | None:
        """Return what the model of an agent is to be told now, if anything; `""` is any agent."""
        for violation in self._waiting:
            if not agent or violation.agent in ("", agent):
                self._waiting.remove(violation)
                return violation
        return None

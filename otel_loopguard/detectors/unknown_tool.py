"""Calls of a tool that does not exist, or whose arguments nobody can read."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind


class UnknownTool:
    """Calls of a tool that does not exist, or whose arguments nobody can read.

    What it sees
        Failed calls of one agent in a row of tools that were not offered, or with arguments that
        are meant to be JSON and are not. A call that succeeds ends the row, one of a known tool
        that fails does not. Different calls that one response asked for count once.
    Why it matters
        A model that makes up a tool makes up another when it is told so; neither the calls nor the
        errors need be equal. The recorded runs do not say what was offered; the thresholds follow
        reports.
    What it does not see
        Made-up tools where the offered ones are not recorded and the host answers without an error.
    """

    rule: ClassVar[str] = "unknown_tool"
    reason: ClassVar[str] = "UNKNOWN_TOOL_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_batch", "_call", "_count", "_thresholds")

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._count = 0
        self._call: int | None = None
        self._batch: int | None = None

    @classmethod
    def of(cls, settings: Settings, /) -> UnknownTool | None:
        """Make it if the rule can speak."""
        if settings.lowest(cls.rule) == inf:
            return None
        return cls(settings.rules.get(cls.rule) or Thresholds())

    @property
    def rests(self) -> bool:
        """Whether there is no row that a success could end."""
        return not self._count

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call with the ones before it."""
        if not facts.failed or not facts.unknown_tool:
            return None
        count = self._count_with(facts)
        return judge(self.rule, self._thresholds, facts, count, count - 1)

    def commit(self, facts: Facts, /) -> None:
        """Add the call to the row, or end it."""
        if not facts.failed:
            self._count, self._batch = 0, None
        elif facts.unknown_tool:
            self._count = self._count_with(facts)
            self._call, self._batch = facts.call, facts.batch

    def _count_with(self, facts: Facts) -> int:
        same = facts.call is not None and facts.call == self._call
        together = not same and facts.batch is not None and facts.batch == self._batch
        return self._count if together else self._count + 1

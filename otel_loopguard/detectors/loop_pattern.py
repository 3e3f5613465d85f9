"""The last calls are one pattern over and over, whatever comes back."""

from __future__ import annotations

from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach
from otel_loopguard.detectors._periods import Periods
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class LoopPattern:
    """The last calls are one pattern over and over, whatever comes back.

    What it sees
        The last W tool calls of one agent (`loop_pattern_window=W`), if they are at least two full
        periods of some length up to W / 2. A partial last period is allowed, so a window of 8 finds
        a cycle of 3. Model turns are no part of the pattern.
    Why it matters
        It finds a cycle within one window, with names and arguments alone.
    What it does not see
        Results: checks that alternate for a reason look the same. `cyclic_calls` asks for them.
    """

    rule: ClassVar[str] = "loop_pattern"
    reason: ClassVar[str] = "LOOP_PATTERN_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "call"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_periods", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        self._periods = Periods(window // 2)

    @classmethod
    def of(cls, settings: Settings, /) -> LoopPattern | None:
        """Make it if `loop_pattern_window` is set."""
        window = settings.limits.loop_pattern_window
        return None if window is None else cls(window)

    def check(self, facts: Facts, /) -> Finding | None:
        """Look whether some period would fill the window with this call."""
        if facts.call is None:
            return None
        window = self._window
        for period, matched in self._periods.matched_with(facts.call).items():
            if matched >= window - period:
                return Finding("abort", window, window, wasted_steps=window - period)
        return None

    def commit(self, facts: Facts, /) -> None:
        """Add the call."""
        self._periods.push(facts.call)

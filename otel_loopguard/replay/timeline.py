"""The virtual time line of a steps file: when each step of a run started and ended.

A step starts when the one before it has ended, after its own gap; the steps of one batch start
together; the steps of an agent that a step `contains` start inside that step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

_DIGITS = 9
"""Times are rounded to nanoseconds: six hundred tenths of a second are a minute."""


class Duration(msgspec.Struct, frozen=True, kw_only=True):
    """What a steps file says about the time of one step. All times are seconds."""

    dt_s: float = 0.0
    gap_s: float = 0.0
    """Idle time before the step."""
    advance_s: float = 0.0
    """Time that passes after the step."""
    batch: str | None = None
    agent: str = ""
    contains: frozenset[str] = frozenset()
    """The agents whose following steps happen inside this one."""
    whole: bool = False
    """All steps of the run happen inside this one, wherever it is written."""
    ended: bool = True


class Moment(NamedTuple):
    """The start or the end of a step; moments are in the order in which they happen."""

    at_s: float
    turn: int
    """Number of the batch (a step without one is a batch of its own)."""
    is_end: bool
    position: int
    """Which step, from 0."""

    @classmethod
    def start(cls, at_s: float, turn: int, position: int) -> Moment:
        """Return the start of a step."""
        return cls(at_s, turn, is_end=False, position=position)

    @classmethod
    def end(cls, at_s: float, turn: int, position: int) -> Moment:
        """Return the end of a step."""
        return cls(at_s, turn, is_end=True, position=position)


class _Open(NamedTuple):
    """A step that contains others and has not been closed."""

    position: int
    turn: int
    agents: frozenset[str]
    ended_s: float


def laid_out(durations: Sequence[Duration]) -> tuple[list[Moment], float]:
    """Return the starts and ends of the steps in the order in which they happen, from time 0.

    With them comes when the recorded time is over: time may pass after the last of them. A step
    that never ends has no end here. At equal times, a step of an earlier batch ends before
    one of a later batch starts, and all steps of one batch start before the first of them ends.
    """
    line = _TimeLine()
    for position, duration in enumerate(durations):
        line.add(position, duration)
    line.close()
    # The sort is stable: what contains others was closed, and so noted, after them.
    return sorted(line.moments, key=lambda moment: moment[:3]), line.now_s


class _TimeLine:
    """The time line while it is being laid out."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.now_s = 0.0
        self._turn = 0
        self._batch: str | None = None
        self._batch_started = 0.0
        self._open: list[_Open] = []

    def add(self, position: int, duration: Duration) -> None:
        """Place the next step."""
        if duration.whole:
            self.moments.append(Moment.start(0.0, 0, position))
            self.now_s = max(self.now_s, duration.dt_s)
            self.moments.append(Moment.end(self.now_s, self._turn, position))
            self.now_s = round(self.now_s + duration.advance_s, _DIGITS)
            return
        joins = duration.batch is not None and duration.batch == self._batch
        if not joins:
            self._close_others(duration.agent)
            self._turn += 1
            self._batch = duration.batch
            self._batch_started = round(self.now_s + duration.gap_s, _DIGITS)
        started = self._batch_started
        ended = round(started + duration.dt_s, _DIGITS)
        self.moments.append(Moment.start(started, self._turn, position))
        if duration.contains:
            self._open.append(_Open(position, self._turn, duration.contains, ended))
            self.now_s = max(self.now_s, started)
        else:
            self.now_s = max(self.now_s, ended)
            if duration.ended:
                self.moments.append(Moment.end(ended, self._turn, position))
        self.now_s = round(self.now_s + duration.advance_s, _DIGITS)

    def close(self, after: int = 0) -> None:
        """End the containing steps that were opened after the first `after` ones."""
        kept, closing = self._open[:after], self._open[after:]
        self.now_s = max([self.now_s, *(opened.ended_s for opened in closing)])
        for opened in reversed(closing):
            ended = max(self.now_s, opened.ended_s)
            self.moments.append(Moment.end(ended, self._turn, opened.position))
        self._open = kept

    def _close_others(self, agent: str) -> None:
        """End the containing steps that the next step, of this agent, does not belong to."""
        holding = [n for n, opened in enumerate(self._open) if agent in opened.agents]
        if not holding:
            self.close()
            return
        turn = self._open[holding[-1]].turn
        last = max(n for n, opened in enumerate(self._open) if opened.turn == turn)
        self.close(after=last + 1)

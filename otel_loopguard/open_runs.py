"""The runs that go on, bounded: by number, and by age where perhaps no span will end them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from otel_loopguard.runs import Run

IDLE_S = 300.0
"""Seconds after which a run ends whose topmost span was never seen, if nothing happens in it."""

RUNS = 4_096
"""Runs known at a time; past that the oldest is ended."""

ROOTLESS = 1_024
"""Of these, runs that perhaps no span will end; past that the one is ended that is idle longest."""


class OpenRuns:
    """The runs of one tracker that have not ended, oldest first."""

    __slots__ = ("_clock", "_rootless", "_runs", "evicted")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        """Seconds; of a recording, where that is played."""
        self._runs: OrderedDict[Run, None] = OrderedDict()
        self._rootless: OrderedDict[Run, float] = OrderedDict()
        """Runs that perhaps no span will end, and when each was last seen, least recent first."""
        self.evicted = 0
        """Runs that were ended because too many were open, or too many spans."""

    def __iter__(self) -> Iterator[Run]:
        """Yield the runs, oldest first."""
        return iter(tuple(self._runs))

    def add(self, run: Run) -> Run | None:
        """Take in a run; return the oldest one if there are too many now, to be ended."""
        self._runs[run] = None
        if run.is_rootless:
            self._rootless[run] = self._clock()
        too_many = self._rootless if len(self._rootless) > ROOTLESS else self._runs
        if too_many is self._runs and len(self._runs) <= RUNS:
            return None
        self.evicted += 1
        return next(iter(too_many))

    def seen(self, run: Run) -> None:
        """Hear that something happens in a run."""
        if run in self._rootless:
            self._rootless[run] = self._clock()
            self._rootless.move_to_end(run)

    def remove(self, run: Run) -> None:
        """Forget a run: it has ended."""
        self._runs.pop(run, None)
        self._rootless.pop(run, None)

    def idle(self) -> list[Run]:
        """Return the runs that perhaps no span will end, and in which nothing has happened."""
        now_s, found = self._clock(), list[Run]()
        for run, seen_s in self._rootless.items():
            if now_s - seen_s < IDLE_S:
                break
            found.append(run)
        return found

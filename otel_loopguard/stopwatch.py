"""The stopwatch: how long the guard takes for a span, measured on few of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle

from otel_loopguard.aside import Aside

EVERY = 251
"""One callback in so many is measured: to record a duration takes as long as a part of what is
measured. It is a prime, so that it falls on every kind of span of an agent that goes in circles."""

_FIRST = 10
"""The first ones are not: they import, and fill caches."""


class Stopwatch:
    """Says when to measure, and measures.

    Args:
        tell: called with what was measured, and how many seconds it took.
        aside: entered while that is told.
        fault: told of what went wrong meanwhile.

    """

    __slots__ = ("_aside", "_fault", "_tell", "ends", "starts")

    def __init__(
        self,
        tell: Callable[[str, float], object],
        aside: Aside,
        fault: Callable[[Exception], object],
    ) -> None:
        self._tell = tell
        self._aside = aside
        self._fault = fault
        self.starts, self.ends = _turns(), _turns()
        """Whether to measure the next start, and the next end."""

    def stop(self, callback: str, began_s: float) -> None:
        """Tell how long a callback has taken that began so many seconds along `perf_counter`."""
        taken_s = time.perf_counter() - began_s
        try:
            with self._aside:
                self._tell(callback, taken_s)
        except Exception as error:  # noqa: BLE001 -- called from the user's own code
            self._fault(error)


def _turns() -> cycle[bool]:
    # Of a tuple, because no two threads at once can go through a generator for the first time.
    return cycle(tuple([place == _FIRST for place in range(EVERY)]))

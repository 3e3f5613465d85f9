"""A clock that is moved by hand, for limits on time."""

from __future__ import annotations

import threading
from math import isfinite


class FakeClock:
    """A clock that stands still until it is moved; called, it says its seconds.

        clock = FakeClock()
        guard = LoopGuard(Policy.none(), max_duration_s=60, clock=clock)
        guard.start()
        clock.advance(61)

    It is for what takes a `clock=`. Everybody else's `time.monotonic` goes on as ever: spans bring
    their own times, the timer that ends hung runs waits real seconds, and so does `sleep`.

    Args:
        start_s: what it says first, in seconds on any line.

    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = _finite("start_s", start_s)
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the seconds that it is at."""
        return self._now_s

    def advance(self, seconds: float) -> float:
        """Move it on by so many seconds, and return what it says then.

        Raises `ValueError` for a number below zero, as no monotonic clock goes back.
        """
        if _finite("seconds", seconds) < 0:
            raise ValueError(
                f"seconds={seconds!r} would move the clock back; expected a number from 0: make "
                "another FakeClock for another time line"
            )
        with self._lock:
            self._now_s += seconds
            return self._now_s

    def __repr__(self) -> str:
        return f"FakeClock({self._now_s!r})"


def _finite(name: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not isfinite(seconds):
        raise ValueError(f"{name}={seconds!r} is no time; expected a finite number of seconds")
    return seconds

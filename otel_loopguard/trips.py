"""When a run tripped, by each clock that is asked, and what stopping it is called."""

from __future__ import annotations

import sys
import time
import uuid
from typing import NamedTuple


class Tripped(NamedTuple):
    """When a run tripped, and what stopping it is called."""

    stop_id: str
    """One name for all that is asked to stop the run, however often."""
    run_s: float
    """In seconds since the run began, on its own time line."""
    monotonic_s: float
    """In seconds of the monotonic clock of this process."""
    wall_ns: int
    """In nanoseconds of the wall clock, as spans have it."""
    call_ids: tuple[str, ...] = ()
    """The ids of the tool call that tripped it, or of those that the model call asked for."""

    @classmethod
    def now(cls, run_s: float, call_ids: tuple[str, ...]) -> Tripped:
        """Return the time of a run that trips now, after `run_s` seconds, by these calls."""
        return cls(uuid.uuid4().hex, run_s, time.monotonic(), time.time_ns(), call_ids)


NOT_TRIPPED = Tripped("", float("inf"), 0.0, sys.maxsize)
"""Of a run that has not: nothing comes after that."""

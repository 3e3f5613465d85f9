"""Telemetry of the guard's own: what is started while it is written is no work of an agent."""

from __future__ import annotations

import threading


class Aside(threading.local):
    """A block in which this thread writes telemetry of the guard's own.

    Log handlers, exporters and metric readers may make spans and requests in there. If they were
    watched, writing about them would make further ones.
    """

    depth = 0
    """In how many such blocks the thread is."""

    def __enter__(self) -> None:
        """Begin to write."""
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.depth -= 1

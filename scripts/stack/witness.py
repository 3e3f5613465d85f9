"""Sees the states that each alert goes through, and when; few of them last long."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import msgspec

from scripts.stack.prometheus import Alert, Prometheus

LOOK_S = 0.2


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """An alert in a state, when that was seen first."""

    at: float
    alert: Alert


class Witness:
    """What was seen so far."""

    def __init__(self) -> None:
        self._sights: dict[tuple[str, ...], Sight] = {}

    def sights(self, **labels: str) -> list[Sight]:
        """The states of the alerts with these labels, in the order in which they were seen."""
        found = [
            sight
            for sight in tuple(self._sights.values())
            if labels.items() <= sight.alert.labels.items()
        ]
        return sorted(found, key=lambda sight: sight.at)

    def states(self, **labels: str) -> list[str]:
        """The states of the alerts with these labels, each once, in order."""
        return list(dict.fromkeys(sight.alert.state for sight in self.sights(**labels)))

    def look(self, prometheus: Prometheus) -> None:
        """Take in what is pending or firing now."""
        now = time.time()
        for alert in prometheus.alerts():
            key = (alert.state, *(f"{name}={text}" for name, text in sorted(alert.labels.items())))
            self._sights.setdefault(key, Sight(at=now, alert=alert))


@contextmanager
def witness(prometheus: Prometheus) -> Generator[Witness]:
    """Look until the block is left."""
    seen, over = Witness(), Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            with suppress(OSError):  # the next look may be answered again
                seen.look(prometheus)

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()

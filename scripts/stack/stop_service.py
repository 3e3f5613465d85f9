"""Who a guard's webhook asks to stop a run: down at first, and able to stop it once it is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

State = Literal["down", "up"]


class StopService:
    """Whether it is up, and what it does when it is asked then."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self.state: State = "down"
        self._stop = stop

    def answer(self, _: bytes) -> int:
        """Stop the run, if the service is up; returns the HTTP status of the answer."""
        if self.state != "up":
            return 503
        self._stop()
        return 204

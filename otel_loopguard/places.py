"""Calls that are on their way, known to the code that makes them before any span shows them.

A model request holds a place in its run until it shows as a step; a tool call is one at once.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextvars import ContextVar

REQUESTS: ContextVar[tuple[object, ...]] = ContextVar("loopguard_requests", default=())
"""The model requests, one for each guard, that code running in this context is about to make."""

TOLD = "otel_loopguard"
"""The scope of what stands in the tree of spans for a tool call that its maker tells of."""

CALLS: ContextVar[tuple[tuple[int, object], ...]] = ContextVar("loopguard_calls", default=())
"""What stands for the tool calls, one for each guard, that code running in this context makes, each
with who has told of it."""


class Places:
    """The model requests of one run that were let through and have not become steps."""

    __slots__ = ("_held", "_unseen_ns", "are_asked_about", "unseen")

    def __init__(self) -> None:
        self._held: OrderedDict[object, int] = OrderedDict()
        """Those that have not come back, oldest first, each with the time at which it was let
        through, in nanoseconds of the wall clock as spans have it."""
        self.unseen = 0
        """How many came back and have not become steps."""
        self.are_asked_about = False
        """The code that makes them asks beforehand, and tells of the tools that it calls."""
        self._unseen_ns = 0
        """When the latest of those was let through."""

    @property
    def ahead(self) -> int:
        """How many there are, those that came back included."""
        return len(self._held) + self.unseen

    def hold(self, request: object) -> None:
        """Take a place for a request that is let through."""
        self._held[request] = time.time_ns()

    def came_back(self, request: object, *, failed: bool) -> None:
        """Hear that a request came back. One that failed and left no step never happened."""
        at_ns = self._held.pop(request, None)
        if at_ns is not None and not failed:
            self.unseen += 1
            self._unseen_ns = max(self._unseen_ns, at_ns)

    def give_up(self, started_ns: int) -> bool:
        """Give up the place of the request that a model call's span belongs to; say if it held one.

        That is the request in which the span started, else one made while the span was there.
        """
        held = self._held
        if not held and not self.unseen:
            return False
        own = next((request for request in REQUESTS.get() if request in held), None)
        if own is None and self.unseen and started_ns <= self._unseen_ns:
            self.unseen -= 1
            return True
        if own is None:
            own = next((each for each, at_ns in held.items() if started_ns <= at_ns), None)
        if own is not None:
            del held[own]
        return own is not None

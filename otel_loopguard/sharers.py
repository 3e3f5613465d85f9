"""Loops that share one span of the application: the run is that of the first, others get their own.

They are told apart by what their requests tell: calls made since a person spoke, and what was said.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from otel_loopguard.decisions import Violation
from otel_loopguard.told import Told

if TYPE_CHECKING:
    from otel_loopguard.runs import Run
    from otel_loopguard.span_tree import Node

HEIRS = 64
"""Other loops below one span that are known; past that the oldest is forgotten."""

CALLS = 64
"""Model calls below one span that are remembered while they wait for their requests."""


class Sharers:
    """What model requests below one span tell of the loops that make them."""

    __slots__ = (
        "_asked_last",
        "_heirs",
        "_opening",
        "_told_last",
        "_waiting",
        "are_several",
        "at_work",
        "have_asked",
    )

    def __init__(self) -> None:
        self.have_asked = self.are_several = False
        """A request has been made; some that begin otherwise than others have."""
        self._asked_last: int | None = None
        """The opening of the latest request."""
        self._opening: int | None = None
        """The opening of the loop that is the run's own; `None` until it tells of a call."""
        self._told_last = ""
        """The id of the call that the run's own loop has told last."""
        self._heirs: dict[int, Run] = {}
        """By its opening, the run of each other loop."""
        self.at_work: Run | None = None
        """The run of the loop that has asked last, if that is not this one."""
        self._waiting: deque[Node] = deque(maxlen=CALLS)

    @property
    def have_told(self) -> bool:
        """Whether loops can be told from each other by now."""
        return self._opening is not None

    def ask(self, opening: int, at_work: Run | None) -> None:
        """Take note of a request, and whose it is if it is not of the run's own loop."""
        self.are_several = self.are_several or self._asked_last not in (None, opening)
        self.have_asked, self._asked_last, self.at_work = True, opening, at_work

    def await_request(self, call: Node) -> None:
        """Remember a model call of which its request is to say what loop it is of."""
        self._waiting.append(call)

    def waiting(self) -> list[Node]:
        """Return the model call that has waited longest, if one is still open; it waits no more."""
        while self._waiting:
            call = self._waiting.popleft()
            if call.is_open and call.run is None:
                return [call]
        return []

    def heir(self, opening: int) -> Run | None:
        """Return the run of the loop that began like this, if it has one of its own."""
        run = self._heirs.get(opening)
        return None if run is None or run.ended else run

    def heirs(self) -> tuple[Run, ...]:
        """Return the runs of loops that are known."""
        return tuple(self._heirs.values())

    def leave_to(self, run: Run, opening: int) -> Run | None:
        """Let one of the loops be a run of its own; return another one that is forgotten for it."""
        self._heirs.pop(opening, None)
        self._heirs[opening] = run
        is_full = len(self._heirs) > HEIRS
        return self._heirs.pop(next(iter(self._heirs))) if is_full else None

    def take(self, told: Told) -> bool:
        """Say whether a request is of the run's own loop; the first that tells of a call is.

        Where no request has been made, one that tells of a call goes on with what began elsewhere.
        """
        if not told.call_ids:
            return self._opening in {None, told.opening}
        if self._opening is None and self.have_asked:
            self._opening = told.opening
        is_own = told.opening == self._opening or self._goes_on(told)
        if is_own:
            self._told_last = told.last_id
        return is_own

    def is_meant(self, trip: Violation, call_ids: tuple[str, ...], told: Told) -> bool:
        """Say whether a request goes on with what tripped the run: tool calls with these ids.

        It does if that cannot be told, or if the trip is about the run as a whole. One that tells
        of no calls but these is of a loop that has only begun.
        """
        cannot_be_told = not self.have_told or told.response_id or not trip.is_pattern
        if cannot_be_told or (not call_ids and trip.kind != "tool"):
            return True
        if told.opening == self._opening or self._goes_on(told):
            return True
        tripping = set(call_ids)
        return not tripping.isdisjoint(told.call_ids) and not tripping.issuperset(told.call_ids)

    def _goes_on(self, told: Told) -> bool:
        # What a person said may be written otherwise the next time, or be left out.
        return self._told_last != "" and self._told_last in told.call_ids

"""Loops that share one span of the application.

They are one run, until one of them trips it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from otel_loopguard.decisions import Violation
from otel_loopguard.told import Told

if TYPE_CHECKING:
    from otel_loopguard.runs import Run

OPENINGS = 64
"""Openings known of the loops below one span, of each kind; past that the oldest is forgotten."""

_Value = TypeVar("_Value")


class Sharers:
    """What model requests below one span tell of the loops that make them."""

    __slots__ = ("_heirs", "_refused", "have_told")

    def __init__(self) -> None:
        self.have_told = False
        """A request has told results of tool calls: loops can be told from each other."""
        self._refused: dict[int, None] = {}
        """Openings of the loop that is refused, by which it is known if it begins anew."""
        self._heirs: dict[int, Run] = {}
        """By its opening, the run of each other loop that has gone on."""

    def is_meant(self, trip: Violation, call_ids: tuple[str, ...], told: Told) -> bool:
        """Say whether a request goes on with what tripped the run: tool calls with these ids.

        It does if that cannot be told from what the request tells, or if the trip is about the run
        as a whole.
        """
        if not self.have_told or told.response_id or not trip.is_pattern:
            return True
        if not call_ids and trip.kind != "tool":
            return True
        if told.opening in self._refused:
            return True
        # Ids on spans may be others than those in requests: then the number of calls has to tell.
        shows = any(each in told.call_ids for each in call_ids) or len(told.call_ids) >= trip.count
        if shows:
            _put(self._refused, told.opening, None)
        return shows

    def heir(self, opening: int) -> Run | None:
        """Return the run of the loop that began like this, if that goes on."""
        run = self._heirs.get(opening)
        return None if run is None or run.ended else run

    def heirs(self) -> tuple[Run, ...]:
        """Return the runs of the loops that have gone on."""
        return tuple(self._heirs.values())

    def latest(self) -> Run | None:
        """Return the run of the loop that has gone on last."""
        return next((run for run in reversed(self._heirs.values()) if not run.ended), None)

    def leave_to(self, run: Run, opening: int) -> None:
        """Let one of the loops go on as a run of its own."""
        self._heirs.pop(opening, None)
        _put(self._heirs, opening, run)


def _put(store: dict[int, _Value], opening: int, value: _Value) -> None:
    store[opening] = value
    if len(store) > OPENINGS:
        del store[next(iter(store))]

"""For how many calls a sequence has repeated itself, for each period: bounded, and no rescans."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

_NONE: Mapping[int, int] = {}


class Periods:
    """How many of the newest calls equal the call one period before, for each period.

    `matched[p] == n` says that each of the last n calls equals the one p calls before it, so the
    last `n + p` calls have the period p. Only periods with a match are kept.
    """

    __slots__ = ("_calls", "matched")

    def __init__(self, longest: int) -> None:
        self._calls: deque[int] = deque(maxlen=longest)
        self.matched: Mapping[int, int] = _NONE

    def matched_with(self, call: int) -> Mapping[int, int]:
        """Say what `matched` would be after `call`."""
        if call not in self._calls:
            return _NONE
        before = self.matched
        return {
            period: before.get(period, 0) + 1
            for period, earlier in enumerate(reversed(self._calls), 1)
            if earlier == call
        }

    def push(self, call: int | None, *, restart: bool = False) -> None:
        """Add a call; `restart` ends the periods so far, and so does a call that equals nothing."""
        if call is None:
            self._calls.clear()
            self.matched = _NONE
            return
        self.matched = _NONE if restart else self.matched_with(call)
        self._calls.append(call)

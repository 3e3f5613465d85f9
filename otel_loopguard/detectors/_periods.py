"""For how many calls a sequence has repeated itself, for each period: bounded, and no rescans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

_NONE: Mapping[int, int] = {}


class Periods:
    """How many of the newest calls equal the call one period before, for each period.

    `matched[p] == n` says that each of the last n calls equals the one p calls before it, so the
    last `n + p` calls have the period p. Only periods with a match are kept.
    """

    __slots__ = ("_calls", "_longest", "_recent", "matched")

    def __init__(self, longest: int, calls: Iterable[int | None] = ()) -> None:
        self._longest = longest
        latest = list(calls)[-longest:]
        known = takewhile(lambda call: call is not None, reversed(latest))
        self._calls = [call for call in known if call is not None][::-1]
        """The last ones; a deque of eight takes ten times the space."""
        self._recent = set(self._calls)
        """The calls above and some older ones: most calls are new, and this says so at once."""
        self.matched: Mapping[int, int] = _NONE

    @property
    def is_fresh(self) -> bool:
        """Whether there is at most one call, which nothing can be compared with."""
        return len(self._calls) <= 1

    def matched_with(self, call: int) -> Mapping[int, int]:
        """Say what `matched` would be after `call`."""
        if call not in self._recent:
            return _NONE
        before = self.matched
        return {
            period: before.get(period, 0) + 1
            for period, earlier in enumerate(reversed(self._calls), 1)
            if earlier == call
        }

    def restart(self, call: int | None) -> None:
        """Begin anew, with a call if there is one."""
        if call is None or self._calls != [call]:
            self.push(None)
            self.push(call)

    def push(self, call: int | None, *, restart: bool = False) -> None:
        """Add a call; `restart` ends the periods so far, and so does a call that equals nothing."""
        if call is None:
            self._calls.clear()
            self.matched = _NONE
            return
        recent = self._recent
        self.matched = _NONE if restart or call not in recent else self.matched_with(call)
        self._calls.append(call)
        if len(self._calls) > self._longest:
            del self._calls[0]
        recent.add(call)
        if len(recent) > 2 * self._longest:
            self._recent = set(self._calls)

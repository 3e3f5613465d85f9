"""What spans without a parent are held together by: ids that more than one of them names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Literal, TypeAlias

from otel_loopguard.runs import Run

JOINS = 8_192
"""Ids known at a time; past that the one that is longest unused is forgotten."""

Key: TypeAlias = tuple[Literal["run", "conversation", "call", "response"], str]
"""An id and what it is one of."""


class Joins:
    """By each id, the run that named it last."""

    __slots__ = ("_runs", "evicted")

    def __init__(self) -> None:
        self._runs: OrderedDict[Key, Run | None] = OrderedDict()
        self.evicted = 0
        """Ids of runs that went on, forgotten because there were too many."""

    def find(self, keys: Iterable[Key]) -> Run | None:
        """Return the run that goes on and named the first of these ids that is known."""
        for key in keys:
            run = self._runs.get(key)
            if run is not None and not run.ended:
                self._runs.move_to_end(key)
                return run
        return None

    def keep(self, key: Key, run: Run) -> None:
        """Take note that a run names an id.

        One that another run names as well, while that has something to do, says nothing any more:
        some servers number the calls of each response from 1.
        """
        other = self._runs.get(key, run)
        is_other = other is not None and other is not run and not other.ended
        shared = other is None or (is_other and not other.guard.is_complete)
        self._runs[key] = None if shared else run
        self._runs.move_to_end(key)
        if len(self._runs) > JOINS:
            _, forgotten = self._runs.popitem(last=False)
            self.evicted += forgotten is not None and not forgotten.ended

"""Values that a limit on their length has cut."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from otel_loopguard.spans import SpanRecord

_ENDS = {"{": "}", "[": "]"}
_ENOUGH = 2
"""Broken values of one length that make a limit likely: one may be broken by itself."""


class Cut(NamedTuple):
    """How many values were cut, and at which length."""

    values: int
    length: int


class Lengths:
    """The lengths of the texts on spans of one instrumentation.

    A live span knows its limit. A recording does not: there the texts that begin as JSON and do not
    end as such tell it, if none is longer.
    """

    def __init__(self) -> None:
        self._longest = 0
        self._broken: Counter[int] = Counter()
        self._at_limit: defaultdict[int, int] = defaultdict(int)

    def take(self, record: SpanRecord) -> None:
        """Look at the texts of a span."""
        limit = record.value_length_limit
        for value in record.attributes.values():
            if not isinstance(value, str):
                continue
            self._longest = max(self._longest, len(value))
            if limit is not None:
                self._at_limit[limit] += len(value) == limit
            elif value.rstrip()[-1:] != _ENDS.get(value[:1], value.rstrip()[-1:]):
                self._broken[len(value)] += 1

    def cut(self) -> Cut:
        """Return what was cut."""
        known = max(self._at_limit, key=self._at_limit.__getitem__, default=0)
        if known and self._at_limit[known]:
            return Cut(self._at_limit[known], known)
        guessed = self._broken[self._longest]
        return Cut(guessed, self._longest) if guessed >= _ENOUGH else Cut(0, 0)

"""By what the conventions know their spans, so that most are not asked about most spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeAlias, TypeVar

import msgspec

from otel_loopguard.spans import SpanRecord

_T = TypeVar("_T")

Found: TypeAlias = tuple[frozenset[str], str, str, bool]
"""The marks on one span: names of attributes, the scope, the name's first word ("" where it is
nobody's), and whether the name ends in a known way."""


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What a convention knows its spans by: one without any of these is not its own.

    One that has some need not be, so it does no harm to name too much.
    """

    attributes: frozenset[str] = frozenset()
    """Names of attributes."""
    scopes: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    """First words of the span's name."""
    endings: tuple[str, ...] = ()
    """Of the span's name."""

    def fit(self, found: Found) -> bool:
        """Say whether a span with these marks may be the convention's."""
        attributes, scope, word, ends = found
        return (
            not self.attributes.isdisjoint(attributes)
            or scope in self.scopes
            or word in self.words
            or (ends and bool(self.endings))
        )


class Recognition(Generic[_T]):
    """Whom to ask about a span, in the order given; who has no marks is asked about each.

    What was found for one span is remembered for all with the same marks, of which there are few:
    they are parts of what is given here.
    """

    __slots__ = ("_attributes", "_endings", "_known", "_readers", "_scopes", "_words")

    def __init__(self, readers: Iterable[tuple[Marks | None, _T]]) -> None:
        self._readers = tuple(readers)
        every = [marks for marks, _ in self._readers if marks is not None]
        self._attributes = frozenset[str]().union(*(marks.attributes for marks in every))
        self._scopes = frozenset[str]().union(*(marks.scopes for marks in every))
        self._words = frozenset[str]().union(*(marks.words for marks in every))
        self._endings = tuple(ending for marks in every for ending in marks.endings)
        self._known: dict[Found, tuple[_T, ...]] = {}

    def of(self, record: SpanRecord) -> tuple[_T, ...]:
        """Return those that may know the span."""
        scope, word = record.scope, record.name.partition(" ")[0]
        found = (
            self._attributes.intersection(record.attributes),
            scope if scope in self._scopes else "",
            word if word in self._words else "",
            record.name.endswith(self._endings),
        )
        known = self._known.get(found)
        if known is None:
            known = self._known[found] = tuple(
                reader for marks, reader in self._readers if marks is None or marks.fit(found)
            )
        return known

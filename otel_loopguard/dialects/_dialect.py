"""One convention, by what its spans are known, and several together.

Most conventions are not asked about most spans: that is what the marks are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step, StepKind

KNOWN = 4_096
"""Combinations of marks that are remembered; past that they are found anew."""

_Found: TypeAlias = tuple[frozenset[str], str, str, bool]
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

    def fit(self, found: _Found) -> bool:
        """Say whether a span with these marks may be the convention's."""
        attributes, scope, word, ends = found
        return (
            not self.attributes.isdisjoint(attributes)
            or scope in self.scopes
            or word in self.words
            or (ends and bool(self.endings))
        )


def _nothing_known(_: SpanRecord) -> ModelInput | None:
    return None


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One convention.

    Its functions are called when a span starts (`ended_ns` is `None`, few attributes are there) and
    when it has ended. They must not raise, and most spans are nobody's: those should cost one
    look-up.
    """

    name: str
    read: Callable[[SpanRecord], Step | None]
    """Returns the step that a span is, `None` if the convention knows of none."""
    read_input: Callable[[SpanRecord], ModelInput | None] = _nothing_known
    """Returns what is new in a model call's input; `None` if the span does not show it."""
    marks: Marks | None = None
    """What it knows its spans by; if `None`, it is asked about each."""
    vetoable: frozenset[tuple[str, StepKind]] = frozenset()
    """The steps, by the instrumentation scope and the kind, of which it has been measured that an
    exception which is raised when their span starts comes out before the call is made."""


class Dialects:
    """Conventions to read spans by; the first that finds a step is believed. Made once for many."""

    __slots__ = ("_attributes", "_dialects", "_endings", "_known", "_scopes", "_words", "vetoable")

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self._dialects = tuple(dialects)
        every = [dialect.marks for dialect in self._dialects if dialect.marks is not None]
        self._attributes = frozenset[str]().union(*(marks.attributes for marks in every))
        self._scopes = frozenset[str]().union(*(marks.scopes for marks in every))
        self._words = frozenset[str]().union(*(marks.words for marks in every))
        self._endings = tuple(ending for marks in every for ending in marks.endings)
        self._known: dict[_Found, tuple[Dialect, ...]] = {}
        none = frozenset[tuple[str, StepKind]]()
        self.vetoable = none.union(*(dialect.vetoable for dialect in self._dialects))
        """The steps that an exception at the start of their span keeps from happening."""

    def __iter__(self) -> Iterator[Dialect]:
        """Yield the conventions in order."""
        return iter(self._dialects)

    def of(self, record: SpanRecord) -> tuple[Dialect, ...]:
        """Return those to ask about a span, in order."""
        scope, word = record.scope, record.name.partition(" ")[0]
        found = (
            self._attributes.intersection(record.attributes),
            scope if scope in self._scopes else "",
            word if word in self._words else "",
            record.name.endswith(self._endings),
        )
        known = self._known.get(found)
        if known is None:
            known = tuple(
                dialect
                for dialect in self._dialects
                if dialect.marks is None or dialect.marks.fit(found)
            )
            if len(self._known) < KNOWN:
                self._known[found] = known
        return known

"""Which dialect recognises a span, and by what of it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from otel_loopguard.dialects import Dialect, Dialects
from otel_loopguard.spans import SpanRecord


class Recognition(NamedTuple):
    """A dialect, and what of the span it goes by."""

    dialect: str
    by: str


def recognition_of(record: SpanRecord, dialects: Dialects) -> Recognition | None:
    """Return how a span is recognised; `None` if it is nobody's step."""
    dialect = next((each for each in dialects.of(record) if each.read(record) is not None), None)
    return None if dialect is None else Recognition(dialect.name, _what(record, dialect))


def _what(record: SpanRecord, dialect: Dialect) -> str:
    """Leave out one thing after the other, and see what the dialect then makes of the span."""
    replace = msgspec.structs.replace
    needs_attributes = dialect.read(replace(record, attributes={}, events=())) is None
    needs_name = dialect.read(replace(record, name="")) is None
    needs_scope = dialect.read(replace(record, scope="")) is None
    needed = "name" if needs_name and not needs_attributes else "attributes"
    return f"scope and {needed}" if needs_scope else needed

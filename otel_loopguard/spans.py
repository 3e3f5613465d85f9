"""A span as plain data: what live spans, OTLP messages and recorded files have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class SpanEventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a span."""

    name: str
    attributes: Mapping[str, object] = {}


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A span at one moment: when it started (`ended_ns` is `None`), or when it had ended.

    Attribute values are what the source held: strings, numbers, booleans, sequences and mappings of
    them. `parent_id` is `None` for a root; a remote parent belongs to another process.
    """

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None = None
    parent_is_remote: bool = False
    is_sampled: bool = True
    scope: str = ""
    """Name of the instrumentation scope."""
    is_topmost: bool = False
    """No span of its instrumentation is above it, and others are. Known only for the scopes in
    `dialects.READ_BY_PLACE`."""
    attributes: Mapping[str, object] = {}
    events: Sequence[SpanEventRecord] = ()
    is_error: bool = False
    """The span's status is ERROR."""
    status_message: str = ""
    started_ns: int = 0
    ended_ns: int | None = None
    value_length_limit: int | None = None
    """Attribute strings of this length may have been cut (the limit of the SDK)."""

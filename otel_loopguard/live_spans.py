"""Spans of the OpenTelemetry SDK, live or ended, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from otel_loopguard import semconv
from otel_loopguard.spans import SpanEventRecord, SpanRecord

_ERROR = StatusCode.ERROR
_WITH_CONTENT = ("gen_ai.", semconv.CLAUDE_OUTPUT_EVENT)
"""What the names of events begin with that hold messages, arguments or results."""


def record_of(span: ReadableSpan) -> SpanRecord:
    """Return a live or ended span of the SDK as plain data."""
    context, parent, status = span.get_span_context(), span.parent, span.status
    scope, is_error = span.instrumentation_scope, status.status_code is _ERROR
    # Not public. What holds the attributes copies them at once, which the public mapping does by
    # way of three calls, and nothing else tells that a value may have been cut.
    held = getattr(span, "_attributes", None)
    attributes = _copied(span.attributes if held is None else held)
    ended_ns = span.end_time
    return SpanRecord(
        name=span.name,
        trace_id=context.trace_id if context else 0,
        span_id=context.span_id if context else 0,
        parent_id=None if parent is None else parent.span_id,
        parent_is_remote=parent is not None and parent.is_remote,
        is_sampled=context is not None and context.trace_flags.sampled,
        scope="" if scope is None else scope.name,
        attributes=attributes,
        events=() if ended_ns is None else _events(span, attributes, is_error=is_error),
        is_error=is_error,
        status_message=status.description or "",
        started_ns=span.start_time or 0,
        ended_ns=ended_ns,
        value_length_limit=getattr(held, "max_value_len", None),
    )


def _events(
    span: ReadableSpan, attributes: Mapping[str, object], *, is_error: bool
) -> Sequence[SpanEventRecord]:
    """Return the events of an ended span if what is in them is read: errors and content.

    Reading them costs more than all the rest, so that spans without any are not asked for them:
    the list they are kept in is not public, but knows this at once.
    """
    if not getattr(span, "_events", True):
        return ()
    events = span.events
    failed = is_error or semconv.ERROR_TYPE in attributes
    if not (failed or any(event.name.startswith(_WITH_CONTENT) for event in events)):
        return ()
    return [SpanEventRecord(name=event.name, attributes=event.attributes or {}) for event in events]


def _copied(attributes: Mapping[str, object] | None) -> Mapping[str, object]:
    """Return attributes as a dictionary: the SDK's takes a lock and two calls for each look-up."""
    if isinstance(attributes, BoundedAttributes):
        return attributes.copy()
    return {} if attributes is None else dict(attributes)

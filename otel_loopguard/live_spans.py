"""Spans of the OpenTelemetry SDK, live or ended, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from otel_loopguard import semconv
from otel_loopguard.spans import SpanEventRecord, SpanRecord


def record_of(span: ReadableSpan) -> SpanRecord:
    """Return a live or ended span of the SDK as plain data."""
    context, parent, status = span.get_span_context(), span.parent, span.status
    scope, is_error = span.instrumentation_scope, status.status_code is StatusCode.ERROR
    attributes = _copied(span.attributes)
    failed = span.end_time is not None and (is_error or semconv.ERROR_TYPE in attributes)
    return SpanRecord(
        name=span.name,
        trace_id=context.trace_id if context else 0,
        span_id=context.span_id if context else 0,
        parent_id=None if parent is None else parent.span_id,
        parent_is_remote=parent is not None and parent.is_remote,
        is_sampled=context is not None and context.trace_flags.sampled,
        scope="" if scope is None else scope.name,
        attributes=attributes,
        # Only a failed span's are read, and reading them costs more than all the rest.
        events=[
            SpanEventRecord(name=event.name, attributes=event.attributes or {})
            for event in (span.events if failed else ())
        ],
        is_error=is_error,
        status_message=status.description or "",
        started_ns=span.start_time or 0,
        ended_ns=span.end_time,
        # Not public, but nothing else tells that a value may have been cut.
        value_length_limit=getattr(getattr(span, "_attributes", None), "max_value_len", None),
    )


def _copied(attributes: Mapping[str, object] | None) -> Mapping[str, object]:
    """Return attributes as a dictionary: the SDK's takes a lock and two calls for each look-up."""
    if isinstance(attributes, MappingProxyType):
        return attributes.copy()
    return {} if attributes is None else attributes

"""The contexts that telemetry stands in: that of a span, and that of none."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags

from otel_loopguard.steps import SpanKey

NOWHERE = trace.set_span_in_context(INVALID_SPAN, Context())
"""A context in which there is no span. An empty one is taken for that of the calling code."""


def context_of(span: SpanKey, *, sampled: bool) -> Context:
    """Return a context with a span, for exemplars and log records."""
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    shown = SpanContext(*span, is_remote=False, trace_flags=flags)
    return trace.set_span_in_context(NonRecordingSpan(shown), Context())

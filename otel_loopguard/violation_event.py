"""The event of a broken rule: its attributes, and the context that it stands in."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.util.types import AttributeValue

from otel_loopguard.decisions import Violation
from otel_loopguard.registry import names
from otel_loopguard.steps import SpanKey


def attributes_of(violation: Violation, run_id: str) -> dict[str, AttributeValue]:
    """Return what an event says of a violation."""
    described: dict[str, AttributeValue] = {
        names.RULE: violation.rule,
        names.REASON: violation.reason,
        names.ACTION: violation.action,
        names.PHASE: violation.phase,
        names.COUNT: violation.count,
        names.THRESHOLD: violation.threshold,
        names.MESSAGE: violation.message,
        names.STEP_NUMBER: violation.step,
        names.WASTED_STEPS: violation.wasted_steps,
        names.WASTED_TOKENS: violation.wasted_tokens,
        names.WASTED_COST: violation.wasted_cost_usd,
        names.RUN_ID: run_id,
    }
    if violation.tool:
        described[names.GEN_AI_TOOL_NAME] = violation.tool
    if violation.agent:
        described[names.GEN_AI_AGENT_NAME] = violation.agent
    if violation.span is not None:
        described[names.STEP_TRACE_ID] = f"{violation.span.trace_id:032x}"
        described[names.STEP_SPAN_ID] = f"{violation.span.span_id:016x}"
    return described


NOWHERE = trace.set_span_in_context(INVALID_SPAN, Context())
"""A context in which there is no span. An empty one is taken for that of the calling code."""


def context_of(span: SpanKey, *, sampled: bool) -> Context:
    """Return a context with a span, for exemplars and log records."""
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    shown = SpanContext(*span, is_remote=False, trace_flags=flags)
    return trace.set_span_in_context(NonRecordingSpan(shown), Context())

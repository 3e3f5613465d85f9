"""The event of a broken rule."""

from __future__ import annotations

from opentelemetry.util.types import AttributeValue

from otel_loopguard.decisions import Violation
from otel_loopguard.registry import names


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

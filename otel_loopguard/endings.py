"""How a model turn, and with it a run, ended: read from structure, never from prose."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.steps import Step

Status: TypeAlias = Literal[
    "complete",
    "truncated",
    "filtered",
    "empty",
    "provider_error",
    "tool_error",
    "cancelled",
    "running",
    "aborted",
]

_FINISHED = frozenset(
    ("stop", "end_turn", "stop_sequence", "completed", "complete", "end", "eos", "eos_token")
)
_TRUNCATED = frozenset(
    (
        "length",
        "max_tokens",
        "max_output_tokens",
        "incomplete",
        "model_length",
        "model_context_window_exceeded",
    )
)
_FILTERED = frozenset(
    (
        "content_filter",
        "content-filter",
        "content_filtered",
        "safety",
        "refusal",
        "blocklist",
        "prohibited_content",
        "recitation",
        "spii",
        "guardrail_intervened",
    )
)
_NONE = frozenset[str]()
_TOOLS = frozenset(
    ("tool_calls", "tool_call", "tool_use", "tool-calls", "function_call", "function_calls")
)


def ending_of(step: Step) -> Status:
    """Say how the run would have ended if this had been its last step.

    A turn is `complete` when it asked for no tool, gave a finishing reason (Chat Completions,
    Responses and Messages spell it differently) and its text is not blank; unknown text counts as
    text. What asks for tools is `running`. A custom step with a finishing reason is a framework's
    own way of answering: it is `complete` if it did not fail.
    """
    if step.kind != "llm":
        return _ending_of_other(step)
    if step.error is not None:
        return "provider_error"
    reasons = _reasons_of(step)
    if reasons & _TRUNCATED:
        return "truncated"
    if reasons & _FILTERED:
        return "filtered"
    if asks_for_tools(step) or not reasons & _FINISHED:
        return "running"
    blank = isinstance(step.output, str) and not step.output.strip()
    return "empty" if blank else "complete"


def _ending_of_other(step: Step) -> Status:
    if step.error is not None:
        return "tool_error" if step.kind == "tool" else "running"
    return "complete" if step.kind == "custom" and _reasons_of(step) & _FINISHED else "running"


def finished(step: Step) -> bool:
    """Say whether this turn is known to have finished the run, its text included."""
    return isinstance(step.output, str) and ending_of(step) == "complete"


def asks_for_tools(step: Step) -> bool:
    """Say whether this turn is known to have asked for tools."""
    asked = step.tool_calls is not UNKNOWN and bool(step.tool_calls)
    return asked or not _TOOLS.isdisjoint(_reasons_of(step))


def _reasons_of(step: Step) -> frozenset[str]:
    return _reasons_in(tuple(step.finish_reasons)) if step.finish_reasons else _NONE


@lru_cache(256)
def _reasons_in(finish_reasons: tuple[str, ...]) -> frozenset[str]:
    # Some write the name of an enumeration's member: `FinishReason.STOP`.
    return frozenset(reason.rpartition(".")[2].lower() for reason in finish_reasons)

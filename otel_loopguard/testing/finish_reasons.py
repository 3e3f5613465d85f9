"""What the reason that a turn finished for means, in whatever provider's word it is."""

from __future__ import annotations

from typing import Literal, TypeAlias

from otel_loopguard.endings import asks_for_tools, ending_of
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.steps import Step

Meaning: TypeAlias = Literal["stop", "length", "content_filter", "tool_calls"]


def meaning_of(turn: ModelTurn) -> Meaning | None:
    """Return the Chat API's word for it; `None` if nobody says, or nobody knows the word."""
    step = Step(kind="llm", name="", finish_reasons=(turn.finish_reason,), output="said")
    if asks_for_tools(step):
        return "tool_calls"
    match ending_of(step):
        case "complete":
            return "stop"
        case "truncated":
            return "length"
        case "filtered":
            return "content_filter"
        case _:
            return None

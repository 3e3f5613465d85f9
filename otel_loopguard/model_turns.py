"""What a model answers when it is asked, in loops that ask it themselves: one turn."""

from __future__ import annotations

import msgspec

from otel_loopguard.steps import ToolCall

__all__ = ["ModelTurn", "ToolCall"]


class ModelTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model: calls that it asks for, all at the same time, or a text, or both."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    """Why the model stopped, in its provider's word (`stop`, `length`, `content_filter`); empty
    where nobody says, which is no reason to doubt the turn."""
    input_tokens: int = 0
    """Tokens of what the model was given, cached ones included."""
    output_tokens: int = 0
    """Tokens of what it answered."""

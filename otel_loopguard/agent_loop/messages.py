"""The conversation: what a model is shown, and how values become text that it can read."""

from __future__ import annotations

from typing import Literal

import msgspec

from otel_loopguard.agent_loop.tools import Tool
from otel_loopguard.steps import ToolCall


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message: what somebody said, or what a tool answered."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """What the model asked for; each of them is answered by a message of role `tool`."""
    call_id: str = ""
    """The call that this answers."""
    failed: bool = False
    """The call failed, or was not made: the text says why."""


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is asked: the conversation so far, and what it may do."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    max_output_tokens: int | None
    """How long the answer may be; `None` leaves that to the model."""
    step: int
    """The number of this step in the run, from 1."""
    remaining_s: float
    """Seconds until the deadline: what takes longer is thrown away, so it may be given up then."""


def text_of(value: object) -> str:
    """Return a tool's result as a model reads it: a text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, enc_hook=repr).decode()
    except Exception:  # noqa: BLE001 -- a foreign value may do anything
        return f"a {type(value).__qualname__} that cannot be shown"


def described(error: BaseException) -> str:
    """Return the class and the text of what was raised."""
    try:
        return f"{type(error).__qualname__}: {error}"
    except Exception:  # noqa: BLE001 -- a foreign error may do anything
        return type(error).__qualname__

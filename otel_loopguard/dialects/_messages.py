"""Reads a model's answer as the GenAI conventions write it: `gen_ai.output.messages`."""

from __future__ import annotations

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._values import content, joined, parsed, text
from otel_loopguard.steps import ToolCall

_NOT_SAID = frozenset({"tool_call", "reasoning", "thinking"})
"""Parts of an answer that are no text for the user, and leave none out."""


class _Part(msgspec.Struct, frozen=True):
    type: object = None
    content: object = UNKNOWN
    name: object = None
    id: object = None
    arguments: object = UNKNOWN


class _Message(msgspec.Struct, frozen=True):
    parts: list[_Part]
    finish_reason: object = None


_MESSAGES = msgspec.json.Decoder(list[_Message])


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered, as far as the span shows it."""

    tool_calls: tuple[ToolCall, ...] | Unknown = UNKNOWN
    output: str | Unknown = UNKNOWN
    finish_reasons: tuple[str, ...] = ()


def model_answer(
    messages: object, finish_reasons: tuple[str, ...], limit: int | None
) -> ModelAnswer:
    """Return the answer in `messages`, JSON text or the structure.

    `finish_reasons` are those of the span; where it has none, the messages' own are taken. An
    answer without any is not written as the convention asks, and not believed when it shows no
    tool call: `opentelemetry-instrumentation-openai-agents-v2` writes calls as text.
    """
    shown = content(messages, limit)
    read = parsed(shown, _MESSAGES) if shown is not UNKNOWN else None
    if not read:
        return ModelAnswer(finish_reasons=finish_reasons)
    reasons = finish_reasons or tuple(
        reason for message in read if (reason := text(message.finish_reason))
    )
    parts = [(text(part.type), part) for message in read for part in message.parts]
    calls = tuple(
        ToolCall(
            name=text(part.name),
            arguments=content(part.arguments, limit),
            call_id=text(part.id) or None,
        )
        for kind, part in parts
        if kind == "tool_call"
    )
    said = [
        content(part.content, limit) if kind == "text" else UNKNOWN
        for kind, part in parts
        if kind not in _NOT_SAID
    ]
    return ModelAnswer(
        tool_calls=calls if calls or reasons else UNKNOWN,
        output=joined(said),
        finish_reasons=reasons,
    )

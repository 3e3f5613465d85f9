"""Reads the messages that a model answered with.

Two forms are read, as JSON text or as the structure itself: the GenAI conventions' own (a message
has `parts`), and that of OpenAI's Chat API (`content` and `tool_calls`), which older packages and
AG2 write. Other forms are rewritten into one of them before they come here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._values import content, joined, parsed, text
from otel_loopguard.steps import ToolCall

ANSWERS = frozenset({"tool_call_response", "tool_result"})
"""Parts with what a tool came to."""
_NOT_SAID = ANSWERS | {"tool_call", "reasoning", "thinking", "tool_use"}
"""Parts of an answer that are no text for the user, and leave none out."""
TEXTS = frozenset({"text", "input_text", "output_text"})
"""Parts with text."""


class _Part(msgspec.Struct, frozen=True):
    type: object = None
    content: object = UNKNOWN
    text: object = UNKNOWN
    name: object = None
    id: object = None
    arguments: object = UNKNOWN


class _Function(msgspec.Struct, frozen=True):
    name: object = None
    arguments: object = UNKNOWN


class _Call(msgspec.Struct, frozen=True):
    id: object = None
    function: _Function = _Function()


class _Message(msgspec.Struct, frozen=True):
    parts: list[_Part] | None = None
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
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
    if not read or not any(_is_message(message) for message in read):
        return ModelAnswer(finish_reasons=finish_reasons)
    reasons = finish_reasons or tuple(
        reason for message in read if (reason := text(message.finish_reason))
    )
    calls: list[ToolCall] = []
    said: list[object] = []
    for message in read:
        calls += _calls(message, limit)
        said += _said(message, limit)
    return ModelAnswer(
        tool_calls=tuple(_without_parts(calls)) if calls or reasons else UNKNOWN,
        output=joined(said),
        finish_reasons=reasons,
    )


def _is_message(message: _Message) -> bool:
    if message.parts is not None or message.content is not None:
        return True
    return message.tool_calls is not None


def _calls(message: _Message, limit: int | None) -> Iterator[ToolCall]:
    asked = [part for part in message.parts or () if text(part.type) == "tool_call"]
    if asked:
        # The provider ran these itself: nobody is asked for them.
        ran = {text(part.id) for part in message.parts or () if text(part.type) in ANSWERS}
        for part in asked:
            if text(part.id) not in ran:
                yield _call(part.name, part.arguments, part.id, limit)
    for call in message.tool_calls or ():
        yield _call(call.function.name, call.function.arguments, call.id, limit)


def _without_parts(calls: Sequence[ToolCall]) -> Iterator[ToolCall]:
    """Yield each call once.

    Google ADK shows a streamed call with every part of it that came, under its id and without
    arguments, and then whole, if its end did not come with the last part.
    """
    shown = {call.call_id for call in calls if call.arguments is not UNKNOWN}
    for call in calls:
        if call.arguments is UNKNOWN and call.call_id is not None:
            if call.call_id in shown:
                continue
            shown.add(call.call_id)
        yield call


def _call(name: object, arguments: object, call_id: object, limit: int | None) -> ToolCall:
    return ToolCall(
        name=text(name), arguments=content(arguments, limit), call_id=text(call_id) or None
    )


def _said(message: _Message, limit: int | None) -> Iterator[object]:
    if message.parts is None and isinstance(message.content, str):
        yield content(message.content, limit)
    elif message.parts is None and message.content is None and not message.tool_calls:
        yield UNKNOWN  # what was said is left out
    for part in message.parts or _parts(message.content):
        kind = text(part.type)
        if kind in TEXTS:
            yield content(part.text if part.content is UNKNOWN else part.content, limit)
        elif kind not in _NOT_SAID:
            yield UNKNOWN


def _parts(value: str | list[_Part] | None) -> list[_Part]:
    return value if isinstance(value, list) else []

"""Reads the messages of a model call: what it was given that is new, and what it answered.

Two forms are read, as JSON text or as the structure itself: the GenAI conventions' own (a message
has `parts`), and that of OpenAI's Chat API (`content` and `tool_calls`), which older packages and
AG2 write. Other forms are rewritten into one of them before they come here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._values import content, is_array, joined, parsed, text
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall

_ANSWERS = frozenset({"tool_call_response", "tool_result"})
_NOT_SAID = _ANSWERS | {"tool_call", "reasoning", "thinking", "tool_use"}
"""Parts of an answer that are no text for the user, and leave none out."""
_TEXTS = frozenset({"text", "input_text", "output_text"})
_ASSISTANT = frozenset({"assistant", "model"})


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


class _GivenPart(msgspec.Struct, frozen=True):
    """A part of a message in the conversation: without what is not asked for, for speed."""

    type: object = None
    id: object = None
    tool_use_id: object = None
    response: object = UNKNOWN
    result: object = UNKNOWN
    content: object = UNKNOWN
    text: object = UNKNOWN


class _Given(msgspec.Struct, frozen=True):
    role: object = None
    parts: list[_GivenPart] | None = None
    content: str | list[_GivenPart] | None = None
    tool_call_id: object = None
    id: object = None


_MESSAGES = msgspec.json.Decoder(list[_Message])
_CONVERSATION = msgspec.json.Decoder(list[msgspec.Raw])
_GIVEN = msgspec.json.Decoder(_Given)


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
    calls = tuple(call for message in read for call in _calls(message, limit))
    said = [piece for message in read for piece in _said(message, limit)]
    return ModelAnswer(
        tool_calls=calls if calls or reasons else UNKNOWN,
        output=joined(said),
        finish_reasons=reasons,
    )


def model_input(messages: object, limit: int | None) -> ModelInput | None:
    """Return what stands after the model's last answer; `None` if `messages` cannot be read."""
    shown = content(messages, limit)
    new = None if shown is UNKNOWN else _after_last_answer(shown)
    if new is None:
        return None
    return ModelInput(
        answers=tuple(answer for message in new for answer in _answers(message, limit)),
        spoken=any(_is_spoken(message) for message in new),
    )


def _is_message(message: _Message) -> bool:
    shown = (message.parts, message.content, message.tool_calls)
    return any(part is not None for part in shown)


def _calls(message: _Message, limit: int | None) -> Iterator[ToolCall]:
    parts = message.parts or ()
    # The provider ran these itself: nobody is asked for them.
    ran = {text(part.id) for part in parts if text(part.type) in _ANSWERS}
    for part in parts:
        if text(part.type) == "tool_call" and text(part.id) not in ran:
            yield _call(part.name, part.arguments, part.id, limit)
    for call in message.tool_calls or ():
        yield _call(call.function.name, call.function.arguments, call.id, limit)


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
        if kind in _TEXTS:
            yield content(part.text if part.content is UNKNOWN else part.content, limit)
        elif kind not in _NOT_SAID:
            yield UNKNOWN


def _parts(value: str | list[_Part] | None) -> list[_Part]:
    return value if isinstance(value, list) else []


def _after_last_answer(conversation: object) -> list[_Given] | None:
    """Return the last messages, those before them unread: a conversation may be very long."""
    decoded = parsed(conversation, _CONVERSATION) if isinstance(conversation, str) else None
    messages = conversation if decoded is None else decoded
    if not is_array(messages):
        return None
    new: list[_Given] = []
    for message in reversed(messages):
        given = parsed(bytes(message) if isinstance(message, msgspec.Raw) else message, _GIVEN)
        if given is None:
            return None
        if text(given.role) in _ASSISTANT:
            break
        new.append(given)
    return new[::-1]


def _answers(message: _Given, limit: int | None) -> Iterator[ToolAnswer]:
    role = text(message.role)
    if role == "tool" and message.parts is None:
        call_id = text(message.tool_call_id) or text(message.id)
        if call_id:
            yield ToolAnswer(call_id=call_id, result=content(_plain(message.content), limit))
        return
    for part in _given_parts(message):
        call_id = text(part.id) or text(part.tool_use_id)
        if call_id and text(part.type) in _ANSWERS:
            yield ToolAnswer(call_id=call_id, result=_result(part, limit))


def _plain(value: str | list[_GivenPart] | None) -> object:
    return joined([part.text for part in value]) if isinstance(value, list) else value


def _result(part: _GivenPart, limit: int | None) -> object:
    for value in (part.response, part.result, part.content):
        if value is not UNKNOWN:
            return content(value, limit)
    return UNKNOWN


def _is_spoken(message: _Given) -> bool:
    if text(message.role) != "user":
        return False
    if isinstance(message.content, str) and message.content:
        return True
    return any(text(part.type) in _TEXTS for part in _given_parts(message))


def _given_parts(message: _Given) -> Sequence[_GivenPart]:
    if message.parts is not None:
        return message.parts
    return message.content if isinstance(message.content, list) else ()

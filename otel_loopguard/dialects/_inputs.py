"""Reads what is new in the messages that a model was given: those after its own last answer.

They have the same two forms as answers, and are as long as the conversation, with each call anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._messages import ANSWERS, TEXTS
from otel_loopguard.dialects._values import content, is_array, joined, parsed, text
from otel_loopguard.steps import ModelInput, ToolAnswer

_ASSISTANT = frozenset({"assistant", "model"})


class _GivenPart(msgspec.Struct, frozen=True):
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


_CONVERSATION = msgspec.json.Decoder(list[msgspec.Raw])
_GIVEN = msgspec.json.Decoder(_Given)


def model_input(messages: object, limit: int | None) -> ModelInput | None:
    """Return what stands after the model's last answer; `None` if `messages` cannot be read."""
    new = _after_last_answer(content(messages, limit))
    if new is None:
        return None
    return ModelInput(
        answers=tuple(answer for message in new for answer in _answers(message, limit)),
        spoken=any(_is_spoken(message) for message in new),
    )


def _after_last_answer(conversation: object) -> list[_Given] | None:
    """Return the last messages, those before them unread: a conversation may be very long."""
    decoded = parsed(conversation, _CONVERSATION)
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
        if call_id and text(part.type) in ANSWERS:
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
    return any(text(part.type) in TEXTS for part in _given_parts(message))


def _given_parts(message: _Given) -> Sequence[_GivenPart]:
    if message.parts is not None:
        return message.parts
    return message.content if isinstance(message.content, list) else ()

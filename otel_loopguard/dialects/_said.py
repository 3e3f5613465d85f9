"""Reads what is new in the messages that a model is given, in all forms that providers have.

Those of OpenAI's two APIs, of Anthropic and LangChain, and of the Vercel AI SDK, which stand as
JSON in one attribute. Messages are read from the last one back to the model's own last answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._values import content, is_array, is_mapping, joined, parsed, text
from otel_loopguard.steps import ModelInput, ToolAnswer

MODEL_ROLES = frozenset(
    {"assistant", "model", "ai", "AIMessageChunk", "tool-call", "tool-response"}
)
"""How the model's own messages are marked.

The last two are smolagents': what a tool answered has no call's id, and where a tool failed it
stands for the model's message as well.
"""
PERSON_ROLES = frozenset({"user", "human"})
_NOBODY = frozenset({"", "system", "item_reference"})
_ANSWER_PARTS = frozenset({"tool_result", "tool-result"})
_TEXT_PARTS = frozenset({"text", "input_text"})


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a model's input."""

    by_model: bool = False
    answers: tuple[ToolAnswer, ...] = ()
    spoken: bool = False


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    messages: object = None
    input: object = None
    previous_response_id: object = None


_REQUEST = msgspec.json.Decoder(_Request | list[object])


def new_in(backwards: Iterable[Said], previous_response_id: str = "") -> ModelInput:
    """Return what was said since the model's own last message, given the messages from the last."""
    new = list(takewhile(lambda said: not said.by_model, backwards))
    return ModelInput(
        answers=tuple(answer for said in reversed(new) for answer in said.answers),
        spoken=any(said.spoken for said in new),
        previous_response_id=previous_response_id,
    )


def requested(request: object, limit: int | None) -> ModelInput | None:
    """Return what is new in `request`, JSON text of a whole request or of its messages.

    `None` if it is absent, hidden, cut or of another form.
    """
    shown = content(request, limit)
    read = None if shown is UNKNOWN else parsed(shown, _REQUEST)
    if read is None:
        return None
    given, previous = (
        (read, "")
        if isinstance(read, list)
        else (
            read.input if read.messages is None else read.messages,
            text(read.previous_response_id),
        )
    )
    if isinstance(given, str):
        return ModelInput(spoken=bool(given.strip()), previous_response_id=previous)
    messages = _messages(given)
    if messages is None:
        return None
    new = (_said(message, limit) for message in reversed(messages) if is_mapping(message))
    return new_in(new, previous)


def _messages(given: object) -> Sequence[object] | None:
    # LangChain asks for many prompts at a time, of which there is one.
    inner = given[0] if is_array(given) and len(given) == 1 and is_array(given[0]) else given
    return inner if is_array(inner) and (not inner or is_mapping(inner[-1])) else None


def _said(message: Mapping[str, object], limit: int | None) -> Said:
    inner = message.get("kwargs")
    if "lc" in message and is_mapping(inner):
        return _said(inner, limit)
    kind = text(message.get("type"))
    role = text(message.get("role")) or kind
    if role in MODEL_ROLES:
        return Said(by_model=True)
    if kind.endswith("_output"):
        return Said(answers=tuple(_answer(message, "call_id", "output", limit)))
    if role == "tool" and not is_array(message.get("content")):
        return Said(answers=tuple(_answer(message, "tool_call_id", "content", limit)))
    if role == "tool" or role in PERSON_ROLES:
        return _of_parts(message, role, limit)
    # What else the Responses API lists is the model's: calls, reasoning, searches.
    return Said(by_model="role" not in message and role not in _NOBODY)


def _of_parts(message: Mapping[str, object], role: str, limit: int | None) -> Said:
    whole = message.get("content")
    if not is_array(whole):
        return Said(spoken=bool(text(whole).strip()))
    parts = [part for part in whole if is_mapping(part)]
    answers = [
        answer
        for part in parts
        if text(part.get("type")) in _ANSWER_PARTS
        for answer in _answer(part, *_names_in(part), limit)
    ]
    if role == "tool":
        more = () if answers else _answer(message, "tool_call_id", "content", limit)
        return Said(answers=(*answers, *more))
    spoken = any(text(part.get("type")) in _TEXT_PARTS and part.get("text") for part in parts)
    return Said(answers=tuple(answers), spoken=spoken)


def _names_in(part: Mapping[str, object]) -> tuple[str, str]:
    if "tool_use_id" in part:
        return "tool_use_id", "content"
    return "toolCallId", "output" if "output" in part else "result"


def _answer(
    message: Mapping[str, object], id_name: str, result_name: str, limit: int | None
) -> Iterator[ToolAnswer]:
    call_id = text(message.get(id_name))
    if call_id:
        yield ToolAnswer(call_id=call_id, result=plain(message.get(result_name), limit))


def plain(value: object, limit: int | None) -> object:
    """Return what a tool said, without the parts in which a provider has it said."""
    if is_mapping(value) and set(value) == {"type", "value"}:
        return content(value["value"], limit)
    if is_array(value) and value:
        texts = [
            part.get("text") if is_mapping(part) and text(part.get("type")) in _TEXT_PARTS else None
            for part in value
        ]
        whole = joined([content(piece, limit) for piece in texts])
        return content(value, limit) if whole is UNKNOWN else whole
    return content(value, limit)

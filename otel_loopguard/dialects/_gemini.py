"""Reads requests and answers as Gemini's API has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._messages import ModelAnswer
from otel_loopguard.dialects._values import content, joined, parsed, text
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall


class _Call(msgspec.Struct, frozen=True):
    name: object = None
    id: object = None
    args: object = UNKNOWN


class _Answer(msgspec.Struct, frozen=True):
    id: object = None
    response: object = UNKNOWN


class _Part(msgspec.Struct, frozen=True):
    text: object = None
    thought: object = None
    function_call: _Call | None = None
    function_response: _Answer | None = None


class _Content(msgspec.Struct, frozen=True):
    parts: list[_Part] | None = None
    role: object = None


class _Response(msgspec.Struct, frozen=True):
    content: _Content


class _Declaration(msgspec.Struct, frozen=True):
    name: object = None


class _Tool(msgspec.Struct, frozen=True):
    function_declarations: list[_Declaration] | None = None


class _Config(msgspec.Struct, frozen=True):
    tools: list[_Tool] | None = None


class _Given(msgspec.Struct, frozen=True):
    contents: list[_Content]


class _Offered(msgspec.Struct, frozen=True):
    """The rest of a request: what is not named is passed over."""

    config: _Config


_RESPONSE = msgspec.json.Decoder(_Response)
_GIVEN = msgspec.json.Decoder(_Given)
_OFFERED = msgspec.json.Decoder(_Offered)


def gemini_answer(response: object) -> ModelAnswer:
    """Return the answer in a response, JSON text or the structure, without finish reasons."""
    read = None if response is UNKNOWN else parsed(response, _RESPONSE)
    if read is None:
        return ModelAnswer()
    parts = read.content.parts or []
    calls = [part.function_call for part in parts if part.function_call is not None]
    said = [part.text for part in parts if part.function_call is None and not part.thought]
    return ModelAnswer(
        tool_calls=tuple(
            ToolCall(
                name=text(call.name),
                arguments=content(call.args, None),
                call_id=text(call.id) or None,
            )
            for call in calls
        ),
        output=joined(said),
    )


def gemini_tools(request: object) -> frozenset[str] | Unknown:
    """Return the names of the tools in a request; `UNKNOWN` if any is not known."""
    read = None if request is UNKNOWN else parsed(request, _OFFERED)
    if read is None:
        return UNKNOWN
    tools = read.config.tools or []
    names = [text(known.name) for tool in tools for known in tool.function_declarations or ()]
    hosted = any(tool.function_declarations is None for tool in tools)
    return UNKNOWN if hosted or "" in names else frozenset(names)


def gemini_input(request: object) -> ModelInput | None:
    """Return what stands after the model's last answer; `None` if it cannot be read."""
    read = None if request is UNKNOWN else parsed(request, _GIVEN)
    if read is None:
        return None
    new = list(_new_parts(read.contents))
    return ModelInput(
        answers=tuple(
            ToolAnswer(call_id=text(answer.id), result=content(answer.response, None))
            for part in new
            if (answer := part.function_response) is not None and text(answer.id)
        ),
        spoken=any(part.text for part in new),
    )


def _new_parts(contents: Sequence[_Content]) -> Iterator[_Part]:
    last = max((n for n, one in enumerate(contents) if text(one.role) == "model"), default=-1)
    for given in contents[last + 1 :]:
        yield from given.parts or ()

"""Reads a model's answer as LangChain serialises it, or as OpenAI's Chat API returns it: JSON."""

from __future__ import annotations

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._values import content, parsed, text
from otel_loopguard.steps import ToolCall


class _Function(msgspec.Struct, frozen=True, kw_only=True):
    name: object = None
    arguments: object = None


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    name: object = None
    args: object = None
    id: object = None
    function: _Function | None = None


class _About(msgspec.Struct, frozen=True, kw_only=True):
    id: object = None
    finish_reason: object = None
    stop_reason: object = None


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    content: object = None
    tool_calls: list[_Call] | None = None
    response_metadata: _About = _About()
    kwargs: _Message | None = None


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    message: _Message
    generation_info: _About | None = None
    finish_reason: object = None


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    generations: list[list[_Choice]] = []
    choices: list[_Choice] = []


class ProviderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered, as far as the JSON shows it."""

    tool_calls: tuple[ToolCall, ...] | Unknown = UNKNOWN
    output: str | Unknown = UNKNOWN
    finish_reasons: tuple[str, ...] = ()
    response_id: str = ""


_ANSWER = msgspec.json.Decoder(_Answer)


def model_answer_in(answer: object, limit: int | None) -> ProviderAnswer:
    """Return what `answer` says, in the first choice if there are several."""
    read = None if answer is UNKNOWN else parsed(answer, _ANSWER)
    choices = () if read is None else [one for some in read.generations for one in some]
    choice = next(iter(choices or (read.choices if read else ())), None)
    if choice is None:
        return ProviderAnswer()
    message = choice.message.kwargs or choice.message
    said = content("" if message.content is None else message.content, limit)
    return ProviderAnswer(
        tool_calls=tuple(_call(call, limit) for call in message.tool_calls or ()),
        output=text(said) if isinstance(said, str) else UNKNOWN,
        finish_reasons=_finish_reasons(choice, message.response_metadata),
        response_id=text(message.response_metadata.id),
    )


def _finish_reasons(choice: _Choice, about: _About) -> tuple[str, ...]:
    generated = choice.generation_info or _About()
    given = (
        choice.finish_reason,
        generated.finish_reason,
        about.finish_reason,
        about.stop_reason,
    )
    return tuple(reason for value in given if (reason := text(value)))[:1]


def _call(call: _Call, limit: int | None) -> ToolCall:
    function = call.function or _Function(name=call.name, arguments=call.args)
    return ToolCall(
        name=text(function.name),
        arguments=content(function.arguments, limit),
        call_id=text(call.id) or None,
    )

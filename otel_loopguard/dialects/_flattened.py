"""Reads what a model was given, what it answered and the tools it was offered, from flat names.

`llm.output_messages.0.message.tool_calls.1.tool_call.function.name` is the name of one attribute,
in OpenLLMetry before it took to messages `gen_ai.completion.0.tool_calls.1.name`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._messages import ModelAnswer
from otel_loopguard.dialects._said import MODEL_ROLES, PERSON_ROLES, Said, new_in
from otel_loopguard.dialects._tools import Definition, offered_names
from otel_loopguard.dialects._values import Attributes, content, joined, parsed, text
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall

_NOT_SAID = frozenset({"tool_use", "reasoning"})
"""Parts of an answer that are no text for the user, and leave none out."""
_DEFAULT_ATTRIBUTES = 128
"""How many attributes the SDK keeps on a span, unless told otherwise."""
_MAX_DIGITS = 6


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What a convention puts between the numbers, and after the last."""

    message: str = ""
    call: str = ""
    function: str = ""
    marks: tuple[str, ...] = (".role",)
    """One of them stands on each message of an answer."""


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    call_id: str
    content: object = None


_RESULT = msgspec.json.Decoder(_Result)
_DEFINITION = msgspec.json.Decoder(Definition)


def flattened_answer(
    attributes: Attributes, prefix: str, layout: Layout, limit: int | None
) -> ModelAnswer:
    """Return the answer below `prefix`, without finish reasons.

    With long histories the SDK's limit on attributes is reached, and the oldest are dropped: the
    first messages of an answer, the first calls of a message. What has lost some is not known.
    """
    marks = [f"{layout.message}{mark}" for mark in layout.marks]
    messages = [f"{item}{layout.message}" for item in _numbered(attributes, prefix, *marks)]
    if not messages:
        return ModelAnswer()
    asked = [_calls(attributes, message, layout, limit) for message in messages]
    calls = None if None in asked else tuple(call for some in asked for call in some or ())
    said = [piece for message in messages for piece in _said(attributes, message, limit)]
    # Some packages write a message's calls before its role.
    if not calls and not said and len(attributes) >= _DEFAULT_ATTRIBUTES:
        return ModelAnswer()
    return ModelAnswer(tool_calls=UNKNOWN if calls is None else calls, output=joined(said))


def flattened_input(
    attributes: Attributes, prefix: str, layout: Layout, limit: int | None
) -> ModelInput | None:
    """Return what is new in the messages below `prefix`; `None` if there are none, or some lost."""
    last = _last(attributes, f"{prefix}.")
    roles = (
        (f"{prefix}.{number}", text(attributes.get(f"{prefix}.{number}{layout.message}.role")))
        for number in range(last, -1, -1)
    )
    new = list(takewhile(lambda role: role[1] not in MODEL_ROLES, roles))
    if last < 0 or any(not role for _, role in new):
        return None
    return new_in(
        Said(answers=tuple(_results(attributes, item, limit)))
        if role == "function"
        else _message(attributes, f"{item}{layout.message}", role, limit)
        for item, role in new
    )


def flattened_tools(attributes: Attributes, limit: int | None) -> frozenset[str] | Unknown:
    """Return the names of the tools in `llm.tools`; `UNKNOWN` if any is not known."""
    definitions = [
        _definition(attributes, tool, limit)
        for tool in _numbered(attributes, semconv.LLM_TOOLS, ".tool.json_schema")
    ]
    return offered_names(definitions) if definitions else UNKNOWN


def flattened_functions(attributes: Attributes) -> frozenset[str] | Unknown:
    """Return the names of the tools in `llm.request.functions`; `UNKNOWN` if any is not known."""
    names = [
        Definition(name=attributes[f"{function}.name"])
        for function in _numbered(attributes, semconv.TRACELOOP_FUNCTIONS, ".name")
    ]
    return offered_names(names) if names else UNKNOWN


def _numbered(attributes: Attributes, prefix: str, *marks: str) -> Iterator[str]:
    """Yield `{prefix}.0`, `{prefix}.1`, ... as long as one of the `marks` below it is there."""
    number = 0
    while any(f"{prefix}.{number}{mark}" in attributes for mark in marks):
        yield f"{prefix}.{number}"
        number += 1


def _calls(
    attributes: Attributes, message: str, layout: Layout, limit: int | None
) -> tuple[ToolCall, ...] | None:
    below = f"{message}.tool_calls"
    function = f"{layout.call}{layout.function}"
    calls = tuple(
        ToolCall(
            name=text(attributes[f"{call}{function}.name"]),
            arguments=content(attributes.get(f"{call}{function}.arguments"), limit),
            call_id=text(attributes.get(f"{call}{layout.call}.id")) or None,
        )
        for call in _numbered(attributes, below, f"{function}.name")
    )
    lost = not calls and any(name.startswith(f"{below}.") for name in attributes)
    return None if lost else calls


def _said(attributes: Attributes, message: str, limit: int | None) -> Iterator[object]:
    whole = attributes.get(f"{message}.content")
    if whole is not None:
        yield content(whole, limit)
        return
    for part in _numbered(attributes, f"{message}.contents", ".message_content.type"):
        kind = text(attributes[f"{part}.message_content.type"])
        if kind not in _NOT_SAID:
            shown = attributes.get(f"{part}.message_content.text") if kind == "text" else None
            yield content(shown, limit)


def _message(attributes: Attributes, message: str, role: str, limit: int | None) -> Said:
    if role in PERSON_ROLES:
        return Said(spoken=any(piece != "" for piece in _said(attributes, message, limit)))
    call_id = text(attributes.get(f"{message}.tool_call_id")) if role == "tool" else ""
    if not call_id:
        return Said()
    said = list(_said(attributes, message, limit))
    return Said(answers=(ToolAnswer(call_id=call_id, result=joined(said) if said else UNKNOWN),))


def _results(attributes: Attributes, item: str, limit: int | None) -> Iterator[ToolAnswer]:
    # AutoGen writes `llm.input_messages.3.function.0`, JSON, for each answer.
    for name in _numbered(attributes, f"{item}.function", ""):
        result = parsed(content(attributes[name], limit), _RESULT)
        if result is not None and result.call_id:
            yield ToolAnswer(call_id=result.call_id, result=content(result.content, limit))


def _definition(attributes: Attributes, tool: str, limit: int | None) -> Definition:
    name = attributes.get(f"{tool}.tool.name")
    if name is not None:
        return Definition(name=name)
    schema = content(attributes[f"{tool}.tool.json_schema"], limit)
    return parsed(schema, _DEFINITION) or Definition()


def _last(attributes: Attributes, prefix: str) -> int:
    """Return the highest number behind `prefix`: the lowest may have been dropped."""
    start = len(prefix)
    numbers = {
        name[start : name.find(".", start)] for name in attributes if name.startswith(prefix)
    }
    return max(
        (int(digits) for digits in numbers if digits.isdecimal() and len(digits) <= _MAX_DIGITS),
        default=-1,
    )

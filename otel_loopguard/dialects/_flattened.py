"""Reads a model's answer and the tools it was offered as OpenInference flattens them.

`llm.output_messages.0.message.tool_calls.1.tool_call.function.name` is a name of one attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, takewhile

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._messages import ModelAnswer
from otel_loopguard.dialects._tools import Definition, offered_names
from otel_loopguard.dialects._values import Attributes, content, joined, parsed, text
from otel_loopguard.steps import ToolCall

_NOT_SAID = frozenset({"tool_use", "reasoning"})
"""Parts of an answer that are no text for the user, and leave none out."""
_DEFINITION = msgspec.json.Decoder(Definition)


def flattened_answer(attributes: Attributes, limit: int | None) -> ModelAnswer:
    """Return the answer in `llm.output_messages`, without finish reasons.

    With long histories the SDK's limit of 128 attributes is reached, and the oldest are dropped.
    Every package writes a message's role before the rest of it, so a message with a role is whole.
    """
    messages = list(_numbered(attributes, semconv.LLM_OUTPUT_MESSAGES, "message.role"))
    if not messages:
        return ModelAnswer()
    calls = tuple(
        ToolCall(
            name=text(attributes[f"{call}.tool_call.function.name"]),
            arguments=content(attributes.get(f"{call}.tool_call.function.arguments"), limit),
            call_id=text(attributes.get(f"{call}.tool_call.id")) or None,
        )
        for message in messages
        for call in _numbered(
            attributes, f"{message}.message.tool_calls", "tool_call.function.name"
        )
    )
    said = [piece for message in messages for piece in _said(attributes, message, limit)]
    return ModelAnswer(tool_calls=calls, output=joined(said))


def flattened_tools(attributes: Attributes, limit: int | None) -> frozenset[str] | Unknown:
    """Return the names of the tools in `llm.tools`; `UNKNOWN` if any is not known."""
    definitions = [
        _definition(attributes, tool, limit)
        for tool in _numbered(attributes, semconv.LLM_TOOLS, "tool.json_schema")
    ]
    return offered_names(definitions) if definitions else UNKNOWN


def _said(attributes: Attributes, message: str, limit: int | None) -> Iterator[object]:
    whole = attributes.get(f"{message}.message.content")
    if whole is not None:
        yield content(whole, limit)
        return
    for part in _numbered(attributes, f"{message}.message.contents", "message_content.type"):
        kind = text(attributes[f"{part}.message_content.type"])
        if kind not in _NOT_SAID:
            shown = attributes.get(f"{part}.message_content.text") if kind == "text" else None
            yield content(shown, limit)


def _definition(attributes: Attributes, tool: str, limit: int | None) -> Definition:
    name = attributes.get(f"{tool}.tool.name")
    if name is not None:
        return Definition(name=name)
    schema = content(attributes[f"{tool}.tool.json_schema"], limit)
    return parsed(schema, _DEFINITION) or Definition()


def _numbered(attributes: Attributes, prefix: str, mark: str) -> Iterator[str]:
    """Yield `{prefix}.0`, `{prefix}.1`, ... as long as the attribute `mark` below it is there."""
    return takewhile(
        lambda item: f"{item}.{mark}" in attributes, (f"{prefix}.{n}" for n in count())
    )

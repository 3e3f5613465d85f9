"""Reads span events that hold messages as blocks of Bedrock's Converse API, as Strands writes them.

What comes out are messages in the form of the GenAI conventions.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._inputs import model_input
from otel_loopguard.dialects._values import content, parsed, text
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import ModelInput

_ROLES = {
    semconv.SYSTEM_MESSAGE_EVENT: "system",
    semconv.USER_MESSAGE_EVENT: "user",
    semconv.ASSISTANT_MESSAGE_EVENT: "assistant",
    semconv.TOOL_MESSAGE_EVENT: "user",
}


class _ToolUse(msgspec.Struct, frozen=True, rename="camel"):
    name: object = None
    tool_use_id: object = None
    input: object = None


class _ToolResult(msgspec.Struct, frozen=True, rename="camel"):
    tool_use_id: object = None
    content: object = None


class _Block(msgspec.Struct, frozen=True, rename="camel"):
    text: object = None
    tool_use: _ToolUse | None = None
    tool_result: _ToolResult | None = None
    reasoning_content: object = None


_BLOCKS = msgspec.json.Decoder(list[_Block])


def converse_answer(record: SpanRecord) -> list[dict[str, object]] | None:
    """Return the message that a model answered with; `None` if no event shows it in this form."""
    for event in record.events:
        if event.name == semconv.CHOICE_EVENT:
            parts = _parts(event, "message", record.value_length_limit)
            reason = event.attributes.get("finish_reason")
            return None if parts is None else [{"parts": parts, "finish_reason": reason}]
    return None


def converse_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in the messages that a model was given; `None` if they cannot be read."""
    messages: list[dict[str, object]] = []
    for event in record.events:
        role = _ROLES.get(event.name)
        if role is not None:
            parts = _parts(event, "content", record.value_length_limit)
            if parts is None:
                return None
            messages.append({"role": role, "parts": parts})
    return model_input(messages, record.value_length_limit) if messages else None


def _parts(event: SpanEventRecord, name: str, limit: int | None) -> list[dict[str, object]] | None:
    shown = content(event.attributes.get(name), limit)
    blocks = None if shown is UNKNOWN else parsed(shown, _BLOCKS)
    return None if blocks is None else [part for block in blocks for part in _part(block)]


def _part(block: _Block) -> Iterator[dict[str, object]]:
    if block.tool_use is not None:
        use = block.tool_use
        yield {
            "type": "tool_call",
            "name": text(use.name),
            "id": use.tool_use_id,
            "arguments": use.input,
        }
    elif block.tool_result is not None:
        result = block.tool_result
        yield {
            "type": "tool_call_response",
            "id": result.tool_use_id,
            "response": result.content,
        }
    elif block.reasoning_content is None:
        kind = "text" if isinstance(block.text, str) else "other"
        yield {"type": kind, "content": block.text}

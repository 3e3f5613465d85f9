"""Anthropic Messages: from a turn to its JSON and to the events of its stream.

Source: `message` and the streaming events in Anthropic's API reference; what real clients demand of
them was tried with the `anthropic` package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from otel_loopguard.testing.scripts import OfferedTool
from otel_loopguard.testing.wire import (
    JsonObject,
    Mention,
    ParsedRequest,
    Reply,
    ServerSentEvent,
    Usage,
    WireFormat,
    decode_request,
    encode_json,
    halves,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Tool(msgspec.Struct):
    name: str
    input_schema: dict[str, object] | None = None


class _Block(msgspec.Struct):
    type: str = "text"
    id: str | None = None
    tool_use_id: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Block] = ""


class _Body(msgspec.Struct):
    model: str
    max_tokens: int
    messages: list[_Message]
    tools: list[_Tool] | None = None
    stream: bool | None = None


def read_request(body: bytes) -> ParsedRequest:
    """Read a request; raises `RequestError` where the body is none."""
    request = decode_request(body, _Body)
    return ParsedRequest(
        model=request.model,
        stream=bool(request.stream),
        # A tool of the provider itself, such as its web search, has no schema and no caller.
        tools=tuple(
            OfferedTool(name=tool.name, parameters=tool.input_schema)
            for tool in request.tools or ()
            if tool.input_schema is not None
        ),
        history=tuple(mention for message in request.messages for mention in _mentions(message)),
    )


def _mentions(message: _Message) -> Iterator[Mention]:
    for block in [] if isinstance(message.content, str) else message.content:
        if block.type == "tool_use":
            yield Mention(kind="call", call_id=block.id or "")
        elif block.type == "tool_result":
            yield Mention(kind="result", call_id=block.tool_use_id or "")


def write_reply(reply: Reply) -> JsonObject:
    """Write the reply as one `message`."""
    return {
        **_head(reply),
        "content": list(_blocks(reply)),
        "stop_reason": _stop_reason(reply),
        "usage": _usage(reply.usage, reply.usage.output_tokens),
    }


def stream_reply(reply: Reply) -> Iterator[ServerSentEvent]:
    """Write the reply as the events of a stream, with every text in two parts."""
    for name, fields in _events(reply):
        yield ServerSentEvent(name=name, data=encode_json({"type": name, **fields}))


def _events(reply: Reply) -> Iterator[tuple[str, JsonObject]]:
    begun: JsonObject = {**_head(reply), "content": [], "usage": _usage(reply.usage, 1)}
    yield "message_start", {"message": begun}
    yield "ping", {}
    for index, block in enumerate(_blocks(reply)):
        empty: JsonObject = {"input": {}} if reply.turn.calls else {"text": ""}
        yield "content_block_start", {"index": index, "content_block": {**block, **empty}}
        for delta in _deltas(block):
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ending: JsonObject = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    spent: JsonObject = {"output_tokens": reply.usage.output_tokens}
    yield "message_delta", {"delta": ending, "usage": spent}
    yield "message_stop", {}


def _deltas(block: JsonObject) -> Iterator[JsonObject]:
    if block["type"] == "text":
        for part in halves(str(block["text"])):
            yield {"type": "text_delta", "text": part}
        return
    for part in halves(encode_json(block["input"])):
        yield {"type": "input_json_delta", "partial_json": part}


def _blocks(reply: Reply) -> Iterator[JsonObject]:
    if not reply.turn.calls:
        yield {"type": "text", "text": reply.turn.text}
    for index, call in enumerate(reply.turn.calls):
        arguments = dict(call.arguments)
        yield {
            "type": "tool_use",
            "id": f"toolu_{reply.ident}_{index}",
            "name": call.name,
            "input": arguments,
        }


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.turn.calls else "end_turn"


def _head(reply: Reply) -> JsonObject:
    return {
        "id": f"msg_{reply.ident}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(usage: Usage, output_tokens: int) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def error_body(message: str) -> JsonObject:
    """Write the body of a refusal that clients do not retry."""
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


ANTHROPIC_MESSAGES = WireFormat(
    api="anthropic-messages",
    path="/v1/messages",
    read=read_request,
    write=write_reply,
    stream=stream_reply,
    error=error_body,
)
"""Anthropic Messages."""

"""Anthropic Messages: from a turn to its JSON and to the events of its stream.

Source: `message` and the streaming events in Anthropic's API reference; what real clients demand of
them was tried with the `anthropic` package.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from otel_loopguard.testing.scripts import FinishReason, OfferedTool, ScriptedCall
from otel_loopguard.testing.wire import (
    JsonObject,
    Mention,
    ParsedRequest,
    Reply,
    ServerSentEvent,
    Usage,
    WireFormat,
    call_text,
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


def read_request(body: bytes, _address: Mapping[str, str]) -> ParsedRequest:
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


_STOP_REASONS: Mapping[FinishReason, str] = MappingProxyType(
    {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "refusal",
    }
)


def write_reply(reply: Reply) -> JsonObject:
    """Write the reply as one `message`."""
    return {
        **_head(reply),
        "content": list(_blocks(reply)),
        "stop_reason": _STOP_REASONS[reply.turn.ending],
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
    for index, (block, deltas) in enumerate(zip(_blocks(reply), _deltas(reply), strict=True)):
        empty: JsonObject = {"input": {}} if block["type"] == "tool_use" else {"text": ""}
        yield "content_block_start", {"index": index, "content_block": {**block, **empty}}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ending: JsonObject = {"stop_reason": _STOP_REASONS[reply.turn.ending], "stop_sequence": None}
    spent: JsonObject = {"output_tokens": reply.usage.output_tokens}
    yield "message_delta", {"delta": ending, "usage": spent}
    yield "message_stop", {}


def _deltas(reply: Reply) -> Iterator[list[JsonObject]]:
    """Write the parts of each block, in the order of the blocks."""
    if reply.turn.text:
        yield [{"type": "text_delta", "text": part} for part in halves(reply.turn.text)]
    for call in reply.turn.calls:
        text = _streamed(call, reply)
        yield [{"type": "input_json_delta", "partial_json": part} for part in halves(text)]


def _streamed(call: ScriptedCall, reply: Reply) -> str:
    """Return the text of a call's arguments: what was cut ends in the middle, all else is JSON."""
    return call_text(call) if reply.turn.ending == "length" else encode_json(call.arguments)


def _blocks(reply: Reply) -> Iterator[JsonObject]:
    if reply.turn.text:
        yield {"type": "text", "text": reply.turn.text}
    for index, call in enumerate(reply.turn.calls):
        arguments = dict(call.arguments)
        yield {
            "type": "tool_use",
            "id": f"toolu_{reply.ident}_{index}",
            "name": call.name,
            "input": arguments,
        }


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


_ERRORS: Mapping[int, str] = MappingProxyType(
    {
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
)
_SERVER_ERRORS = 500


def error_body(status: int, message: str) -> JsonObject:
    """Write the body of an error with this HTTP status."""
    other = "api_error" if status >= _SERVER_ERRORS else "invalid_request_error"
    return {
        "type": "error",
        "error": {"type": _ERRORS.get(status, other), "message": message},
        "request_id": None,
    }


ANTHROPIC_MESSAGES = WireFormat(
    api="anthropic-messages",
    paths=("/v1/messages",),
    read=read_request,
    write=write_reply,
    stream=stream_reply,
    error=error_body,
)
"""Anthropic Messages."""

"""OpenAI Chat Completions: from a turn to its JSON and to the chunks of its stream.

Source: `chat.completion` and `chat.completion.chunk` in OpenAI's API reference; what real clients
demand of them was tried with the `openai` package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from otel_loopguard.testing.openai_errors import error_body
from otel_loopguard.testing.scripts import OfferedTool
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
    from collections.abc import Iterator, Mapping


class _Function(msgspec.Struct):
    name: str
    parameters: dict[str, object] | None = None


class _Tool(msgspec.Struct):
    type: str = "function"
    function: _Function | None = None


class _Call(msgspec.Struct):
    id: str


class _Message(msgspec.Struct):
    role: str
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Body(msgspec.Struct):
    model: str
    messages: list[_Message]
    tools: list[_Tool] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


def read_request(body: bytes, _address: Mapping[str, str]) -> ParsedRequest:
    """Read a request; raises `RequestError` where the body is none."""
    request = decode_request(body, _Body)
    options = request.stream_options
    functions = [tool.function for tool in request.tools or () if tool.function is not None]
    return ParsedRequest(
        model=request.model,
        stream=bool(request.stream),
        stream_usage=options is not None and bool(options.include_usage),
        tools=tuple(
            OfferedTool(name=each.name, parameters=each.parameters or {}) for each in functions
        ),
        history=tuple(mention for message in request.messages for mention in _mentions(message)),
    )


def _mentions(message: _Message) -> Iterator[Mention]:
    for call in message.tool_calls or ():
        yield Mention(kind="call", call_id=call.id)
    if message.role == "tool":
        yield Mention(kind="result", call_id=message.tool_call_id or "")


def write_reply(reply: Reply) -> JsonObject:
    """Write the reply as one `chat.completion`."""
    calls = _calls(reply)
    text = reply.turn.text
    message: JsonObject = {"role": "assistant", "content": text if text or not calls else None}
    choice = {
        "index": 0,
        "message": {**message, "tool_calls": calls} if calls else message,
        "finish_reason": reply.turn.ending,
        "logprobs": None,
    }
    head = _head(reply, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(reply.usage)}


def stream_reply(reply: Reply) -> Iterator[ServerSentEvent]:
    """Write the reply as the chunks of a stream, with every text in two parts."""
    head = _head(reply, "chat.completion.chunk")
    for delta in _deltas(reply):
        yield _chunk({**head, "choices": [_chunk_choice(delta, None)]})
    yield _chunk({**head, "choices": [_chunk_choice({}, reply.turn.ending)]})
    if reply.stream_usage:
        yield _chunk({**head, "choices": [], "usage": _usage(reply.usage)})
    yield ServerSentEvent(data="[DONE]")


def _deltas(reply: Reply) -> Iterator[JsonObject]:
    text = reply.turn.text
    yield {"role": "assistant", "content": "" if text or not reply.turn.calls else None}
    for part in halves(text) if text else ():
        yield {"content": part}
    for index, call in enumerate(reply.turn.calls):
        opening: JsonObject = {"id": reply.call_id(index), "type": "function"}
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, **opening, "function": function}]}
        for part in halves(call_text(call)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _calls(reply: Reply) -> list[JsonObject]:
    return [
        {
            "id": reply.call_id(index),
            "type": "function",
            "function": {"name": call.name, "arguments": call_text(call)},
        }
        for index, call in enumerate(reply.turn.calls)
    ]


def _head(reply: Reply, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{reply.ident}",
        "object": kind,
        "created": reply.created_s,
        "model": reply.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _chunk_choice(delta: JsonObject, finish_reason: str | None) -> JsonObject:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}


def _chunk(data: JsonObject) -> ServerSentEvent:
    return ServerSentEvent(data=encode_json(data))


def _usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


OPENAI_CHAT = WireFormat(
    api="openai-chat",
    paths=("/v1/chat/completions",),
    read=read_request,
    write=write_reply,
    stream=stream_reply,
    error=error_body,
)
"""OpenAI Chat Completions."""

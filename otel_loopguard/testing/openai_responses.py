"""OpenAI Responses: from a turn to its JSON and to the events of its stream.

Source: `response` and the `response.*` stream events in OpenAI's API reference; what real clients
demand of them was tried with the `openai` package.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from otel_loopguard.testing.openai_errors import error_body
from otel_loopguard.testing.scripts import OfferedTool
from otel_loopguard.testing.wire import (
    JsonObject,
    Mention,
    ParsedRequest,
    Reply,
    RequestError,
    ServerSentEvent,
    Usage,
    WireFormat,
    call_text,
    decode_request,
    encode_json,
    halves,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class _Tool(msgspec.Struct):
    type: str
    name: str | None = None
    parameters: dict[str, object] | None = None


class _Item(msgspec.Struct):
    type: str = "message"
    call_id: str | None = None


class _Body(msgspec.Struct):
    model: str
    input: str | list[_Item] = ""
    tools: list[_Tool] | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    conversation: object = None


def read_request(body: bytes, _address: Mapping[str, str]) -> ParsedRequest:
    """Read a request; raises `RequestError` where the body is none, or leans on kept history."""
    request = decode_request(body, _Body)
    if request.previous_response_id or request.conversation:
        raise RequestError(
            "the scripted model keeps no history: send the whole input instead of "
            "'previous_response_id' or 'conversation'"
        )
    items = [] if isinstance(request.input, str) else request.input
    return ParsedRequest(
        model=request.model,
        stream=bool(request.stream),
        tools=tuple(_offered_tools(request.tools or ())),
        history=tuple(mention for item in items for mention in _mentions(item)),
    )


def _offered_tools(tools: Sequence[_Tool]) -> Iterator[OfferedTool]:
    for tool in tools:
        if tool.type == "function" and tool.name is not None:
            yield OfferedTool(name=tool.name, parameters=tool.parameters or {})


def _mentions(item: _Item) -> Iterator[Mention]:
    if item.type == "function_call":
        yield Mention(kind="call", call_id=item.call_id or "")
    elif item.type == "function_call_output":
        yield Mention(kind="result", call_id=item.call_id or "")


_INCOMPLETE: Mapping[str, str] = MappingProxyType(
    {"length": "max_output_tokens", "content_filter": "content_filter"}
)
"""Why a response is not complete, by what ended the turn; none where it is."""


def write_reply(reply: Reply) -> JsonObject:
    """Write the reply as one `response`, completed or cut off."""
    why = _INCOMPLETE.get(reply.turn.ending)
    return {
        **_head(reply),
        "status": _status(reply),
        "incomplete_details": why and {"reason": why},
        "output": list(_items(reply)),
        "usage": _usage(reply.usage),
    }


def stream_reply(reply: Reply) -> Iterator[ServerSentEvent]:
    """Write the reply as the events of a stream, with every text in two parts."""
    for number, (name, fields) in enumerate(_events(reply)):
        data = {"type": name, "sequence_number": number, **fields}
        yield ServerSentEvent(name=name, data=encode_json(data))


def _events(reply: Reply) -> Iterator[tuple[str, JsonObject]]:
    begun: JsonObject = {**_head(reply), "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(_items(reply)):
        place: JsonObject = {"output_index": index, "item_id": item["id"]}
        is_call = item["type"] == "function_call"
        empty: JsonObject = {"arguments": ""} if is_call else {"content": []}
        opened = {**item, **empty, "status": "in_progress"}
        yield "response.output_item.added", {"output_index": index, "item": opened}
        if is_call:
            yield from _call_events(str(item["arguments"]), place)
        else:
            yield from _text_events(reply.turn.text, {**place, "content_index": 0})
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield f"response.{_status(reply)}", {"response": write_reply(reply)}


def _call_events(arguments: str, place: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for part in halves(arguments):
        yield "response.function_call_arguments.delta", {**place, "delta": part}
    yield "response.function_call_arguments.done", {**place, "arguments": arguments}


def _text_events(text: str, place: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    yield "response.content_part.added", {**place, "part": _text_part("")}
    for part in halves(text):
        yield "response.output_text.delta", {**place, "delta": part, "logprobs": []}
    yield "response.output_text.done", {**place, "text": text, "logprobs": []}
    yield "response.content_part.done", {**place, "part": _text_part(text)}


def _items(reply: Reply) -> Iterator[JsonObject]:
    if reply.turn.text:
        yield {
            "type": "message",
            "id": f"msg_{reply.ident}",
            "role": "assistant",
            "status": "completed" if reply.turn.calls else _status(reply),
            "content": [_text_part(reply.turn.text)],
        }
    for index, call in enumerate(reply.turn.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{reply.ident}_{index}",
            "call_id": reply.call_id(index),
            "name": call.name,
            "arguments": call_text(call),
            "status": _status(reply),
        }


def _status(reply: Reply) -> str:
    return "incomplete" if reply.turn.ending in _INCOMPLETE else "completed"


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _head(reply: Reply) -> JsonObject:
    return {
        "id": f"resp_{reply.ident}",
        "object": "response",
        "created_at": reply.created_s,
        "model": reply.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "service_tier": "default",
    }


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }


OPENAI_RESPONSES = WireFormat(
    api="openai-responses",
    paths=("/v1/responses",),
    read=read_request,
    write=write_reply,
    stream=stream_reply,
    error=error_body,
)
"""OpenAI Responses."""

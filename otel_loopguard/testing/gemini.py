"""Gemini: from a turn to its JSON and to the events of its stream.

Source: `GenerateContentResponse` and `Content` in the reference of the Gemini API; what real
clients demand of them was tried with the `google-genai` packages for Python and for JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from otel_loopguard.testing._gemini_requests import read_request, signature_of
from otel_loopguard.testing.scripts import FinishReason
from otel_loopguard.testing.wire import (
    JsonObject,
    Reply,
    ServerSentEvent,
    Usage,
    WireFormat,
    encode_json,
    halves,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_BLOCKED: JsonObject = {
    "category": "HARM_CATEGORY_DANGEROUS_CONTENT",
    "probability": "HIGH",
    "blocked": True,
}
_FINISH_REASONS: Mapping[FinishReason, str] = MappingProxyType(
    {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
)


def write_reply(reply: Reply) -> JsonObject:
    """Write the reply as one `GenerateContentResponse`."""
    return _response(reply, list(_parts(reply)), ended=True)


def stream_reply(reply: Reply) -> Iterator[ServerSentEvent]:
    """Write the reply as the events of a stream, with every text in two parts and calls whole."""
    *before, last = list(_streamed_parts(reply)) or [[]]
    for parts in before:
        yield ServerSentEvent(data=encode_json(_response(reply, parts, ended=False)))
    yield ServerSentEvent(data=encode_json(_response(reply, last, ended=True)))


def _streamed_parts(reply: Reply) -> Iterator[list[JsonObject]]:
    for part in _parts(reply):
        if "text" not in part:
            yield [part]
        else:
            for half in halves(str(part["text"])):
                yield [{"text": half}]


def _parts(reply: Reply) -> Iterator[JsonObject]:
    if reply.turn.text:
        yield {"text": reply.turn.text}
    for index, call in enumerate(reply.turn.calls):
        if call.text is not None and reply.turn.ending == "length":
            continue  # a call that was cut does not come at all: there are no parts of one
        call_id, arguments = reply.call_id(index), dict(call.arguments)
        yield {
            "functionCall": {"id": call_id, "name": call.name, "args": arguments},
            "thoughtSignature": signature_of(call_id),
        }


def _response(reply: Reply, parts: list[JsonObject], *, ended: bool) -> JsonObject:
    content: JsonObject = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    reason = _FINISH_REASONS[reply.turn.ending]
    ending: JsonObject = {"finishReason": reason} if ended else {}
    # What was held back has no content, and says what it was taken for.
    if ended and reason == "SAFETY":
        ending["safetyRatings"] = [_BLOCKED]
    candidate = {**({"content": content} if parts or reason != "SAFETY" else {}), **ending}
    return {
        "candidates": [{**candidate, "index": 0}],
        "usageMetadata": _usage(reply.usage),
        "modelVersion": reply.model,
        "responseId": reply.ident,
    }


def _usage(usage: Usage) -> JsonObject:
    # Google leaves out what is zero.
    cached: JsonObject = {"cachedContentTokenCount": usage.cached_tokens}
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.total_tokens,
        **(cached if usage.cached_tokens else {}),
    }


_STATUS: Mapping[int, str] = MappingProxyType(
    {
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        409: "ABORTED",
        429: "RESOURCE_EXHAUSTED",
        499: "CANCELLED",
        501: "UNIMPLEMENTED",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }
)
_SERVER_ERRORS = 500


def error_body(status: int, message: str) -> JsonObject:
    """Write the body of an error with this HTTP status."""
    other = "INTERNAL" if status >= _SERVER_ERRORS else "INVALID_ARGUMENT"
    return {"error": {"code": status, "message": message, "status": _STATUS.get(status, other)}}


GEMINI = WireFormat(
    api="gemini",
    paths=("/v1beta/models/{model}:{method}", "/v1/models/{model}:{method}"),
    read=read_request,
    write=write_reply,
    stream=stream_reply,
    error=error_body,
)
"""Gemini, as Google's own clients ask for it."""

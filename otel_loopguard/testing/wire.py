"""What the wire formats have in common: what a request says, what a reply holds, and their shape.

A wire format is data (`WireFormat`): where it is served, how a request is read, how a reply is
written at once and as a stream. A new one is one file and one line in the model server's table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import msgspec

from otel_loopguard.testing.scripts import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from otel_loopguard.testing.scripts import OfferedTool, ScriptedCall, Turn

__all__ = [
    "JsonObject",
    "Mention",
    "ParsedRequest",
    "Reply",
    "RequestError",
    "ServerSentEvent",
    "Usage",
    "WireFormat",
    "call_text",
    "decode_request",
    "encode_json",
    "halves",
    "history_fault",
    "usage_of",
]

JsonObject: TypeAlias = dict[str, object]

_Body = TypeVar("_Body")


class RequestError(ValueError):
    """A request that the server refuses with HTTP 400; the text says what is wrong with it."""


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call, or the result of one, in the history that a request repeats."""

    kind: Literal["call", "result"]
    call_id: str


class ParsedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the server takes note of in a request."""

    model: str
    stream: bool = False
    stream_usage: bool = True
    """Whether a stream is to end with the usage."""
    tools: tuple[OfferedTool, ...] = ()
    history: tuple[Mention, ...] = ()
    """The tool calls and results, in the order of the request."""

    @property
    def tool_results(self) -> int:
        """How many tool results the request carries."""
        return sum(1 for mention in self.history if mention.kind == "result")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A turn with everything that the wire adds to it."""

    turn: Turn
    model: str
    usage: Usage
    ident: str
    """Unique among the replies of every server: all ids of the reply are made from it."""
    created_s: int
    stream_usage: bool = True

    def call_id(self, index: int) -> str:
        """Return the id of the turn's tool call at this index, never used before."""
        return f"call_{self.ident}_{index}"


class ServerSentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a `text/event-stream`."""

    data: str
    name: str | None = None

    def encode(self) -> bytes:
        """Write the event as it goes over the wire."""
        head = "" if self.name is None else f"event: {self.name}\n"
        return f"{head}data: {self.data}\n\n".encode()


class WireFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How one API is spoken."""

    api: str
    paths: tuple[str, ...]
    """Below the server's root. A name in braces, as in `/v1beta/models/{model}:{method}`, stands
    for any text without a slash."""
    read: Callable[[bytes, Mapping[str, str]], ParsedRequest]
    """Read a request, from its body and what its address says: what stands for the names in braces,
    and the fields of the query. Raises `RequestError`."""
    write: Callable[[Reply], JsonObject]
    stream: Callable[[Reply], Iterator[ServerSentEvent]]
    error: Callable[[int, str], JsonObject]
    """The body of an error, from its HTTP status and its text."""


def usage_of(results: int) -> Usage:
    """Return the tokens of a request that carries so many tool results.

    The history grows by 30 tokens a result; once it has grown, its first 64 tokens are cached.
    """
    return Usage(
        input_tokens=100 + 30 * results, cached_tokens=64 if results else 0, output_tokens=20
    )


def history_fault(history: Sequence[Mention]) -> str | None:
    """Say what a provider would refuse in this history; `None` if nothing.

    Every tool call is to be answered by a result with its id, and every result belongs to a call
    before it.
    """
    waiting: dict[str, None] = {}
    for mention in history:
        if mention.kind == "call":
            waiting[mention.call_id] = None
        elif mention.call_id not in waiting:
            return (
                f"the tool result with the id {mention.call_id!r} answers no open tool call before "
                "it; send one result for each call, with the id of the call"
            )
        else:
            del waiting[mention.call_id]
    if not waiting:
        return None
    names = ", ".join(repr(each) for each in waiting)
    return (
        f"no tool result in the request answers the tool call with the id {names}; send one result "
        "for each call of an assistant turn, with the id of the call"
    )


def decode_request(body: bytes, kind: type[_Body]) -> _Body:
    """Decode a JSON body; raises `RequestError` with the place and what was expected there."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise RequestError(f"the request's body cannot be read: {error}") from error


def halves(text: str) -> tuple[str, str]:
    """Cut a text in two, so that a stream of it makes its reader put it together again."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def call_text(call: ScriptedCall) -> str:
    """Return a call's arguments as an API carries them that carries text."""
    return encode_json(call.arguments) if call.text is None else call.text


def encode_json(value: object) -> str:
    """Write a value as compact JSON text."""
    return msgspec.json.encode(value).decode()

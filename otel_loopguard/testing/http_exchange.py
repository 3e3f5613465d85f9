"""One HTTP request and its answer, as an ASGI server passes them on.

Plain ASGI: the routing of a framework costs more than all else that the model server does.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_NAME = re.compile(r"\\\{(\w+)\\\}")


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its whole body."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: str) -> str:
        """Return the header of this name in lower case; empty where there is none."""
        wanted = name.encode()
        return next((value.decode("latin-1") for key, value in self.headers if key == wanted), "")


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: its whole body, or the events of a stream."""

    status: int
    body: bytes = b""
    events: Iterable[bytes] | None = None


async def read_request(scope: Scope, receive: Receive) -> HttpRequest | None:
    """Read the request to its end; `None` where the client went away before."""
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    query: bytes = scope["query_string"]
    return HttpRequest(
        method=scope["method"],
        path=scope["path"],
        query=dict(parse_qsl(query.decode("latin-1"))) if query else {},
        headers=scope["headers"],
        body=b"".join(parts),
    )


async def send_answer(answer: HttpAnswer, send: Send) -> None:
    """Send the answer; each event of a stream on its own."""
    if answer.events is None:
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(answer.body)).encode()),
        ]
    else:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    for event in answer.events or ():
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": answer.body})


def path_pattern(path: str) -> re.Pattern[str]:
    """Return what matches the path, with any text without a slash for each name in braces."""
    return re.compile(_NAME.sub(r"(?P<\1>[^/]+)", re.escape(path)))

"""A scripted model on loopback, for any client in any language.

    with model_server("endless") as server:
        client = openai.OpenAI(base_url=server.url, api_key="none")
        ...
        assert server.count() == 5

The model's name in a request picks the script where it names one, so that one server plays a
runaway and a healthy run at once; the server's own script plays every other model.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from otel_loopguard.testing._loopback import serving
from otel_loopguard.testing.anthropic_messages import ANTHROPIC_MESSAGES
from otel_loopguard.testing.openai_chat import OPENAI_CHAT
from otel_loopguard.testing.openai_errors import error_body
from otel_loopguard.testing.openai_responses import OPENAI_RESPONSES
from otel_loopguard.testing.scripts import find_script, script_named
from otel_loopguard.testing.wire import (
    JsonObject,
    ParsedRequest,
    Reply,
    RequestError,
    Usage,
    WireFormat,
    encode_json,
    history_fault,
    usage_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Sequence

    from starlette.requests import Request

FORMATS: Sequence[WireFormat] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC_MESSAGES)
"""Every API that the server speaks."""

_OK = 200
_BAD_REQUEST = 400
_NOT_FOUND = 404


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One model request as the server saw it."""

    number: int
    """1-based, in the order of arrival."""
    api: str
    model: str
    script: str
    stream: bool
    tool_results: int
    retry_count: int | None
    """How often the client has tried before, where it says so."""
    status: int
    """The HTTP status of the answer."""
    usage: Usage | None = None
    """What the answer says it cost; `None` where the request was refused."""


class ModelServer:
    """A running scripted model: where it is, and what it was asked."""

    def __init__(self, root: str, requests: Sequence[ModelRequest]) -> None:
        """Watch the requests that the server at this address notes down."""
        self._root = root
        self._requests = requests

    @property
    def url(self) -> str:
        """The base address for OpenAI clients, `/v1` included."""
        return f"{self._root}/v1"

    @property
    def root(self) -> str:
        """The base address for Anthropic clients, which add `/v1` themselves."""
        return self._root

    @property
    def requests(self) -> list[ModelRequest]:
        """The model requests so far, in the order of arrival, refused ones included."""
        return list(self._requests)

    def count(self, script: str | None = None) -> int:
        """Count the model requests so far: all of them, or those of one script."""
        return sum(1 for each in self.requests if script in (None, each.script))


@contextmanager
def model_server(
    script: str = "endless", *, strict: bool = True, cap: int | None = None
) -> Generator[ModelServer]:
    """Serve a scripted model on a free port of 127.0.0.1 until the block is left.

    `strict` refuses a history in which a tool call has no result with its id, or a result no call,
    as providers do. `cap` bounds the requests of each script: what comes after them is answered
    with HTTP 400, which clients do not retry. Raises `ValueError` for a script that does not exist
    and for a cap that is no positive number.
    """
    script_named(script)
    if cap is not None and (isinstance(cap, bool) or cap < 1):
        raise ValueError(
            f"cap={cap!r} is no bound; expected a whole number of requests from 1, or None"
        )
    model = _ScriptedModel(script, strict=strict, cap=cap)
    with serving(model.application(), name="loopguard-model-server") as root:
        yield ModelServer(root, model.requests)


class _ScriptedModel:
    """The application behind the server. Runs on the server's event loop only."""

    def __init__(self, script: str, *, strict: bool, cap: int | None) -> None:
        self.requests: list[ModelRequest] = []
        self._script = script
        self._strict = strict
        self._cap = cap
        # A random part, because ids must differ between servers too.
        self._prefix = secrets.token_hex(4)

    def application(self) -> Starlette:
        routes = [
            Route(each.path, partial(self._handle, wire_format=each), methods=["POST"])
            for each in FORMATS
        ]
        elsewhere = Route("/{path:path}", _refuse_path, methods=["GET", "POST"])
        return Starlette(routes=[*routes, elsewhere])

    async def _handle(self, request: Request, wire_format: WireFormat) -> Response:
        body = await request.body()
        try:
            parsed = wire_format.read(body)
        except RequestError as error:
            self._note(request, wire_format, ParsedRequest(model=""), _BAD_REQUEST)
            return _json(wire_format.error(str(error)), _BAD_REQUEST)
        fault = self._fault(parsed)
        self._note(request, wire_format, parsed, _BAD_REQUEST if fault else _OK)
        if fault:
            return _json(wire_format.error(fault), _BAD_REQUEST)
        reply = self._reply(parsed)
        if not parsed.stream:
            return _json(wire_format.write(reply), _OK)
        return StreamingResponse(_encoded(wire_format, reply), media_type="text/event-stream")

    def _script_of(self, parsed: ParsedRequest) -> str:
        return parsed.model if find_script(parsed.model) else self._script

    def _fault(self, parsed: ParsedRequest) -> str | None:
        if self._cap is not None:
            script = self._script_of(parsed)
            if sum(1 for each in self.requests if each.script == script) >= self._cap:
                return f"script {script!r} has had the {self._cap} requests that its cap allows"
        return history_fault(parsed.history) if self._strict else None

    def _note(
        self, request: Request, wire_format: WireFormat, parsed: ParsedRequest, status: int
    ) -> None:
        retry_count = request.headers.get("x-stainless-retry-count", "")
        noted = ModelRequest(
            number=len(self.requests) + 1,
            api=wire_format.api,
            model=parsed.model,
            script=self._script_of(parsed),
            stream=parsed.stream,
            tool_results=parsed.tool_results,
            retry_count=int(retry_count) if retry_count.isdecimal() else None,
            status=status,
            usage=usage_of(parsed.tool_results) if status == _OK else None,
        )
        self.requests.append(noted)

    def _reply(self, parsed: ParsedRequest) -> Reply:
        results = parsed.tool_results
        return Reply(
            turn=script_named(self._script_of(parsed))(parsed.tools, results),
            model=parsed.model,
            usage=usage_of(results),
            ident=f"{self._prefix}{len(self.requests):06d}",
            created_s=int(time.time()),
            stream_usage=parsed.stream_usage,
        )


async def _encoded(wire_format: WireFormat, reply: Reply) -> AsyncIterator[bytes]:
    for event in wire_format.stream(reply):
        yield event.encode()


async def _refuse_path(request: Request) -> Response:
    paths = ", ".join(repr(each.path) for each in FORMATS)
    message = (
        f"the scripted model serves nothing at {request.method} {request.url.path!r}; expected "
        f"POST to one of {paths}"
    )
    return _json(error_body(message), _NOT_FOUND)


def _json(body: JsonObject, status: int) -> Response:
    return Response(encode_json(body), status, media_type="application/json")

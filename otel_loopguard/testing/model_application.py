"""The application behind the model server: notes each request down and plays its script."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from otel_loopguard.testing._routes import route, wrong_path
from otel_loopguard.testing.http_exchange import (
    HttpAnswer,
    HttpRequest,
    Receive,
    Scope,
    Send,
    read_request,
    send_answer,
)
from otel_loopguard.testing.openai_errors import error_body
from otel_loopguard.testing.scripts import NoTurnError, Script, Turn, Usage, find_script
from otel_loopguard.testing.wire import (
    JsonObject,
    ParsedRequest,
    Reply,
    RequestError,
    WireFormat,
    encode_json,
    history_fault,
    usage_of,
)

KEPT = 100_000
"""So many requests are kept at least, and as many ids of tool results; all are counted."""

_OK = 200
_BAD_REQUEST = 400
_NOT_FOUND = 404
_COUNT = re.compile(r"[0-9]{1,9}")


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


class ModelApplication:
    """The application. Its `play` and `refuse` are for any thread, the rest for the server's."""

    def __init__(
        self,
        script: Script,
        *,
        strict: bool = True,
        cap: int | None = None,
        on_request: Callable[[ModelRequest], object] | None = None,
        on_wrong_path: Callable[[str], object] | None = None,
    ) -> None:
        """Play a script, as `model_server` says."""
        self.script = script
        self.requests: list[ModelRequest] = []
        self.counts: Counter[str | None] = Counter()
        """Requests of each script; of all of them under `None`."""
        self.tool_results = 0
        self._seen: dict[str, None] = {}
        """The ids of the calls whose results came in, the last ones."""
        self._played: Counter[str] = Counter()
        self._strict = strict
        self._cap = cap
        self._on_request = on_request
        self._on_wrong_path = on_wrong_path
        # A random part, because ids must differ between servers too.
        self._prefix = secrets.token_hex(4)
        self._refusal: str | None = None
        self._waiting: set[asyncio.Future[str]] = set()
        """One of each request whose answer is slow: it comes to the reason why it is refused."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def play(self, script: Script) -> None:
        """Play this script from its beginning, and refuse nothing any more that comes."""
        self._refusal = None
        self._played[script.name] = 0
        self.script = script

    def refuse(self, reason: str) -> None:
        """Refuse each request from now on, those that wait for a slow answer too."""
        self._refusal = reason
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._refuse_waiting, reason)

    def _refuse_waiting(self, reason: str) -> None:
        for each in self._waiting:
            if not each.done():
                each.set_result(reason)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        self._loop = asyncio.get_running_loop()
        request = await read_request(scope, receive)
        if request is not None:
            await send_answer(await self.answer(request), send)

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Play the next turn of the request's script."""
        wire_format, address = route(request)
        if wire_format is None or request.method != "POST":
            return self._lost(request)
        parsed = ParsedRequest(model="")
        try:
            parsed = wire_format.read(request.body, address)
            turn = self._turn(parsed)
        except Exception as error:  # noqa: BLE001 -- of a script or a schema: clients retry a 500
            noted = self._note(request, wire_format, parsed, _BAD_REQUEST)
            return self._refused(noted, wire_format, _text_of(error))
        return await self._play(request, wire_format, parsed, turn)

    async def _play(
        self, request: HttpRequest, wire_format: WireFormat, parsed: ParsedRequest, turn: Turn
    ) -> HttpAnswer:
        usage = turn.usage or usage_of(parsed.tool_results)
        status = turn.error.status if turn.error else _OK
        noted = self._note(request, wire_format, parsed, status, usage)
        if turn.delay_s:
            reason = await self._refused_within(turn.delay_s)
            if reason is not None:
                return self._refused(noted, wire_format, reason)
        reply = Reply(
            turn=turn,
            model=parsed.model,
            usage=usage,
            ident=f"{self._prefix}{noted.number:06d}",
            created_s=int(time.time()),
            stream_usage=parsed.stream_usage,
        )
        try:
            answer = _written(wire_format, reply, stream=parsed.stream)
        except Exception as error:  # noqa: BLE001 -- the turn's arguments may be anything
            return self._refused(noted, wire_format, _text_of(error))
        return self._told(noted, wire_format, answer)

    def _script_of(self, parsed: ParsedRequest) -> Script:
        return find_script(parsed.model) or self.script

    def _turn(self, parsed: ParsedRequest) -> Turn:
        """Return the turn to play; raises for a request that gets none, and what a script does."""
        script = self._script_of(parsed)
        fault = self._fault(parsed, script.name)
        if fault is not None:
            raise RequestError(fault)
        played = self._played[script.name]
        count = played if script.counts == "requests" else parsed.tool_results
        turn = _checked(script(parsed.tools, count), script.name)
        self._played[script.name] = played + 1
        return turn

    def _fault(self, parsed: ParsedRequest, script: str) -> str | None:
        if self._refusal is not None:
            return self._refusal
        if self._cap is not None and self.counts[script] >= self._cap:
            return f"script {script!r} has had the {self._cap} requests that its cap allows"
        return history_fault(parsed.history) if self._strict else None

    async def _refused_within(self, seconds: float) -> str | None:
        """Wait so long, and return why the request is refused, if it is, as soon as it is."""
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            return await asyncio.wait_for(waiting, seconds)
        except asyncio.TimeoutError:
            return None
        finally:
            self._waiting.discard(waiting)

    def _note(
        self,
        request: HttpRequest,
        wire_format: WireFormat,
        parsed: ParsedRequest,
        status: int,
        usage: Usage | None = None,
    ) -> ModelRequest:
        retry_count = request.header("x-stainless-retry-count")
        noted = ModelRequest(
            number=self.counts[None] + 1,
            api=wire_format.api,
            model=parsed.model,
            script=self._script_of(parsed).name,
            stream=parsed.stream,
            tool_results=parsed.tool_results,
            retry_count=int(retry_count) if _COUNT.fullmatch(retry_count) else None,
            status=status,
            usage=usage if status == _OK else None,
        )
        self._see(each.call_id for each in parsed.history if each.kind == "result")
        self.requests.append(noted)
        if len(self.requests) > 2 * KEPT:
            del self.requests[:KEPT]
        self.counts[noted.script] += 1
        self.counts[None] += 1
        return noted

    def _see(self, call_ids: Iterator[str]) -> None:
        for call_id in call_ids:
            if call_id not in self._seen:
                self.tool_results += 1
                if len(self._seen) >= KEPT:
                    del self._seen[next(iter(self._seen))]
                self._seen[call_id] = None

    def _refused(self, noted: ModelRequest, wire_format: WireFormat, reason: str) -> HttpAnswer:
        """Refuse a request that was noted, and note that."""
        refused = self._corrected(noted)
        answer = _json(wire_format.error(_BAD_REQUEST, reason), _BAD_REQUEST)
        return self._told(refused, wire_format, answer)

    def _corrected(self, noted: ModelRequest) -> ModelRequest:
        refused = msgspec.structs.replace(noted, status=_BAD_REQUEST, usage=None)
        from_the_end = self.requests[-1].number - noted.number + 1
        if from_the_end <= len(self.requests):  # else so many came since that it was dropped
            self.requests[-from_the_end] = refused
        return refused

    def _told(self, noted: ModelRequest, wire_format: WireFormat, answer: HttpAnswer) -> HttpAnswer:
        """Tell of a request as it is answered, and return the answer: another if that fails."""
        if self._on_request is None:
            return answer
        try:
            self._on_request(noted)
        except Exception as error:  # noqa: BLE001 -- foreign code
            self._corrected(noted)
            return _json(wire_format.error(_BAD_REQUEST, _text_of(error)), _BAD_REQUEST)
        return answer

    def _lost(self, request: HttpRequest) -> HttpAnswer:
        text = wrong_path(request)
        try:
            if self._on_wrong_path is not None:
                self._on_wrong_path(text)
        except Exception as error:  # noqa: BLE001 -- foreign code
            text = _text_of(error)
        return _json(error_body(_NOT_FOUND, text), _NOT_FOUND)


def _checked(turn: object, script: str) -> Turn:
    if not isinstance(turn, Turn):
        raise TypeError(f"script {script!r} returned {turn!r}; expected a Turn")
    return turn


def _written(wire_format: WireFormat, reply: Reply, *, stream: bool) -> HttpAnswer:
    if (error := reply.turn.error) is not None:
        return _json(wire_format.error(error.status, error.message), error.status)
    if not stream:
        return _json(wire_format.write(reply), _OK)
    # All at once, or what cannot be written would show when the answer has begun.
    return HttpAnswer(status=_OK, events=[each.encode() for each in wire_format.stream(reply)])


def _text_of(error: Exception) -> str:
    """Say why a request gets no turn: for what was not foreseen, where it was raised too."""
    if isinstance(error, (RequestError, NoTurnError)):
        return str(error)
    raised = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{raised.filename}, line {raised.lineno}"
    return f"the scripted model cannot answer: {type(error).__name__}: {error} ({place})"


def _json(body: JsonObject, status: int) -> HttpAnswer:
    return HttpAnswer(status=status, body=encode_json(body).encode())

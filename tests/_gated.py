"""What the tests of the model gate share: a server that answers every path, and ways to ask."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT
from otel_loopguard.testing._loopback import serving
from tests._tracing import Traced

CHAT = "/v1/chat/completions"
CALL_ID = "call_8f3a0b"
TOLD = {"messages": [{"role": "tool", "tool_call_id": CALL_ID, "content": "nothing"}]}
"""What a loop sends after its first call."""
CLAUDE_TURN = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1},
}

Ask: TypeAlias = "Callable[[], None] | Callable[[], Awaitable[None]]"


class World:
    """A server that plays Anthropic, answers every other path, and remembers what came."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: Counter[str] = Counter()
        """Requests by path."""
        self.headers: Mapping[str, str] = {}
        """Those of the last request."""
        self.failures: list[int] = []
        """Statuses that it answers with before it answers as it should."""
        self.answers: dict[str, Response] = {}
        """What it answers to some paths."""

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        self.seen[path] += 1
        self.headers = request.headers
        body = await request.body()
        if self.failures:
            status = self.failures.pop(0)
            # AWS's clients go by this header.
            headers = {"x-amzn-errortype": "ThrottlingException"} if status == 429 else {}
            return Response("{}", status, headers, media_type="application/json")
        if path.startswith("/moved/"):
            return RedirectResponse(path.removeprefix("/moved"), 307)
        if path in self.answers:
            return self.answers[path]
        if path != "/v1/messages":
            return JSONResponse({"object": "list", "data": [], "input_tokens": 1})
        if not json.loads(body or b"{}").get("stream"):
            return JSONResponse(CLAUDE_TURN)
        events = [
            {"type": "message_start", "message": {**CLAUDE_TURN, "content": []}},
            {"type": "message_stop"},
        ]
        lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        return Response("".join(lines), media_type="text/event-stream")


@contextmanager
def serving_world() -> Generator[World]:
    """Serve one on loopback."""
    world = World()
    app = Starlette(routes=[Route("/{path:path}", world.answer, methods=["GET", "POST"])])
    with serving(app, name="plain") as world.url:
        yield world


def limit(calls: int) -> Policy:
    return Policy.none().with_limits(max_llm_calls=calls)


def current_run() -> Run:
    slot = CURRENT.get()
    assert slot is not None
    (run,) = slot.runs.values()
    return run


def ask_with(client: Ask) -> None:
    made = client()
    if made is not None:
        asyncio.run(_awaited(made))


async def _awaited(made: Awaitable[Any]) -> None:
    await made


def originals(places: Iterable[tuple[type, str]]) -> list[object]:
    return [vars(owner)[name] for owner, name in places]


def are_same(some: Sequence[object], others: Sequence[object]) -> list[bool]:
    return [now is then for now, then in zip(some, others, strict=True)]


def check_put_back(process: Traced, places: Sequence[tuple[type, str]], client: Ask) -> None:
    """Let two guards come and go: there is one layer, and nothing of it is left."""
    before = originals(places)

    first = process.guard(limit(1), mode="enforce")
    patched = originals(places)
    assert not any(are_same(patched, before))
    second = process.guard(limit(1), mode="enforce")
    assert all(are_same(originals(places), patched)), "one layer"
    first.shutdown()
    first.shutdown()
    with guarded_run():
        ask_with(client)
        with pytest.raises(RunAborted):
            ask_with(client)
    second.shutdown()

    assert all(are_same(originals(places), before))
    with guarded_run():
        ask_with(client)
        ask_with(client)


def check_patched_over(process: Traced, owner: type, name: str, client: Ask) -> None:
    """Patch over the gate, take it off and put it up again: nothing is lost, nothing doubled."""
    before = vars(owner)[name]
    first = process.guard(limit(1), mode="enforce")
    ours = getattr(owner, name)

    def theirs(self: object, *args: Any, **kwargs: Any) -> Any:
        return ours(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, theirs)
        first.shutdown()
        assert vars(owner)[name] is theirs
        ask_with(client)
        second = process.guard(limit(1), mode="enforce")
        assert vars(owner)[name] is theirs
        with guarded_run():
            ask_with(client)
            with pytest.raises(RunAborted):
                ask_with(client)
            assert current_run().ahead == 1
    second.shutdown()
    assert vars(owner)[name] is before

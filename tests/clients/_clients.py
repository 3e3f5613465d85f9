"""The clients that are tried, and how each plays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from importlib.metadata import version
from itertools import islice
from typing import Any, Protocol

import msgspec

from otel_loopguard.testing import ModelServer, model_server
from tests.clients import (
    _anthropic,
    _google_genai,
    _javascript,
    _openai_chat,
    _openai_responses,
    _openai_responses_helper,
)
from tests.clients._plays import EVERY, LIMIT
from tests.clients._seen import Failure, Report, Seen, Turn


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A client, for one API."""

    title: str
    api: str
    """As the server names it."""
    program: str
    """The module that plays it; with `.mjs`, what stands behind a colon is told to it."""
    packages: tuple[str, ...]
    address: str
    """How it is pointed at `server`, as it is written in its language."""
    finishes: str
    """Whose words it has for how a turn ended, of `FINISHES`."""


class _Player(Protocol):
    """What the module of a client for Python has."""

    @property
    def ERRORS(self) -> tuple[type[Exception], ...]:  # noqa: N802  a constant of the module
        """Its own errors."""
        ...

    def opened(self, root: str) -> AbstractContextManager[Any]:
        """Return a client of the server at this address; closes with its context."""
        ...

    @property
    def turns(self) -> Callable[..., Iterator[Turn]]:
        """Yields each turn that the client gets, and answers its calls after that."""
        ...


_PLAYERS: Mapping[str, _Player] = {
    "_anthropic": _anthropic,
    "_google_genai": _google_genai,
    "_openai_chat": _openai_chat,
    "_openai_responses": _openai_responses,
    "_openai_responses_helper": _openai_responses_helper,
}
"""Imported here, and not where they are wanted, because that is in threads: two at once may find a
client's own dependency half imported."""


def _python(title: str, api: str, module: str, package: str, address: str, way: str = "") -> Client:
    return Client(
        title=f"{title} for Python{way}",
        api=api,
        program=module,
        packages=(package,),
        address=address,
        finishes=api,
    )


def _node(title: str, api: str, module: str, package: str, address: str) -> Client:
    return Client(
        title=f"{title} for JavaScript",
        api=api,
        program=f"{module}.mjs",
        packages=(package,),
        address=address,
        finishes=api,
    )


def _ai_sdk(api: str, package: str, address: str) -> Client:
    return Client(
        title="Vercel AI SDK",
        api=api,
        program=f"ai_sdk.mjs:{api}",
        packages=("ai", package),
        address=address,
        finishes="ai-sdk",
    )


_URL, _ROOT = "base_url=server.url", "base_url=server.root"
CLIENTS: Mapping[str, Client] = {
    "python-openai-chat": _python("`openai`", "openai-chat", "_openai_chat", "openai", _URL),
    "python-openai-responses": _python(
        "`openai`", "openai-responses", "_openai_responses", "openai", _URL
    ),
    "python-openai-responses-helper": _python(
        "`openai`",
        "openai-responses",
        "_openai_responses_helper",
        "openai",
        _URL,
        ", `responses.stream()`",
    ),
    "python-anthropic": _python(
        "`anthropic`", "anthropic-messages", "_anthropic", "anthropic", _ROOT
    ),
    "python-google-genai": _python(
        "`google-genai`",
        "gemini",
        "_google_genai",
        "google-genai",
        "http_options=HttpOptions(base_url=server.root)",
    ),
    "javascript-openai-chat": _node(
        "`openai`", "openai-chat", "openai_chat", "openai", "baseURL: `${root}/v1`"
    ),
    "javascript-openai-responses": _node(
        "`openai`", "openai-responses", "openai_responses", "openai", "baseURL: `${root}/v1`"
    ),
    "javascript-anthropic": _node(
        "`@anthropic-ai/sdk`",
        "anthropic-messages",
        "anthropic",
        "@anthropic-ai/sdk",
        "baseURL: root",
    ),
    "javascript-google-genai": _node(
        "`@google/genai`",
        "gemini",
        "google_genai",
        "@google/genai",
        "httpOptions: { baseUrl: root }",
    ),
    "ai-sdk-openai-chat": _ai_sdk("openai-chat", "@ai-sdk/openai", "baseURL: `${root}/v1`"),
    "ai-sdk-openai-responses": _ai_sdk(
        "openai-responses", "@ai-sdk/openai", "baseURL: `${root}/v1`"
    ),
    "ai-sdk-anthropic": _ai_sdk("anthropic-messages", "@ai-sdk/anthropic", "baseURL: `${root}/v1`"),
    "ai-sdk-google": _ai_sdk("gemini", "@ai-sdk/google", "baseURL: `${root}/v1beta`"),
}


def report_of(client: Client, scripts: Iterable[str] = EVERY) -> Report:
    """Play every script, at once and streamed, all at the same time against one server."""
    plays = [(script, stream) for script in scripts for stream in (False, True)]
    with model_server() as server:
        if ".mjs" in client.program:
            seen, versions = _javascript.play(client.program, client.packages, server.root, plays)
        else:
            seen, versions = _play(client, server, plays), _versions(client)
        requests = Counter((each.script, each.stream) for each in server.requests)
        results = server.tool_results
    return Report(plays=tuple(seen), requests=requests, tool_results=results, versions=versions)


def _versions(client: Client) -> dict[str, str]:
    return {package: version(package) for package in client.packages}


def _play(client: Client, server: ModelServer, plays: list[tuple[str, bool]]) -> list[Seen]:
    player = _PLAYERS[client.program]
    with player.opened(server.root) as opened, ThreadPoolExecutor(len(plays)) as threads:
        return list(threads.map(partial(_seen, player, opened), plays))


def _seen(player: _Player, opened: object, play: tuple[str, bool]) -> Seen:
    model, stream = play
    turns: list[Turn] = []
    failure = None
    try:
        for turn in islice(player.turns(opened, model, stream=stream), LIMIT):
            turns.append(turn)  # noqa: PERF402  those before a failure count as well
    except Exception as error:  # noqa: BLE001  whatever a client raises is what it shows
        status = getattr(error, "status_code", getattr(error, "code", None))
        failure = Failure(
            type=type(error).__name__,
            own=isinstance(error, player.ERRORS),
            status=status if isinstance(status, int) else None,
            message=str(error),
        )
    return Seen(model=model, stream=stream, turns=tuple(turns), failure=failure)

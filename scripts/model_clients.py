"""Writes docs/model-clients.md: the clients that the scripted model was tried with, what they show.

    python -m scripts.model_clients             write the page, from tests/testdata/clients
    python -m scripts.model_clients --measure   play all scripts with all clients first

`make client-sheets` measures, in the environment that has the clients; the tests of the clients
fail where what they see is no longer what the sheets say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tests.clients._plays import ANSWERED_ODDLY, FAILING
from tests.clients._sheets import Row, Sheet, ShownCall, path_of, rows_of, sheets, write

PAGE = Path(__file__).resolve().parent.parent / "docs" / "model-clients.md"

_HEAD = """\
# Clients of the scripted model

The [scripted model server](model-server.md) speaks the wire formats of OpenAI (Chat Completions and
Responses), Anthropic (Messages) and Google (Gemini). These official clients play every script
against it in the tests, at once and streamed, and show the turns, calls, tokens and endings that
the script says. `make test-clients` runs them; it needs Node 20 or later with npm.

`server` is what `model_server()` gives in Python. `root` is its `server.root`, or the address that
`otel-loopguard fake-model` prints, as a program in another language gets it. Any text is a key.

Where they are told nothing they read `OPENAI_BASE_URL` (`server.url`), and `ANTHROPIC_BASE_URL` and
`GOOGLE_GEMINI_BASE_URL` (`server.root`). The Vercel AI SDK is an exception: for Anthropic it wants
the `/v1` in the variable too, and for Gemini it reads none.

Gemini's clients may leave out the ids of calls. A call is then known by the signature beside it;
where a client sends neither back, by its place in the conversation. Two such conversations on one
server look alike, and `server.tool_results` counts too few: give each a server, or count the tools.

| client | API | versions | how it is pointed at the server |
|---|---|---|---|
"""
_ODD = """
## What they show of odd scripts

A script such as `bad_arguments` plays what no client expects. What each of them makes of it is its
own matter, and what your agent gets. A call is shown as its arguments: in quotes where the client
shows a text, else as a value.

"""
_FAILING = """\
## What they show of errors

`http_error:CODE` answers every request with that status. What the client raises, and how many
requests it made before it gave up; each with the defaults of the client.

"""
_FINISHED = "no call, no text"


def page(measured: Mapping[str, Sheet] | None = None) -> str:
    """Return the page, of what is committed if no other sheets are given."""
    every = tuple((measured or sheets()).values())
    return "".join(
        [
            _HEAD,
            *(_client(sheet) for sheet in every),
            _ODD,
            *(line for script in ANSWERED_ODDLY for line in _script(script, every)),
            _FAILING,
            *_failing(every),
        ]
    )


def _client(sheet: Sheet) -> str:
    versions = ", ".join(f"`{name}` {version}" for name, version in sheet.versions.items())
    address = f"`` {sheet.address} ``" if "`" in sheet.address else f"`{sheet.address}`"
    return f"| {sheet.title} | {sheet.api} | {versions} | {address} |\n"


def _script(script: str, every: Sequence[Sheet]) -> Iterator[str]:
    yield f"### `{script}`\n\n| client | API | shows | ends with | then |\n|---|---|---|---|---|\n"
    for sheet in every:
        rows = [row for row in sheet.rows if row.script == script]
        for row, way in _ways(rows):
            title = f"{sheet.title}{way}"
            yield f"| {title} | {sheet.api} | {_shown(row)} | {_ending(row)} | {_then(row)} |\n"
    yield "\n"


def _ways(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Put the two ways together where they show the same."""
    plain, streamed = rows
    if msgspec.structs.replace(streamed, stream=False) == plain:
        return [(plain, "")]
    return [(plain, ", at once"), (streamed, ", streamed")]


def _shown(row: Row) -> str:
    if not row.turns:
        return ""
    texts = [f"the text `{row.text}`"] if row.text else []
    return ", ".join([*texts, *(_call(call) for call in row.calls)]) or _FINISHED


def _call(call: ShownCall) -> str:
    arguments = msgspec.json.encode(call.arguments).decode()
    if isinstance(call.arguments, str):
        arguments = f"'{call.arguments}'"
    failure = f" and `{call.failure}`" if call.failure else ""
    return f"`{call.name}` with `{arguments}`{failure}"


def _ending(row: Row) -> str:
    return f"`{row.finish}`" if row.finish else ""


def _then(row: Row) -> str:
    if row.failure:
        return f"raises `{row.failure}`"
    return "takes the call's result" if row.calls else ""


def _failing(every: Sequence[Sheet]) -> Iterator[str]:
    codes = [script.partition(":")[2] for script in FAILING]
    yield f"| client | API | {' | '.join(codes)} |\n|---|---|{'---|' * len(codes)}\n"
    for sheet in every:
        for rows, way in _ways_of_errors(sheet):
            cells = " | ".join(f"`{row.failure}`, {row.requests}" for row in rows)
            yield f"| {sheet.title}{way} | {sheet.api} | {cells} |\n"


def _ways_of_errors(sheet: Sheet) -> list[tuple[list[Row], str]]:
    rows = [[row for row in sheet.rows if row.script == script] for script in FAILING]
    plain, streamed = [row[0] for row in rows], [row[1] for row in rows]
    if [msgspec.structs.replace(row, stream=False) for row in streamed] == plain:
        return [(plain, "")]
    return [(plain, ", at once"), (streamed, ", streamed")]


def measure() -> None:
    """Play all scripts with all clients, and write their sheets."""
    # Only the environment that has the clients can import them.
    from tests.clients._clients import CLIENTS, report_of  # noqa: PLC0415

    for name, client in CLIENTS.items():
        report = report_of(client)
        sheet = Sheet(
            title=client.title,
            api=client.api,
            address=client.address,
            versions=report.versions,
            rows=rows_of(report),
        )
        write(path_of(name), sheet)
        print(path_of(name))


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        measure()
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)

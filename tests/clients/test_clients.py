"""Official clients and the scripted model server: every script, at once and streamed.

The clients for JavaScript need Node 20 or later with its npm; without them these tests fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
import pytest

from otel_loopguard.testing.scripts import DESCRIPTIONS, script_named
from scripts.javascript_packages import NodeMissingError
from tests.clients import _javascript
from tests.clients._clients import CLIENTS, report_of
from tests.clients._javascript import installed
from tests.clients._plays import EVERY, FINISHES, LIMIT, ODD, PLAIN, expected
from tests.clients._seen import Report, Turn
from tests.clients._sheets import path_of, read, rows_of

Reports = Mapping[str, Future[Report]]

HELPER = "python-openai-responses-helper"
NOT_ITS_OWN: Mapping[tuple[str, str], str] = {
    # The helper waits for `response.completed`, and does not know `response.incomplete`.
    **{(HELPER, script): "RuntimeError" for script in ("truncated", "truncated_call", "filtered")},
    # It parses the arguments of tools in strict mode, of which a provider says that they are JSON.
    (HELPER, "bad_arguments"): "JSONDecodeError",
}
"""What clients let through of streams, by script: nothing that the server could mend."""

each_client = pytest.mark.parametrize("client", CLIENTS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


@pytest.fixture(scope="module")
def reports() -> Generator[Reports]:
    """Let all clients play at the same time: most of it is waiting until one tries again."""
    with ThreadPoolExecutor(4) as threads:
        yield {name: threads.submit(report_of, client) for name, client in CLIENTS.items()}


@pytest.mark.parametrize("script", PLAIN)
@both_ways
@each_client
def test_a_client_shows_what_the_script_says(
    reports: Reports, client: str, script: str, *, stream: bool
) -> None:
    report = reports[client].result()
    seen = report.of(script, stream=stream)

    assert seen.failure is None
    assert [shown(turn) for turn in seen.turns] == expected(script)
    calling, answering = FINISHES[CLIENTS[client].finishes]
    assert [turn.finish for turn in seen.turns] == [
        calling if turn.calls else answering for turn in seen.turns
    ]
    ids = [call.id for turn in seen.turns for call in turn.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert report.requests[script, stream] == len(seen.turns)


def shown(turn: Turn) -> dict[str, object]:
    return {
        "text": turn.text,
        "calls": [(call.name, value_of(call.arguments)) for call in turn.calls],
        "tokens": turn.tokens,
    }


def value_of(arguments: object) -> object:
    return msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments


@each_client
def test_a_client_shows_of_odd_scripts_what_its_sheet_says(reports: Reports, client: str) -> None:
    """`make client-sheets` writes it anew: look at the difference."""
    report = reports[client].result()
    sheet = read(path_of(client))

    assert rows_of(report) == sheet.rows
    assert report.versions == sheet.versions


@each_client
def test_every_result_is_counted_once(reports: Reports, client: str) -> None:
    """Also of a client that sends no ids with them, as Google's for JavaScript is played here."""
    report = reports[client].result()
    answered = [turn for seen in report.plays for turn in seen.turns[:-1]]

    assert report.tool_results == sum(len(turn.calls) for turn in answered) >= 100


@pytest.mark.parametrize("script", ODD)
@both_ways
@each_client
def test_what_a_client_raises_is_its_own(
    reports: Reports, client: str, script: str, *, stream: bool
) -> None:
    """A crash of its parser would be no answer that a provider gives."""
    seen = reports[client].result().of(script, stream=stream)

    assert seen.turns or seen.failure
    if seen.failure is not None:
        known = NOT_ITS_OWN.get((client, script)) if stream else None
        assert (None if seen.failure.own else seen.failure.type) == known, seen.failure


@pytest.mark.parametrize("script", [each for each in ODD if each.startswith("http_error:")])
@both_ways
@each_client
def test_a_client_shows_the_status_of_an_error(
    reports: Reports, client: str, script: str, *, stream: bool
) -> None:
    seen = reports[client].result().of(script, stream=stream)

    assert seen.failure is not None
    assert seen.turns == ()
    assert seen.failure.status == int(script.partition(":")[2])
    assert "an error that the script plays" in seen.failure.message


def test_every_script_is_played() -> None:
    families = {re.sub(r":.*", "", name) for name in DESCRIPTIONS}
    assert {re.sub(r":.*", "", name) for name in EVERY} == families
    assert [script_named(name).name for name in EVERY] == list(EVERY)
    assert len(expected("endless")) == LIMIT


def test_without_node_it_is_said_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NodeMissingError, match=r"'node' was not found on PATH \(/nowhere\)"):
        installed()


def test_packages_are_named_with_exact_versions() -> None:
    package = msgspec.json.decode((_javascript.PROGRAMS / "package.json").read_bytes())
    wanted: Mapping[str, str] = package["dependencies"]
    assert {name for client in CLIENTS.values() for name in client.packages} <= {
        *wanted,
        *("openai", "anthropic", "google-genai"),
    }
    is_exact: Callable[[str], object] = re.compile(r"\d+\.\d+\.\d+").fullmatch
    assert [name for name, version in wanted.items() if not is_exact(version)] == []

"""The page of the scripted model's clients is that of the committed sheets."""

from __future__ import annotations

import pytest

from scripts.model_clients import PAGE, page
from tests.clients._plays import ODD
from tests.clients._sheets import Row, Sheet, ShownCall, sheets

CALL = ShownCall(name="search", arguments='{"a": b}')


def sheet_of(**changes: Row) -> Sheet:
    """Return a sheet in which every odd script shows nothing, but for those that are named."""
    rows = [
        changes.get(f"{script}_{'streamed' if stream else 'plain'}")
        or Row(script=script, stream=stream, turns=1, requests=1, finish="stop")
        for script in ODD
        for stream in (False, True)
    ]
    return Sheet(title="One", api="any", address="a: `b`", versions={"x": "1"}, rows=tuple(rows))


def lines_of(sheet: Sheet, script: str) -> list[str]:
    section = page({"one": sheet}).partition(f"### `{script}`")[2].partition("##")[0]
    return [line for line in section.splitlines() if line.startswith("| One")]


def test_the_page_is_that_of_the_sheets() -> None:
    assert PAGE.read_text("utf-8") == page(), "stale: make client-sheets"


@pytest.mark.parametrize("name", sheets())
def test_a_sheet_has_every_odd_script_in_both_ways(name: str) -> None:
    ways = [(row.script, row.stream) for row in sheets()[name].rows]
    assert ways == [(script, stream) for script in ODD for stream in (False, True)]


def test_ways_that_show_the_same_share_a_line() -> None:
    assert lines_of(sheet_of(), "empty") == ["| One | any | no call, no text | `stop` |  |"]


def test_ways_that_differ_have_a_line_each() -> None:
    plain = Row(
        script="bad_arguments", stream=False, turns=4, requests=4, finish="calls", calls=(CALL,)
    )
    streamed = Row(
        script="bad_arguments", stream=True, turns=0, requests=1, failure="SomeError", status=None
    )
    sheet = sheet_of(bad_arguments_plain=plain, bad_arguments_streamed=streamed)
    assert lines_of(sheet, "bad_arguments") == [
        "| One, at once | any | `search` with `'{\"a\": b}'` | `calls` | takes the call's result |",
        "| One, streamed | any |  |  | raises `SomeError` |",
    ]


def test_an_address_that_has_a_backtick_is_quoted_by_two() -> None:
    assert "| One | any | `x` 1 | `` a: `b` `` |\n" in page({"one": sheet_of()})

"""The page on results lists what the code masks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from otel_loopguard.values.volatile import (
    DURATION_KEYS,
    DURATION_UNITS,
    IDENTIFIER_KEYS,
    MOMENT_KEYS,
    Masking,
)

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


def listed(heading: str) -> tuple[str, ...]:
    """Return the keys in one row of the table of keys."""
    table = PAGE.partition("<!-- keys: begin -->")[2].partition("<!-- keys: end -->")[0]
    (row,) = re.findall(rf"^\| {re.escape(heading)} \| (.+) \|$", table, re.MULTILINE)
    return tuple(re.findall(r"`([^`]+)`", row))


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("durations", DURATION_KEYS),
        ("durations, with a unit at the end", DURATION_UNITS),
        ("moments", MOMENT_KEYS),
        ("names given anew to each call", IDENTIFIER_KEYS),
    ],
)
def test_the_page_lists_the_keys_of_the_code(heading: str, keys: tuple[str, ...]) -> None:
    assert listed(heading) == keys


def rows_by_value() -> list[tuple[str, str]]:
    table = PAGE.partition("By value,")[2].partition("By key:")[0]
    found = re.findall(r"^\| [^|]+ \| `(<[a-z]+>)` \| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    return [
        (mark, example)
        for mark, examples in found
        for example in re.findall(r"`([^`]+)`", examples)
    ]


def test_every_example_of_the_page_is_masked_as_it_says() -> None:
    rows = rows_by_value()

    assert {mark for mark, _ in rows} == {"<time>", "<duration>", "<uuid>", "<address>"}
    for mark, example in rows:
        assert Masking().masked_result(f'"a {example}"'.encode()) == f'"a {mark}"'.encode()

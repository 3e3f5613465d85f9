"""The page of what the guard alone does is that of the committed rows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from scripts.stopping_page import PAGE, page
from tests._zero_code import (
    HEALTHY,
    UNTOUCHED,
    Figure,
    Healthy,
    Row,
    Sheet,
    Spent,
    Together,
    sheets,
)

FIVE = Spent(model_requests=5, tool_executions=5)
SIX = Spent(model_requests=6, tool_executions=6)
STOPPED = Row(
    around="nothing",
    mode="sync",
    rule="repeated_result",
    at_the_trip=FIVE,
    at_the_end=FIVE,
    error="RunAborted",
    run_aborted="itself",
    healthy=UNTOUCHED,
    together=Together(runaway=FIVE, run_aborted="itself", healthy=HEALTHY, same_answer=True),
)
LATE = msgspec.structs.replace(
    STOPPED,
    at_the_end=SIX,
    together=Together(runaway=SIX, run_aborted="itself", healthy=HEALTHY, same_answer=True),
)


def sheet_of(*rows: Row) -> Sheet:
    return Sheet(title="one", versions={"one": "1.0", "spans": "2.0"}, rows=rows)


def lines_of(*rows: Row) -> list[str]:
    return [line for line in page({"one": sheet_of(*rows)}).splitlines() if "| One |" in line]


def test_the_page_is_that_of_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(), "stale: make stopping-page"


@pytest.mark.parametrize("name", sheets())
def test_each_figure_that_is_not_at_its_target_has_a_reason(name: str) -> None:
    sheet = sheets()[name]
    assert sheet.rows
    for row in sheet.rows:
        assert set(row.reasons) == row.off_target(), (row.around, row.mode)


def test_every_mode_is_explained() -> None:
    explanations = page().partition("## Modes")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in explanations.splitlines() if line.startswith("|")]
    explained = {mode.strip() for row in rows for mode in row.split(",")}
    assert {row.mode for sheet in sheets().values() for row in sheet.rows} <= explained


@pytest.mark.parametrize(
    ("changes", "figures"),
    [
        ({}, set[str]()),
        ({"run_aborted": "wrapped", "error": "Other"}, {"together"}),
        ({"at_the_trip": None}, {"trip", "after the trip"}),
        ({"at_the_trip": SIX, "at_the_end": SIX}, {"trip", "together"}),
        ({"at_the_end": SIX}, {"after the trip", "together"}),
        ({"at_the_end": Spent(model_requests=5, tool_executions=6)}, {"together"}),
        ({"run_aborted": "text"}, {"caller", "together"}),
        ({"healthy": Healthy(spent=FIVE, same_answer=True, warnings=0)}, {"healthy"}),
        ({"healthy": Healthy(spent=HEALTHY, same_answer=False, warnings=0)}, {"healthy"}),
        ({"healthy": Healthy(spent=HEALTHY, same_answer=True, warnings=1)}, {"healthy"}),
    ],
)
def test_what_is_at_its_target(changes: Mapping[str, object], figures: set[str]) -> None:
    assert msgspec.structs.replace(STOPPED, **changes).off_target() == figures


@pytest.mark.parametrize(
    "together",
    [
        Together(runaway=SIX, run_aborted="itself", healthy=HEALTHY, same_answer=True),
        Together(runaway=FIVE, run_aborted="absent", healthy=HEALTHY, same_answer=True),
        Together(runaway=FIVE, run_aborted="itself", healthy=FIVE, same_answer=True),
        Together(runaway=FIVE, run_aborted="itself", healthy=HEALTHY, same_answer=False),
    ],
)
def test_runs_at_once_are_to_be_as_alone(together: Together) -> None:
    assert msgspec.structs.replace(STOPPED, together=together).off_target() == {"together"}


def test_modes_that_are_alike_share_a_line() -> None:
    other = msgspec.structs.replace(STOPPED, mode="async")
    around = msgspec.structs.replace(STOPPED, around="own-span")
    stopped = "5 / 5, `repeated_result` | 5 / 5 | 0 | `RunAborted` |"
    assert lines_of(STOPPED, other, around)[:2] == [
        f"| One | nothing | sync, async | {stopped}",
        f"| One | a span of the application | sync | {stopped}",
    ]


def test_a_reason_has_the_number_of_its_figure() -> None:
    reasons: dict[Figure, str] = {"after the trip": "it is slow", "caller": "it is rude"}
    row = msgspec.structs.replace(LATE, error="OtherError", run_aborted="text", reasons=reasons)
    trip = "5 / 5, `repeated_result`"
    said = "**`OtherError`, with the words of the guard** (2)"
    assert lines_of(row)[0] == f"| One | nothing | sync | {trip} | 6 / 6 | **1** (1) | {said} |"
    text = page({"one": sheet_of(row)})
    assert "1. It is slow.\n2. It is rude.\n" in text


def test_healthy_runs_and_versions() -> None:
    healthy = Healthy(spent=FIVE, same_answer=False, warnings=1)
    row = msgspec.structs.replace(STOPPED, healthy=healthy, reasons={"healthy": "it is odd"})
    alone = "**5 / 5, another answer, 1 warning** (1)"
    assert lines_of(row)[1:] == [
        f"| One | nothing | sync | {alone} | 3 / 2, same answer | 5 / 5 |",
        "| One | `one` 1.0, `spans` 2.0 |",
    ]
    assert "another answer" not in page({"one": sheet_of(STOPPED)})
    assert "## Why some" not in page({"one": sheet_of(STOPPED)})

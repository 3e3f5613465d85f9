"""The page of what integrations do is that of the committed cells."""

from __future__ import annotations

import msgspec

from otel_loopguard.options.frameworks import FRAMEWORKS
from scripts.integrations_page import PAGE, page
from tests._integrations import Cell, Sheet, sheets
from tests._zero_code import Spent

FIVE = Spent(model_requests=5, tool_executions=5)
SIX = Spent(model_requests=6, tool_executions=5)
STOPPED = Cell(
    way="sync",
    rule="repeated_result",
    at_the_trip=FIVE,
    at_the_end=FIVE,
    caller="RunAborted",
    run_aborted="itself",
    status="aborted",
    goes_on=True,
)
LATE = msgspec.structs.replace(
    STOPPED, way="stream", at_the_end=SIX, goes_on=False, reasons={"requests": "it is late"}
)
SHEET = Sheet(
    title="A framework",
    measured="2026-11-30",
    versions={"framework": "2.0"},
    oldest={"framework": "1.0"},
    blocked=Spent(model_requests=4, tool_executions=3),
    reasons={"hint": "there is no place for it"},
    cells=(STOPPED, msgspec.structs.replace(STOPPED, way="async"), LATE),
)


def test_the_page_is_what_the_committed_cells_make():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make integrations-page`"


def test_each_integration_has_been_measured_and_has_its_page():
    measured = {*sheets()}
    assert measured == {*FRAMEWORKS}
    assert {path.stem for path in PAGE.parent.glob("*.md")} - {"index", "matrix"} == measured


def test_each_integration_has_a_module_with_both_functions():
    modules = {
        path.stem for path in (PAGE.parents[2] / "otel_loopguard/integrations").glob("[a-z]*.py")
    }
    assert modules == {*FRAMEWORKS}


def test_what_it_says_of_a_framework():
    written = page({"a": SHEET})
    assert (
        "| A framework | sync, async | 5 / 5, `repeated_result` | 5 / 5 | `RunAborted` | yes |\n"
        "| A framework | stream | 5 / 5, `repeated_result` | **6 / 5** (1) | `RunAborted` | no |\n"
    ) in written
    assert "| A framework | 4 / 3 | **cannot be given** (2) |\n" in written
    assert "1. It is late.\n2. There is no place for it.\n" in written
    assert "| A framework | 2026-11-30 | `framework` 2.0 | `framework` 1.0 |\n" in written


def test_what_is_at_its_target():
    assert STOPPED.off_target() == set()
    assert LATE.off_target() == {"requests", "goes on"}
    quiet = msgspec.structs.replace(STOPPED, caller="an answer", at_the_trip=None)
    assert quiet.off_target() == {"requests", "tools", "caller"}

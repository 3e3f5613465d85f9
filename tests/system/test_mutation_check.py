"""`otel-loopguard mutation-check`: tests that can fail, that cannot, and that say nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests._command import ROOT
from tests.plugin._sessions import SPANS

pytestmark = pytest.mark.timeout(600)

GUARD = """
from otel_loopguard import LoopGuard, Policy, Step

def calls_made(wanted):
    guard = LoopGuard(policy=Policy.none(), max_tool_calls=3)
    made = 0
    while made < wanted and guard.check(Step(kind="tool", name="search")).allowed:
        made += 1
    guard.end()
    return made
"""
STRONG = f"""{GUARD}
def test_no_more_than_three():
    assert calls_made(100) == 3

def test_three():
    assert calls_made(3) == 3
"""
WEAK = f"""{GUARD}
def test_it_ends():
    assert calls_made(100) < 50
"""
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "_otel_loopguard_pytest", "test_guard.py")


def check(*command: str, cwd: Path, options: tuple[str, ...] = ()) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "otel_loopguard.cli", "mutation-check", *options, "--", *command],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": "200",
        },
        text=True,
        timeout=500,
    )


def test_tests_that_say_exactly_when_notice_every_change(tmp_path: Path):
    (tmp_path / "test_guard.py").write_text(STRONG, "utf-8")
    result = check(*PYTEST, cwd=tmp_path)
    assert (result.stderr, result.returncode) == ("", 0)
    rows = [line.split("  ") for line in result.stdout.splitlines()]
    table = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    stops, three = "test_guard.py::test_no_more_than_three", "test_guard.py::test_three"
    assert table == [
        ["change", "tests", "which noticed"],
        ["the guard warns and never stops", "red", stops],
        ["the guard sees and does not act", "red", stops],
        ["tool_call_budget strikes later", "red", stops],
        ["tool_call_budget strikes earlier", "red", f"{stops}, {three}"],
        ["tool_call_budget strikes while all is well", "red", f"{stops}, {three}"],
        [],
        ["5 changes, all noticed."],
    ]


def test_guards_of_the_marker_are_changed_as_well(tmp_path: Path):
    """They read the variables of the package, among which that of the check must not be."""
    marked = f"""{SPANS}
@pytest.mark.loopguard(policy=Policy.none(), max_llm_calls=3, trips="llm_call_budget", at=7)
def test_marked():
    agent(ScriptedModel([("lookup", {{"order": 7}})] * 20 + ["done"]))
"""
    (tmp_path / "test_guard.py").write_text(marked, "utf-8")
    result = check(*PYTEST, cwd=tmp_path, options=("--json",))
    assert (result.stderr, result.returncode) == ("", 0)
    found = {row["change"]: row["verdict"] for row in map(json.loads, result.stdout.splitlines())}
    assert found == {
        "the guard warns and never stops": "red",
        "the guard sees and does not act": "red",
        "llm_call_budget strikes later": "red",
        "llm_call_budget strikes earlier": "red",
        "llm_call_budget strikes while all is well": "red",
    }


def test_tests_that_only_say_that_it_ends_miss_some(tmp_path: Path):
    (tmp_path / "test_guard.py").write_text(WEAK, "utf-8")
    result = check(*PYTEST, cwd=tmp_path, options=("--json",))
    assert (result.stderr, result.returncode) == ("", 1)
    found = {row["change"]: row["verdict"] for row in map(json.loads, result.stdout.splitlines())}
    assert found == {
        "the guard warns and never stops": "red",
        "the guard sees and does not act": "red",
        "tool_call_budget strikes later": "still green",
        "tool_call_budget strikes earlier": "still green",
        "tool_call_budget strikes while all is well": "still green",
    }


def test_a_test_that_does_not_end_has_noticed(tmp_path: Path):
    """A runaway without a guard may go on for ever: its time is over at some point."""
    endless = f"""{GUARD}
def test_it_ends():
    assert calls_made(float("inf")) == 3
"""
    (tmp_path / "test_guard.py").write_text(endless, "utf-8")
    result = check(*PYTEST, cwd=tmp_path, options=("--json", "--timeout", "30"))
    assert (result.stderr, result.returncode) == ("", 0)
    found = {row["change"]: row["verdict"] for row in map(json.loads, result.stdout.splitlines())}
    assert found["the guard sees and does not act"] == "no end"
    assert found["tool_call_budget strikes later"] == "red"


RED = "def test_red():\n    assert False\n"
SKIPPED = "import pytest\n\ndef test_none():\n    pytest.skip('not today')\n"


@pytest.mark.parametrize(
    ("text", "command", "says"),
    [
        pytest.param(RED, PYTEST, "to be green as it is, got exit code 1", id="red"),
        pytest.param(SKIPPED, PYTEST, "to run tests, got none that ran", id="nothing-ran"),
        pytest.param("", (sys.executable, "-c", ""), "loads the plugin", id="no-plugin"),
        pytest.param("", ("no-such-command",), "cannot be started", id="no-command"),
        pytest.param(
            "",
            (sys.executable, "-c", "import threading; threading.Event().wait()"),
            "to end within 1 seconds",
            id="no-end",
        ),
    ],
)
def test_a_command_that_says_nothing_exits_with_2(
    tmp_path: Path, text: str, command: tuple[str, ...], says: str
):
    (tmp_path / "test_guard.py").write_text(text, "utf-8")
    options = ("--timeout", "1") if "end within" in says else ()
    result = check(*command, cwd=tmp_path, options=options)
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stdout == ""


def test_without_the_plugin_nobody_looks_at_the_variable(tmp_path: Path):
    """Not even a variable that says nothing sensible is noticed by the package itself."""
    result = subprocess.run(
        [sys.executable, "-c", f"{GUARD}\nprint(calls_made(9))"],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LOOPGUARD_MUTATION_CHECK": '{"report": "x", "change": {"kind": "never_stops"}}',
        },
        text=True,
        timeout=60,
    )
    assert result.stdout == "3\n"

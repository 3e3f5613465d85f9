"""The page on the reference loop names tests, endings and defaults as they are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import otel_loopguard
from otel_loopguard import run_agent, run_agent_async
from otel_loopguard.agent_loop import Ending, RunOptions
from otel_loopguard.agent_loop.endings import REPETITION, STATUS_OF

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "run-agent.md").read_text("utf-8")


def test_each_test_that_the_page_names_is_there():
    files = (*ROOT.glob("tests/*/test_run_agent*.py"),)
    there = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    named = set(re.findall(r"`(test_\w+)`", PAGE))

    assert len(named) > 40
    assert named - there == set()


def test_the_endings_stand_there_in_their_order_with_their_status():
    section = PAGE.partition("## How it ends")[2].partition("**Which one wins.**")[0]
    rows = re.findall(r"^\| `(\w+)` \| .* \| `(\w+)` \|$", section, re.MULTILINE)

    assert rows == [*STATUS_OF.items()]
    assert [name for name, _ in rows] == [*get_args(Ending)]


def test_the_rules_on_repetition_stand_there():
    [said] = re.findall(r"Rules on repetition are (.*?)\.\n", PAGE, re.DOTALL)

    assert set(re.findall(r"`(\w+)`", said)) == REPETITION


def test_the_arguments_stand_there_with_what_they_are_if_not_given():
    section = PAGE.partition("## What it is given")[2].partition("A *step* is")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    said = {name: row[2] for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    parameters = inspect.signature(run_agent).parameters

    assert [*said] == [*(p for p in parameters if p != "options"), *RunOptions.__annotations__]
    for name in ("max_steps", "max_tool_calls", "max_tokens", "deadline_s"):
        assert float(said[name].replace(",", "")) == parameters[name].default


def test_both_ways_take_the_same():
    ways = [inspect.signature(way).parameters.values() for way in (run_agent, run_agent_async)]
    first, second = ([(p.name, p.kind, p.default) for p in way] for way in ways)

    assert first == second


def test_the_loop_is_small_enough_to_read():
    lines = (ROOT / "otel_loopguard" / "agent_loop" / "loop.py").read_text().splitlines()

    assert len(lines) < 200


def test_no_name_of_the_package_hides_a_module():
    package = ROOT / "otel_loopguard"
    modules = {path.stem for path in package.glob("*.py")}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}

    assert modules & {*otel_loopguard.__all__} == set()

"""The page on policies names every option, and the thresholds that there are."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.options.rules import RULES, Whose
from otel_loopguard.options.tables import SECTIONS
from otel_loopguard.pricing import Price, Usage
from otel_loopguard.settings import AgentOptions, Limits, Thresholds, ToolOptions
from otel_loopguard.values.volatile import Masking

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the rows of all tables under a heading, by what stands in the first cell."""
    part = PAGE.partition(f"\n{heading}\n")[2]
    part = re.split(r"\n#{2,3} ", part)[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {cells[0].strip("`"): cells[1:] for cells in lines}


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("## Limits", Limits),
        ("## Tools", ToolOptions),
        ("## Agents", AgentOptions),
        ("## Usage", Usage),
        ("## Usage", Price),
        ("## Masking", Masking),
    ],
)
def test_every_option_has_a_row(heading: str, kind: type[msgspec.Struct]):
    assert {*kind.__struct_fields__} <= set(rows(heading))


def test_every_table_of_the_file_has_a_row():
    named = {re.split(r"[.\]]", row.strip("["))[0] for row in rows("## The file")}

    assert {*SECTIONS} <= named


def test_limits_have_their_rule_and_reason():
    reasons = {detector.rule: detector.reason for detector in DETECTORS}
    table = rows("## Limits")

    for rule, option in LIMIT_OF_RULE.items():
        assert table[option][1:] == [f"`{rule}`", f"`{reasons[rule]}`"]


def test_rules_have_their_thresholds():
    table = rows("## Rules")
    for rule in RULES["run"]:
        line = DEFAULT_RULES.get(rule, Thresholds())
        shown = ["-" if level is None else f"{level:g}" for level in (line.warn, line.abort)]
        assert table[rule][1:] == shown


def test_rules_that_cannot_be_set_for_an_agent_or_a_tool_are_named():
    parts: list[tuple[Whose, str]] = [("tool", "Tools"), ("agent", "Agents")]
    for whose, part in parts:
        text = PAGE.partition(f"\n## {part}\n")[2]
        named = [set(re.findall(r"`(\w+)`", inside)) for inside in re.findall(r"\(([^)]*)\)", text)]
        assert {*RULES["run"]} - {*RULES[whose]} in named

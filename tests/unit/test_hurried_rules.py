"""The alert rules at sixty times their pace: only how long things take has changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scripts.stack.rules import THRESHOLDS, hurried, shipped, sooner

FILES = [path.name for path in shipped()]
TIMES = re.compile(r"\[\d+[smhd]\]|offset \d+[smhd]|^\s*(?:for|interval): \d+[smhd]", re.MULTILINE)


@pytest.mark.parametrize(
    ("slow", "quick"),
    [
        ("increase(x[15m])", "increase(x[15s])"),
        ("x[1h] offset 10m", "x[60s] offset 10s"),
        ("last_over_time(x[1d])", "last_over_time(x[1440s])"),
        ("rate(x[30s])", "rate(x[1s])"),
        ("    for: 2m # TUNE", "    for: 2s # TUNE"),
        ("  - group_wait: 0s", "  - group_wait: 0s"),
        ("      repeat_interval: 12h", "      repeat_interval: 720s"),
        ("record: a:x:increase15m", "record: a:x:increase15m"),
        ("labels: {long: 1h, short: 5m}", "labels: {long: 1h, short: 5m}"),
        ("description: in the last 15m", "description: in the last 15m"),
    ],
)
def test_times_are_shorter(slow: str, quick: str) -> None:
    assert sooner(slow) == quick


@pytest.mark.parametrize("name", FILES)
def test_nothing_else_is_changed(tmp_path: Path, name: str) -> None:
    [slow] = [path.read_text() for path in shipped() if path.name == name]
    [quick] = [path.read_text() for path in hurried(tmp_path / "rules") if path.name == name]
    for old, new in THRESHOLDS:
        slow = slow.replace(old, new)
    assert TIMES.sub("", quick) == TIMES.sub("", slow)
    assert quick != slow


@pytest.mark.parametrize("name", FILES)
def test_no_time_is_left_as_it_was(tmp_path: Path, name: str) -> None:
    [quick] = [path for path in hurried(tmp_path / "rules") if path.name == name]
    for group in yaml.safe_load(quick.read_text())["groups"]:
        for rule in group["rules"]:
            times = re.sub(r"\w+(:\w+)+", "", rule["expr"])  # names of series hold some
            assert not re.search(r"\d[mhd]\b", times)
            assert not re.search(r"[mhd]$", str(rule.get("for", "")))

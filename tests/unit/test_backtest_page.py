"""What the page of a backtest looks like: cells, sections, curves and bars."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from otel_loopguard.backtest import Backtest, Outcome, play_files
from otel_loopguard.backtest.wilson import rate
from otel_loopguard.cli.backtest_charts import Axis, Bar, Series, columns, curves, rows
from otel_loopguard.cli.backtest_html import html_of
from otel_loopguard.cli.backtest_table import percent, rate_text
from otel_loopguard.policy import Policy

TOOL: dict[str, Any] = {"type": "tool", "name": "t", "arguments": {}, "result": "same"}
SPACE = "\N{NO-BREAK SPACE}"


def page_of(folder: Path, *lines: dict[str, Any]) -> str:
    path = folder / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    counting = Backtest(["default"])
    for found in play_files([str(path)], [Policy()]):
        assert isinstance(found, Outcome)
        counting.add(found)
    return html_of(counting.report([]))


def sections(page: str) -> list[str]:
    return re.findall("<h2>(.*?)</h2>", page)


def test_sections_without_content_are_left_out(tmp_path: Path):
    calm = page_of(tmp_path, {"run_id": "a", "success": True, "steps": [TOOL]})
    assert sections(calm) == ["Policies", "Sets"]
    assert "<p>1 run from 0 files; 0 of 0 lines could not be read." in calm
    full = page_of(
        tmp_path,
        {"run_id": "a", "success": True, "steps": [TOOL] * 9},
        {"run_id": "b", "success": False, "label": "loop", "steps": [TOOL]},
    )
    assert sections(full) == [
        "Policies",
        "False trips against what is caught",
        "Sets",
        "Rules",
        "Steps of the trips",
        "False trips",
        "Loops missed",
    ]


def test_numbers_stand_at_the_right_and_nothing_breaks_within_a_word(tmp_path: Path):
    page = page_of(tmp_path, {"run_id": "a b/c", "success": True, "steps": [TOOL] * 9})
    folders = str(tmp_path).split("/")[1:]
    inside = "".join(f"<span>{folder}/</span><wbr>" for folder in folders)
    assert (
        f'<tr><td>a b/c</td><td class="path"><span>/</span><wbr>{inside}<span>runs.jsonl:1</span>'
        "</td><td>repeated_result</td>"
    ) in page
    assert f'<td class="n">1{SPACE}(100{SPACE}%)</td>' in page
    assert (
        f'<td class="n">1{SPACE}of{SPACE}1 (100{SPACE}%,{SPACE}20.7{SPACE}to{SPACE}100{SPACE}%)'
        in page
    )
    assert '<th scope="col">rule</th><th scope="col" class="n">trips</th>' in page
    assert "td,.path span{white-space:nowrap}td.n,td.path{white-space:normal}" in page
    assert ".n{text-align:right}" in page
    assert "overflow-wrap" not in page


def test_shares_are_short_and_never_nothing_by_rounding():
    assert rate_text(rate(0, 163)) == "0 of 163 (0 %, 0 to 2.3 %)"
    assert rate_text(rate(0, 0)) == "-"
    shares = (0, 0.5, 0.0832, 0.1, 0.006, 0.00002, 1)
    assert [percent(share) for share in shares] == [
        *("0 %", "50 %", "8.32 %", "10 %", "0.6 %", "0.002 %", "100 %"),
    ]


def corners(chart: str) -> list[list[tuple[float, float]]]:
    lines = re.findall('points="([^"]*)"', chart)
    return [
        [(float(x), float(y)) for x, y in (p.split(",") for p in line.split())] for line in lines
    ]


def test_a_curve_is_drawn_as_stairs():
    points = [(0.0, 0.0), (1.0, 50.0), (2.0, 100.0)]
    chart = curves([Series("s", points, ["a", "b", "c"])], Axis("x", 2), Axis("y", 100), "t")
    [line] = corners(chart)
    assert len(line) == 5
    assert all(one[0] == two[0] or one[1] == two[1] for one, two in pairwise(line))
    assert line[1] == (line[2][0], line[0][1]), "across first: nothing is caught on the way"


def test_a_hollow_curve_lies_over_the_others_in_its_own_colour():
    points = [(0.0, 0.0), (1.0, 50.0)]
    both = [Series("b", points, ["", ""], hollow=True), Series("a", points, ["", ""])]
    chart = curves(both, Axis("x", 1), Axis("y", 100), "t")
    drawn = re.findall(r'<polyline [^>]*stroke="(.*?)"[^>]*?(dasharray="7 5")?/>', chart)
    assert drawn == [("var(--series-1)", ""), ("var(--series-0)", 'dasharray="7 5"')]
    assert chart.count('fill="none" stroke="var(--series-0)" stroke-width="1.5"') == 2


def test_bars_have_their_figures():
    bars = [Bar("one", 2, 3, "title"), Bar("two", 0, 0, "none"), Bar("three", 0, 1_200, "many")]
    upright = columns(bars, 1, Axis("x", 3), Axis("y", 1_200), "t")
    assert ">5</text>" in upright
    assert ">1,200</text>" in upright
    lying = rows(bars, Axis("x", 1_200), "t")
    assert re.findall('text-anchor="start">(.*?)</text>', lying) == ["5 (2 false)", "0", "1,200"]

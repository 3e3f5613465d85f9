"""Budgets from recorded runs, against figures worked out by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard.backtest import Backtest, Outcome, Suggestions, play_files
from otel_loopguard.backtest.suggestions import HEADING, budgets, percentile
from otel_loopguard.environment import read_policy
from otel_loopguard.policy import Policy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def run(length: int, agent: str | None = "bot", **more: Any) -> str:
    """Return a run of so many model turns of 10 tokens and 0.5 s, each followed by a tool call."""
    steps = [
        step
        for n in range(length)
        for step in (
            {"type": "llm", "input_tokens": 8, "output_tokens": 2, "dt_s": 0.5},
            {"type": "tool", "name": "look", "arguments": {"page": n}, "result": f"page {n}"},
        )
    ]
    return json.dumps({"agent": agent, "success": True, "steps": steps, **more})


def suggested(folder: Path, lines: list[str]) -> tuple[str, dict[str, Any]]:
    (folder / "runs.jsonl").write_text("\n".join(lines))
    suggestions = Suggestions()
    counting = Backtest(("none",), suggestions=suggestions)
    for item in play_files([str(folder / "runs.jsonl")], (Policy.none(),), jobs=1):
        assert isinstance(item, Outcome)
        counting.add(item)
    text = suggestions.policy_text()
    (folder / "loopguard.toml").write_text(text)
    assert read_policy(folder / "loopguard.toml") is not None, "it can be followed"
    return text, tomllib.loads(text)


def test_one_agent(tmp_path: Path):
    # Forty runs of 1 to 40 turns: p50 is 20 turns, p95 is 38, the longest has 40.
    text, table = suggested(tmp_path, [run(n) for n in range(1, 41)])
    assert table == {
        "limits": {
            "max_steps": 114,  # 1.5 x 76
            "max_llm_calls": 57,  # 1.5 x 38
            "max_tool_calls": 57,
            "max_total_tokens": 570,  # 1.5 x 380
            "max_duration_s": 29,  # 1.5 x 19 = 28.5
        }
    }
    lines = text.splitlines()
    assert lines[0] == f"{HEADING} from 40 successful runs."
    assert lines[4:6] == [
        "max_steps = 114  # n = 40, p50 = 40, p95 = 76, max = 80, factor 1.5",
        "max_llm_calls = 57  # n = 40, p50 = 20, p95 = 38, max = 40, factor 1.5",
    ]


def test_only_successful_runs_count_where_there_are_some(tmp_path: Path):
    lines = [run(3), run(50, success=False), run(60, success=None), run(70, label="loop")]
    text, table = suggested(tmp_path, lines)
    assert table["limits"]["max_llm_calls"] == 5
    assert "from 1 successful runs." in text
    assert "Success is not known" not in text


def test_all_runs_but_known_loops_count_where_success_is_not_known(tmp_path: Path):
    lines = [run(4, success=None), run(8, success=None), run(900, success=None, label="loop")]
    text, table = suggested(tmp_path, lines)
    assert table["limits"]["max_llm_calls"] == 12
    assert "from 2 runs." in text
    assert "# Success is not known of any run" in text


def test_several_agents(tmp_path: Path):
    lines = [run(2, "a.b [x]") for _ in range(20)] + [run(4, 'say "hi"') for _ in range(25)]
    lines += [run(9, "rare") for _ in range(19)] + [run(9, None)]
    text, table = suggested(tmp_path, lines)
    assert {
        agent: limits["limits"]["max_llm_calls"] for agent, limits in table["agents"].items()
    } == {
        "a.b [[]x]": 3,
        'say "hi"': 6,
    }
    assert set(table) == {"agents"}
    assert '# Left out: the agent "rare", 19 of 20 runs.' in text
    assert "# Left out: runs that name no agent, 1 of 20 runs." in text


def test_agents_with_few_runs_are_put_together(tmp_path: Path):
    text, table = suggested(tmp_path, [run(2, "a"), run(4, "b")])
    assert table["limits"]["max_llm_calls"] == 6
    assert "# No agent has 20 runs, so all 2 were put together." in text


def test_what_was_not_recorded_has_no_budget(tmp_path: Path):
    call = {"type": "tool", "name": "look", "arguments": "x"}
    text, table = suggested(tmp_path, [json.dumps({"success": True, "steps": [call]})])
    assert table == {"limits": {"max_steps": 2, "max_tool_calls": 2}}
    assert "# max_total_tokens: none of 1 runs recorded any" in text


def test_what_hardly_any_run_used_has_no_budget():
    found = {
        budget.option: budget for budget in budgets([(1, 0, 0, 0, 0)] * 39 + [(1, 0, 9, 0, 0)])
    }
    assert (found["max_tool_calls"].limit, found["max_tool_calls"].most) == (0, 9)
    assert found["max_steps"].limit == 2


def test_without_runs_there_is_a_file_without_budgets(tmp_path: Path):
    text, table = suggested(tmp_path, [])
    assert table == {}
    assert "# There is no run to take a budget from." in text


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [(1, 0.95, 1), (20, 0.95, 19), (21, 0.95, 20), (100, 0.95, 95), (101, 0.95, 96), (4, 0.5, 2)],
)
def test_percentiles_are_values_that_occur(count: int, share: float, expected: int):
    assert percentile(range(1, count + 1), share) == expected

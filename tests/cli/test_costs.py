"""What the command line says of costs: priced as the engine prices, and nothing where unknown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PRICES = """
[usage.price]
input_per_m_usd = 100
output_per_m_usd = 1000
"""


def turn(**fields: Any) -> dict[str, Any]:
    return {"type": "llm", "name": "our-own", "input_tokens": 100, "output_tokens": 10, **fields}


TOOL: dict[str, Any] = {"type": "tool", "name": "t", "arguments": {}, "result": "same"}


def written(folder: Path, *turns: dict[str, Any]) -> None:
    steps = [step for each in turns for step in (each, TOOL)]
    (folder / "runs.jsonl").write_text(json.dumps({"run_id": "r", "steps": steps}))
    (folder / "priced.toml").write_text(PRICES)


def command(*arguments: str, cwd: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "otel_loopguard.cli", *arguments, "runs.jsonl"],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=240,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def total_of(*arguments: str, cwd: Path) -> dict[str, Any]:
    return json.loads(command("backtest", "--json", *arguments, cwd=cwd))["policies"][0]["total"]


def test_saved_steps_are_priced_by_the_policy(tmp_path: Path):
    written(tmp_path, *[turn()] * 8)  # a turn costs 0.01 + 0.01; it trips at the fifth result
    total = total_of("--policy", "priced.toml", cwd=tmp_path)
    assert (total["cost_usd"], total["saved"]["cost_usd"]) == (0.16, 0.06)
    assert total["saved"]["cost_share"] == pytest.approx(3 / 8)
    table = command("backtest", "--policy", "priced.toml", cwd=tmp_path)
    assert "$0.0600 (37.5 %)" in table
    run = json.loads(command("replay", "--json", "--policy", "priced.toml", cwd=tmp_path))
    assert run["saved"] == {"steps": 6, "tokens": 330, "cost_usd": 0.06}


def test_models_of_the_table_of_prices_are_estimated(tmp_path: Path):
    written(tmp_path, *[turn(name="gpt-4o", provider="openai")] * 8)
    saved = total_of(cwd=tmp_path)["saved"]
    assert saved["cost_usd"] > 0
    assert saved["cost_share"] == pytest.approx(3 / 8)
    assert re.search(r"330 of 880 tokens, \$0\.\d{4}\.", command("replay", cwd=tmp_path))


def test_where_no_price_is_known_nothing_is_said(tmp_path: Path):
    written(tmp_path, *[turn()] * 8)
    page = tmp_path / "r.html"
    total = total_of("--html", str(page), "--details", "d", cwd=tmp_path)
    assert (total["cost_usd"], total["saved"]["cost_usd"], total["saved"]["cost_share"]) == (
        None,
        None,
        None,
    )
    assert json.loads((tmp_path / "d").read_text())["saved_cost_usd"] is None
    assert "$" not in page.read_text()
    head, row, *_ = command("backtest", cwd=tmp_path).splitlines()
    assert head.endswith("cost saved")
    assert row.endswith("  -")
    run = json.loads(command("replay", "--json", cwd=tmp_path))
    assert run["saved"]["cost_usd"] == 0.0, "a number by contract"
    assert "$" not in command("replay", cwd=tmp_path)


def test_where_only_what_is_saved_has_no_price_that_is_not_zero(tmp_path: Path):
    written(tmp_path, *[turn(cost_usd=1.0)] * 5, *[turn()] * 3)
    total = total_of(cwd=tmp_path)
    assert (total["cost_usd"], total["saved"]["cost_usd"]) == (5.0, None)


def test_what_costs_and_is_not_stopped_saves_nothing(tmp_path: Path):
    written(tmp_path, *[turn(cost_usd=1.0)] * 2)
    assert total_of(cwd=tmp_path)["saved"]["cost_usd"] == 0.0

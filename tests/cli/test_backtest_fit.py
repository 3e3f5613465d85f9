"""`otel-loopguard backtest --fit` as people run it: table, JSON, page, file and refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from otel_loopguard.environment import read_policy
from tests._command import ROOT, command

DATA = ROOT / "tests" / "testdata" / "backtest"
TOO_FEW = (
    "There are 2 loops, and under 30 are too few to trust fitted weights: most of what they are is "
    "still the weights of before."
)


def backtest(*arguments: str, cwd: Path = DATA) -> subprocess.CompletedProcess[bytes]:
    return command("backtest", *arguments, cwd=cwd)


def test_the_table_shows_before_and_after(tmp_path: Path):
    result = backtest("--fit", str(tmp_path / "fitted.toml"), "runs.jsonl")
    assert (result.returncode, result.stderr) == (0, b"")
    lines = result.stdout.decode().splitlines()
    start = lines.index(
        "default: Weights of stagnation, fitted to 2 loops and 3 healthy runs (2 others left out)"
    )
    # Before: 16.8 points for one loop and none for the other, 14 for one healthy run. After, each
    # by weights that were fitted without it: where the one loop with repeats is left out, repeats
    # are half of what healthy runs do, and weigh little.
    assert lines[start + 10] == TOO_FEW
    assert (
        "  ".join(lines[start + 1].split())
        == "score  false  aborts  of  3  before  after  caught  of  2  before  after"
    )
    assert [line.split() for line in lines[start + 2 : start + 10]] == [
        ["8", "1", "1", "1", "0"],
        ["10", "1", "1", "1", "0"],
        ["12", "1", "1", "1", "0"],
        ["15", "0", "0", "1", "0"],
        ["20*", "0", "0", "0", "0"],
        ["25", "0", "0", "0", "0"],
        ["30", "0", "0", "0", "0"],
        ["40", "0", "0", "0", "0"],
    ]


def test_the_json_output_has_the_fit_where_it_is_asked_for(tmp_path: Path):
    path = tmp_path / "fitted.toml"
    result = backtest("--json", "--fit", str(path), "--fit-on", "failed", "runs.jsonl")
    fit = json.loads(result.stdout)["fit"]
    assert list(fit) == [
        *("policy", "fit_on", "loops", "healthy", "left_out", "enough", "abort", "classes"),
        *("before", "after"),
    ]
    assert (fit["policy"], fit["fit_on"], fit["abort"], fit["enough"]) == (
        "default",
        "failed",
        20,
        False,
    )
    assert (fit["loops"], fit["healthy"], fit["left_out"]) == (3, 3, 1)
    assert fit["classes"]["again"]["before"] == 2.8
    assert fit["before"][0]["threshold"] == 8
    assert (fit["before"][0]["caught"]["count"], fit["before"][0]["caught"]["of"]) == (1, 3)
    assert len(fit["before"]) == len(fit["after"]) == 33
    assert read_policy(path).settings.weights["again"] == fit["classes"]["again"]["after"]
    assert "Failed runs were taken for loops." in path.read_text()


def test_the_page_has_both_curves(tmp_path: Path):
    path = tmp_path / "report.html"
    result = backtest("--fit", str(tmp_path / "f.toml"), "--html", str(path), "runs.jsonl")
    assert result.returncode == 0
    text = path.read_text("utf-8")
    assert "<h2>Weights of stagnation, fitted to 2 loops and 3 healthy runs" in text
    assert TOO_FEW in text
    chart = next(part for part in text.split("<svg")[1:] if "False aborts against loops" in part)
    points = [part for part in chart.split("<circle")[1:] if "<title>before, at " in part]
    assert len(points) == 33
    [marked] = [part for part in points if 'r="8"' in part]
    assert all('fill="none" stroke=' in part for part in points), "what lies under it is seen"
    assert chart.count("stroke-dasharray") == 1
    assert "<title>before, at 20: 0 of 2 loops caught, 0 of 3 false aborts</title>" in marked
    assert "before, at 14: 1 of 2 loops caught, 1 of 3 false aborts" in "".join(points)
    assert "<title>after, at 20: " in chart
    assert '<td>again</td><td class="n">2.8</td>' in text


def test_a_policy_with_fitted_weights_can_be_fitted_again(tmp_path: Path):
    path, second = str(tmp_path / "fitted.toml"), str(tmp_path / "again.toml")
    results = [backtest("--json", "--fit", path, "runs.jsonl") for _ in range(2)]
    results.append(backtest("--json", "--policy", path, "--fit", second, "runs.jsonl"))
    assert [(result.returncode, result.stderr) for result in results] == [(0, b"")] * 3, (
        "what it wrote it may overwrite"
    )
    _, first, again = (json.loads(result.stdout)["fit"] for result in results)
    assert again["classes"]["again"]["before"] == first["classes"]["again"]["after"]


@pytest.mark.parametrize("begin", ["mode = 'enforce'\n", "# Budgets suggested by somebody\n"])
def test_a_file_that_fit_did_not_write_is_not_overwritten(tmp_path: Path, begin: str):
    path = tmp_path / "loopguard.toml"
    path.write_text(begin)
    result = backtest("--fit", str(path), "runs.jsonl")
    assert (result.returncode, path.read_text()) == (2, begin)
    assert result.stderr.decode() == (
        f"otel-loopguard: {path}: it is not overwritten, because it was not written by --fit; "
        "give another name, or delete it\n"
    )


def test_one_file_cannot_be_both(tmp_path: Path):
    path = tmp_path / "both.toml"
    result = backtest("--fit", str(path), "--suggest", str(path), "runs.jsonl")
    assert (result.returncode, path.exists()) == (2, False)
    assert result.stderr.decode() == (
        f"otel-loopguard: --fit '{path}': it would overwrite --suggest '{path}', which is the same "
        "file; give another name\n"
    )


def test_without_a_loop_the_backtest_is_shown_and_nothing_is_fitted(tmp_path: Path):
    path = tmp_path / "fitted.toml"
    runs = [
        {"run_id": name, "success": name == "good", "steps": [{"type": "tool", "name": "t"}]}
        for name in ("good", "bad")
    ]
    (tmp_path / "runs.jsonl").write_text("\n".join(json.dumps(run) for run in runs))
    result = backtest("--json", "--fit", str(path), "runs.jsonl", cwd=tmp_path)
    assert (result.returncode, path.exists()) == (2, False)
    assert result.stderr.decode() == (
        "otel-loopguard: --fit: no run is labelled a loop; give runs of steps files a field "
        "'label', or name them in a file of --labels; --fit-on failed takes failed runs for loops, "
        "which is a rough guess\n"
    )
    report = json.loads(result.stdout)
    assert "fit" not in report
    assert report["policies"][0]["total"]["runs"] == 2

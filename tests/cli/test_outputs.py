"""No file that `backtest` writes is one that it reads, or another one that it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = json.dumps({"run_id": "a", "success": True, "steps": [{"type": "tool", "name": "t"}]})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a folder with a recording in a folder, a link to it, a policy and labels."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.jsonl").write_text(RUN)
    (tmp_path / "link").symlink_to("runs/a.jsonl")
    os.link(tmp_path / "runs" / "a.jsonl", tmp_path / "hard")
    (tmp_path / "p.toml").write_text("mode = 'observe'\n")
    (tmp_path / "l.json").write_text('{"a": "no"}')
    return tmp_path


def backtest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "otel_loopguard.cli", "backtest", *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        ("--html runs/a.jsonl runs/a.jsonl", "--html 'runs/a.jsonl'", "the recording"),
        ("--details runs/../runs/a.jsonl runs", "--details", "the recording 'runs/a.jsonl'"),
        ("--html link runs", "--html 'link'", "the recording 'runs/a.jsonl'"),
        ("--html hard runs", "--html 'hard'", "the recording 'runs/a.jsonl'"),
        ("--suggest hard runs", "--suggest 'hard'", "the recording 'runs/a.jsonl'"),
        ("--policy p.toml --details p.toml runs", "--details 'p.toml'", "the policy 'p.toml'"),
        ("--policy p.toml --fit p.toml runs", "--fit 'p.toml'", "the policy 'p.toml'"),
        ("--labels l.json --html ./l.json runs", "--html './l.json'", "the labels 'l.json'"),
        ("--html new --details ./new runs", "--details './new'", "--html 'new'"),
        ("--suggest new --details new runs", "--suggest 'new'", "--details 'new'"),
    ],
)
def test_an_output_that_is_also_something_else_is_refused(
    work: Path, arguments: str, first: str, second: str
):
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    result = backtest(*arguments.split(), cwd=work)
    assert (result.returncode, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"otel-loopguard: {first}")
    assert f"it would overwrite {second}" in line
    assert {path: path.read_bytes() for path in work.rglob("*") if path.is_file()} == before


def test_files_of_their_own_are_written_again_and_again(work: Path):
    outputs = ("--html", "runs/r.html", "--details", "runs/d.jsonl", "--suggest", "s.toml")
    for _ in range(2):
        result = backtest(*outputs, "--policy", "p.toml", "--labels", "l.json", "runs", cwd=work)
        assert result.returncode == 0, result.stderr
    result = backtest("--html", os.devnull, "--details", os.devnull, "runs/a.jsonl", cwd=work)
    assert (result.returncode, result.stderr) == (0, "")

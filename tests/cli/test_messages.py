"""What the commands say of input that was meant otherwise: named, and counted where it is much."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = json.dumps({"a": "loop", "b": "no"}, indent=1)
RUN: dict[str, Any] = {"run_id": "a", "steps": [{"type": "tool", "name": "t"}]}


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "otel_loopguard.cli", *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=240,
    )


def written(folder: Path, *lines: dict[str, Any]) -> None:
    (folder / "runs.jsonl").write_text("".join(f"{json.dumps({**RUN, **x})}\n" for x in lines))


@pytest.mark.parametrize("name", ["replay", "backtest"])
def test_a_json_document_is_no_recording(tmp_path: Path, name: str):
    (tmp_path / "labels.json").write_text(DOCUMENT)
    result = command(name, "--json", "labels.json", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        "labels.json: this looks like one JSON document; expected one JSON object a line\n"
    )


def test_replay_of_a_folder_names_what_reads_folders(tmp_path: Path):
    written(tmp_path, {})
    result = command("replay", "--json", ".", "runs.jsonl", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (
        2,
        ".: it is a folder; name the files in it, or use backtest, which searches folders\n",
    )
    assert len(result.stdout.splitlines()) == 1, "the others are read"


@pytest.mark.parametrize("content", ["", "\n \n", '{"resourceMetrics": []}\n'])
def test_a_file_without_runs_is_no_error_for_either(tmp_path: Path, content: str):
    (tmp_path / "zero.jsonl").write_text(content)
    for name in ("replay", "backtest"):
        result = command(name, "--strict", "zero.jsonl", cwd=tmp_path)
        assert (result.returncode, result.stdout, result.stderr) == (0, "No runs found.\n", "")
    gate = command("backtest", "--fail-on-false-trips", "0", "zero.jsonl", cwd=tmp_path)
    assert gate.returncode == 2, "nothing was judged"


@pytest.mark.parametrize("name", ["replay", "backtest"])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"mode = 'observe'\n# \xe9\n", "expected UTF-8 text (at line 2)"),
        (b"[limits\n", "expected a TOML file, but "),
        (b"a = " + 5000 * b"[", "expected a TOML file, but more than 30 tables and lists "),
        (b"[limits]\nmax_steps = -1\n", "limits.max_steps: expected "),
    ],
)
def test_what_is_wrong_with_a_policy_is_one_line(
    tmp_path: Path, name: str, content: bytes, why: str
):
    written(tmp_path, {})
    (tmp_path / "p.toml").write_bytes(content)
    result = command(name, "--policy", "p.toml", "runs.jsonl", cwd=tmp_path)
    [line] = result.stderr.splitlines()
    assert line.startswith(f"otel-loopguard: p.toml: {why}")
    assert (result.returncode, result.stdout) == (2, "")


def test_what_a_policy_will_not_do_is_said_once(tmp_path: Path):
    written(tmp_path, {}, {})
    text = "[agents.'a*'.limits]\nmax_steps = 1\n[agents.ab.limits]\nmax_steps = 2\n"
    (tmp_path / "p.toml").write_text(text)
    replay = command("replay", "--json", "--policy", "p.toml", "runs.jsonl", cwd=tmp_path)
    policies = ("--policy", "p.toml", "--policy", "default")
    backtest = command("backtest", "--json", *policies, "runs.jsonl", cwd=tmp_path)
    for result, name in ((replay, "p.toml"), (backtest, "p")):
        [line] = result.stderr.splitlines()
        assert line.startswith(f'{name}: agents."ab": never counts')
        assert result.returncode == 0


@pytest.mark.parametrize(
    ("option", "words"), [("--by", "source, file, agent, model"), ("--fit-on", "labels, failed")]
)
def test_a_word_that_an_option_does_not_know(tmp_path: Path, option: str, words: str):
    result = command("backtest", option, "tool", "x", cwd=tmp_path)
    assert f"Invalid value for '{option}': expected one of {words}, got 'tool'" in result.stderr
    assert "Value error" not in result.stderr
    assert result.returncode == 2


def test_words_about_a_run_that_mean_nothing_are_named_and_counted(tmp_path: Path):
    written(tmp_path, {"label": "lop"}, {"success": "yes", "label": 3}, {}, *[{"label": "x"}] * 12)
    result = command("backtest", "--json", "--jobs", "1", "runs.jsonl", cwd=tmp_path)
    lines = result.stderr.splitlines()
    words = '"loop", "weak", "no", true or false'
    assert lines[0] == f"runs.jsonl:1: field 'label': expected {words}, got 'lop'"
    assert lines[1] == (
        "runs.jsonl:2: field 'success': expected true, false or null, got 'yes'; "
        "field 'label': expected a word, true, false or null, got 3"
    )
    assert len(lines) == 11
    assert lines[-1] == "runs.jsonl: 4 more lines with a label or a success that says nothing"
    report = json.loads(result.stdout)
    assert (report["bad_lines"], report["unclear_lines"]) == (0, 14)
    assert report["policies"][0]["total"]["runs"] == 15, "the lines are read all the same"
    assert result.returncode == 0
    assert command("backtest", "--strict", "runs.jsonl", cwd=tmp_path).returncode == 2


def test_fields_of_labels_that_are_not_known_are_named_and_counted(tmp_path: Path):
    written(tmp_path, {"run_id": "0"})
    labels = {str(number): {"lable": "loop"} for number in range(13)}
    (tmp_path / "l.json").write_text(json.dumps(labels))
    arguments = ("backtest", "--json", "--labels", "l.json", "runs.jsonl")
    lines = command(*arguments, cwd=tmp_path).stderr.splitlines()
    assert lines[0] == "l.json: run '0': there is no field 'lable'; did you mean 'label'?"
    assert lines[10:] == ["l.json: 3 more fields not known"]
    assert command(*arguments, "--strict", cwd=tmp_path).returncode == 2

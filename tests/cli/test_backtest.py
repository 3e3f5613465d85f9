"""`otel-loopguard backtest` as people and scripts run it: output, files, exit codes, bad input."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from otel_loopguard.environment import read_policy
from tests._command import ROOT, command
from tests._recordings import Recording

DATA = ROOT / "tests" / "testdata" / "backtest"
FIVE = "five.toml"


def backtest(
    *arguments: str, cwd: Path = DATA, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    return command("backtest", *arguments, cwd=cwd, **options)


def report_of(*arguments: str, **options: Any) -> dict[str, Any]:
    result = backtest("--json", "--policy", FIVE, *arguments, **options)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def test_the_table():
    result = backtest("--policy", FIVE, "--policy", "none", "runs.jsonl")
    assert result.stdout.decode() == (DATA / "runs.table.out").read_text("utf-8")
    assert (result.returncode, result.stderr) == (0, b"")


def test_the_json_output():
    report = report_of("--labels", "labels.json", "runs.jsonl")
    assert list(report) == [
        *("files", "lines", "bad_lines", "unclear_lines", "unused_labels", "policies"),
    ]
    assert (report["files"], report["lines"], report["bad_lines"]) == (1, 7, 0)
    assert report["unclear_lines"] == 0
    assert report["unused_labels"] == ["nobody"]
    [policy] = report["policies"]
    assert policy["policy"] == "five"
    assert policy["total"]["recall"] == {
        "count": 1,
        "of": 3,
        "share": pytest.approx(1 / 3),
        "low": pytest.approx(0.0614919),
        "high": pytest.approx(0.7923404),
    }
    assert policy["trip_steps"] == {"5": 1, "10": 1}
    assert [row["run_id"] for row in policy["missed_loops"]] == ["missed", "gave up"]
    assert policy["rules"] == {
        "repeated_result": {"trips": 2, "false_trips": 1, "loops": 1, "aborts": 2, "warns": 3}
    }


def test_files_gzip_folders_and_standard_input_are_the_same(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "runs").write_bytes(gzip.compress((DATA / "runs.jsonl").read_bytes()))
    (tmp_path / "notes.txt").write_text("see below")
    plain = report_of("runs.jsonl")["policies"][0]["total"]
    folder = backtest("--json", "--policy", FIVE, str(tmp_path))
    assert json.loads(folder.stdout)["policies"][0]["total"] == plain
    assert folder.stderr.decode() == f"{tmp_path}/notes.txt: passed over: it is no recording\n"
    stdin = report_of("-", stdin=(DATA / "runs.jsonl").read_bytes())
    assert stdin["policies"][0]["total"] == plain
    assert set(stdin["policies"][0]["sets"]) == {"alpha", "-"}


def test_spans_come_from_standard_input_as_well():
    spans = Recording("openai-agents-genai", "endless").lines()
    report = report_of("--jobs", "2", "-", stdin=b"".join(spans))
    total = report["policies"][0]["total"]
    assert (total["runs"], total["tripped"], report["policies"][0]["trip_steps"]) == (
        1,
        1,
        {"10": 1},
    )


def test_the_number_of_processes_changes_nothing(tmp_path: Path):
    one, two = (
        backtest("--json", "--details", str(tmp_path / jobs), "--jobs", jobs, "runs.jsonl", "tau")
        for jobs in ("1", "2")
    )
    assert one.stdout == two.stdout
    assert one.returncode == two.returncode == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes() != b""


def test_details_have_a_line_for_each_tripped_run(tmp_path: Path):
    path = tmp_path / "details.jsonl"
    report_of("--policy", "none", "--details", str(path), "runs.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["run_id"] for row in rows] == ["loop", "stubborn"]
    assert rows[0] == {
        "policy": "five",
        "run_id": "loop",
        "file": "runs.jsonl",
        "line": 1,
        "set": "alpha",
        "agent": "finder",
        "success": False,
        "label": "loop",
        "steps": 14,
        "rule": "repeated_result",
        "step": 10,
        "phase": "post",
        "count": 5,
        "threshold": 5,
        "rules": ["repeated_result"],
        "saved_steps": 4,
        "saved_tokens": 220,
        "saved_cost_usd": 0.02,
    }


class Page(HTMLParser):
    """Collects what a page says, and what it loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open += [tag] if tag not in {"meta", "br"} else []
        self.loads += [tag] if tag in {"script", "link", "img", "iframe", "object"} else []
        self.loads += [str(v) for name, v in attrs if name in {"src", "href", "srcset"}]

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.text.append(data.replace("\N{NO-BREAK SPACE}", " "))


def test_the_page_holds_the_figures_and_nothing_else_is_needed(tmp_path: Path):
    path = tmp_path / "report.html"
    result = backtest("--policy", FIVE, "--policy", "none", "--html", str(path), "runs.jsonl")
    assert result.returncode == 0
    text = path.read_text("utf-8")
    page = Page()
    page.feed(text)
    assert (page.loads, page.open) == ([], [])
    assert "url(" not in text
    assert "@import" not in text
    for figure in (
        "1 of 2 (50 %, 9.45 to 90.5 %)",
        "6 (16.2 %)",
        "220 (20 %)",
        "$0.0200 (20 %)",
        "2 (28.6 %)",
        "stubborn",
        "runs.jsonl:3",
        "missed",
        "repeated_result",
    ):
        assert figure in page.text, figure
    charts = [f"<svg{part.split('</svg>')[0]}</svg>" for part in text.split("<svg")[1:]]
    assert len(charts) == 3, "the trade-off, the rules and the steps of the one that trips"
    titles = [
        "".join(element.itertext())
        for chart in charts
        for element in ET.fromstring(chart).iter("{http://www.w3.org/2000/svg}title")  # noqa: S314 -- our own
    ]
    assert "five, watched for 10 steps: 1 of 2 loops caught, 1 of 2 false trips" in titles
    assert "repeated_result: 2 trips, 1 false trip" in titles
    assert "step 10: 1 trip, 0 false trips" in titles
    assert "2 (1 false)" in page.text, "the figures stand at the bars"
    assert "stopped" not in " ".join(page.text).replace("would have been stopped there", "")


def test_names_from_recordings_cannot_write_the_page(tmp_path: Path):
    step = {"type": "tool", "name": "t", "arguments": 1, "result": "r"}
    run = {"run_id": "<script>&\u0007\ud800", "success": True, "source": "<b>", "steps": [step] * 9}
    (tmp_path / "<i>.jsonl").write_text(json.dumps(run))
    result = backtest("--html", "r.html", "--details", "d.jsonl", "<i>.jsonl", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "&lt;script&gt;&amp;" in text
    assert not any(bad in text for bad in ("<script", "<b>", "<i>", "\u0007"))


def test_suggestions_are_a_policy_file(tmp_path: Path):
    path = tmp_path / "loopguard.toml"
    for _ in range(2):
        result = backtest("--suggest", str(path), "runs.jsonl")
        assert (result.returncode, result.stderr) == (0, b""), "what it wrote it may overwrite"
    assert read_policy(path).settings.limits.max_steps == 11
    assert "max_steps = 11  # n = 2, p50 = 5, p95 = 7, max = 7, factor 1.5" in path.read_text()


def test_a_policy_that_somebody_wrote_is_not_overwritten(tmp_path: Path):
    path = tmp_path / "loopguard.toml"
    path.write_text("mode = 'enforce'\n")
    result = backtest("--suggest", str(path), "runs.jsonl")
    assert (result.returncode, path.read_text()) == (2, "mode = 'enforce'\n")
    assert result.stderr.decode() == (
        f"otel-loopguard: {path}: it is not overwritten, because it was not written by --suggest; "
        "give another name, or delete it\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("runs.jsonl",), 0),
        (("--fail-on-false-trips", "0.5", "runs.jsonl"), 0),
        (("--fail-on-false-trips", "0.49", "runs.jsonl"), 3),
        (("--fail-on-false-trips", "0", "--policy", "none", "runs.jsonl"), 0),
        (("--fail-on-false-trips", "0", "--policy", "none", "--policy", FIVE, "runs.jsonl"), 3),
        (("--fail-on-false-trips", "0.1", "../replay/runs.jsonl"), 2),
        (("--fail-on-false-trips", "30", "runs.jsonl"), 2),
        (("../replay/bad_lines.jsonl",), 0),
        (("--strict", "../replay/bad_lines.jsonl"), 2),
        (("../replay/nothing_readable.jsonl", "runs.jsonl"), 2),
        (("missing.jsonl", "runs.jsonl"), 2),
        (("tau",), 0),
        (("--strict", "."), 2),
        ((), 2),
        (("--jobs", "0", "runs.jsonl"), 2),
        (("--by", "colour", "runs.jsonl"), 2),
        (("--fit-on", "colour", "runs.jsonl"), 2),
        (("--by", "agent", "--fit-on", "failed", "runs.jsonl"), 0),
        (("--policy", "missing.toml", "runs.jsonl"), 2),
        (("--labels", "missing.json", "runs.jsonl"), 2),
        (("--html", "missing/r.html", "runs.jsonl"), 2),
        (("--details", "missing/d.jsonl", "runs.jsonl"), 2),
        (("--suggest", ".", "runs.jsonl"), 2),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int):
    assert backtest("--json", *arguments).returncode == code


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("--policy", "missing.toml", "runs.jsonl"),
            (
                "otel-loopguard: missing.toml: the policy file cannot be read: No such file or "
                "directory; expected a policy file, or 'default' or 'none'"
            ),
        ),
        (
            ("--html", "missing/r.html", "runs.jsonl"),
            "otel-loopguard: missing/r.html: it cannot be written: there is no folder 'missing'",
        ),
        (
            ("--details", "missing/d.jsonl", "runs.jsonl"),
            "otel-loopguard: missing/d.jsonl: it cannot be written: No such file or directory",
        ),
        (
            ("--fail-on-false-trips", "0", "../replay/runs.jsonl"),
            (
                "otel-loopguard: --fail-on-false-trips: no run is known to have succeeded; give "
                "runs of steps files a field 'success', or name them in a file of --labels"
            ),
        ),
        (
            ("--fail-on-false-trips", "0.3", "--policy", FIVE, "runs.jsonl"),
            "five: more than 30 % of the successful runs tripped",
        ),
    ],
)
def test_errors_are_one_plain_line(arguments: tuple[str, ...], why: str):
    assert backtest("--json", *arguments).stderr.decode() == f"{why}\n"


def test_a_folder_without_recordings_says_so(tmp_path: Path):
    result = backtest(str(tmp_path))
    assert result.stderr.decode() == f"{tmp_path}: there is no recording in this folder\n"
    assert (result.returncode, result.stdout) == (2, b"No runs found.\n")


def test_bad_lines_are_reported_as_replay_does():
    result = backtest("--json", "../replay/bad_lines.jsonl")
    expected = (ROOT / "tests/testdata/replay/bad_lines.err").read_text("utf-8")
    assert result.stderr.decode() == expected.replace("bad_lines", "../replay/bad_lines")
    report = json.loads(result.stdout)
    assert (report["lines"], report["bad_lines"]) == (8, 6)
    assert report["policies"][0]["total"]["runs"] == 1


def test_two_policies_with_one_name_are_called_by_their_paths(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.toml").write_text("")
    paths = [str(tmp_path / name / "p.toml") for name in ("a", "b")]
    result = backtest("--json", "--policy", paths[0], "--policy", paths[1], "runs.jsonl")
    assert [policy["policy"] for policy in json.loads(result.stdout)["policies"]] == paths


@pytest.mark.parametrize(("count", "shown"), [(10, True), (1, False)])
def test_long_input_shows_its_progress_on_a_terminal(tmp_path: Path, count: int, *, shown: bool):
    line = json.dumps({"steps": [], "padding": "x" * 200_000})
    (tmp_path / "many.jsonl").write_text(f"{line}\n" * count)
    terminal, other_end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "otel_loopguard.cli", "backtest", "--json", "many.jsonl"],
        stdout=subprocess.PIPE,
        stderr=other_end,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
    ) as process:
        os.close(other_end)
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["policies"][0]["total"]["runs"] == count
        said = b""
        try:
            while chunk := os.read(terminal, 4096):
                said += chunk
        except OSError:  # Linux says so when the other end is closed
            pass
        os.close(terminal)
    assert (b"reading" in said) is shown
    assert process.returncode == 0

"""`otel-loopguard replay` as people and scripts run it: output, exit codes, bad input."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests._command import ROOT, command

DATA = ROOT / "tests" / "testdata" / "replay"
EXAMPLE = ROOT / "examples" / "replay"


def replay(*arguments: str, cwd: Path = DATA, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return command("replay", *arguments, cwd=cwd, **options)


def runs_of(result: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_five_identical_calls_with_equal_results_trip_at_the_fifth():
    result = replay("--json", "identical.jsonl")
    assert (result.returncode, result.stderr) == (0, b"")
    assert runs_of(result) == [
        {
            "run_id": "identical",
            "source": "identical.jsonl",
            "status": "running",
            "steps": 5,
            "model_calls": 0,
            "tool_calls": 5,
            "input_tokens": 0,
            "output_tokens": 0,
            "tripped": True,
            "violations": [
                {
                    "rule": rule,
                    "reason": reason,
                    "action": action,
                    "step": step,
                    "phase": "post",
                    "count": count,
                    "threshold": count,
                }
                for rule, reason, action, step, count in (
                    ("repeated_result", "REPEATED_RESULT_DETECTED", "warn", 3, 3),
                    ("no_novelty", "NO_NOVELTY_DETECTED", "warn", 4, 3),
                    ("repeated_result", "REPEATED_RESULT_DETECTED", "abort", 5, 5),
                )
            ],
            "saved": {"steps": 0, "tokens": 0, "cost_usd": 0.0},
        }
    ]


def test_twenty_polls_with_changing_results_do_not_trip():
    result = replay("--json", "--fail-on-trip", "polls.jsonl")
    assert (result.returncode, result.stderr) == (0, b"")
    [run] = runs_of(result)
    assert (run["tripped"], run["violations"], run["steps"]) == (False, [], 20)


@pytest.mark.parametrize(
    ("arguments", "golden"),
    [
        (("--json", "runs.jsonl"), "runs.json.out"),
        (("runs.jsonl",), "runs.table.out"),
        (("--policy", "policy.toml", "runs.jsonl", "polls.jsonl"), "policy.table.out"),
    ],
)
def test_golden_output(arguments: tuple[str, ...], golden: str):
    result = replay(*arguments)
    assert result.stdout.decode() == (DATA / golden).read_text("utf-8")
    assert (result.returncode, result.stderr) == (0, b"")


def test_the_page_shows_what_becomes_of_the_example(tmp_path: Path):
    page = (ROOT / "docs" / "replay.md").read_text("utf-8")
    shown = page.split("$ otel-loopguard replay traces.jsonl\n")[1].split("```")[0]
    # A package that fails to import stands in for the missing one, as an uninstalled one does.
    (tmp_path / "genai_prices.py").write_text("raise ImportError")
    unpriced = f"{tmp_path}{os.pathsep}{ROOT}"
    result = replay("traces.jsonl", cwd=EXAMPLE, PYTHONPATH=unpriced)
    assert (result.stdout.decode(), result.stderr, result.returncode) == (shown, b"", 0)


def test_the_policy_of_the_example_stops_its_endless_run_earlier():
    result = replay("--json", "--policy", "loopguard.toml", "traces.jsonl", cwd=EXAMPLE)
    endless, healthy = runs_of(result)
    stop = next(found for found in endless["violations"] if found["action"] == "abort")
    assert (stop["rule"], stop["step"], stop["threshold"]) == ("repeated_result", 8, 4)
    assert endless["saved"]["steps"] == endless["steps"] - 8
    assert healthy["violations"] == []


def test_bad_lines_are_reported_with_file_line_and_reason_and_the_rest_is_read():
    result = replay("--json", "bad_lines.jsonl")
    assert [run["run_id"] for run in runs_of(result)] == ["good"]
    assert result.stderr.decode() == (DATA / "bad_lines.err").read_text("utf-8")
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("runs.jsonl",), 0),
        (("--fail-on-trip", "runs.jsonl"), 3),
        (("--fail-on-trip", "--policy", "policy.toml", "polls.jsonl"), 3),
        (("--fail-on-trip", "polls.jsonl"), 0),
        (("--strict", "runs.jsonl"), 0),
        (("bad_lines.jsonl",), 0),
        (("--strict", "bad_lines.jsonl"), 2),
        (("--strict", "--fail-on-trip", "bad_lines.jsonl", "runs.jsonl"), 2),
        (("nothing_readable.jsonl",), 2),
        (("nothing_readable.jsonl", "runs.jsonl"), 2),
        (("missing.jsonl", "runs.jsonl"), 2),
        ((".",), 2),
        (("--policy", "none", "--fail-on-trip", "identical.jsonl"), 0),
        (("--policy", "default", "--fail-on-trip", "identical.jsonl"), 3),
        ((), 2),
        (("--nonsense", "runs.jsonl"), 2),
        (("--policy", "bad_policy.toml", "runs.jsonl"), 2),
        (("--policy", "missing.toml", "runs.jsonl"), 2),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int):
    assert replay(*arguments).returncode == code


@pytest.mark.parametrize(
    "arguments",
    [("replay", "runs.jsonl"), ("replay", "--json", "runs.jsonl"), ("--help",), ("--version",)],
)
def test_output_that_cannot_be_written_is_one_plain_line(arguments: tuple[str, ...]):
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "otel_loopguard.cli", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            cwd=DATA,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
            timeout=240,
        )
    why = b"otel-loopguard: the output cannot be written: No space left on device\n"
    assert (result.stderr, result.returncode) == (why, 2)


def test_without_standard_output_one_plain_line_says_so():
    result = subprocess.run(
        [
            "/bin/sh",
            "-c",
            '"$0" -m otel_loopguard.cli replay --json runs.jsonl >&-',
            sys.executable,
        ],
        stderr=subprocess.PIPE,
        check=False,
        cwd=DATA,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=240,
    )
    why = b"otel-loopguard: the output cannot be written: standard output is closed\n"
    assert (result.stderr, result.returncode) == (why, 2)


@pytest.mark.parametrize(
    ("bad", "summary"),
    [(10, []), (11, ["1 more line could not be read"]), (36, ["26 more lines could not be read"])],
)
def test_ten_bad_lines_of_a_file_are_reported_and_the_others_counted(
    tmp_path: Path, bad: int, summary: list[str]
):
    metrics = b'{"resourceMetrics": []}\n'
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(b"\n" + b"7\n" * bad + metrics)
    result = replay("--json", "a.jsonl", "b.jsonl", cwd=tmp_path)
    assert [line.split(": the line: ")[0] for line in result.stderr.decode().splitlines()] == [
        line
        for name in ("a.jsonl", "b.jsonl")
        for line in (*(f"{name}:{n}" for n in range(2, 12)), *(f"{name}: {s}" for s in summary))
    ]
    assert (result.returncode, result.stdout) == (0, b"")


def test_where_no_run_is_found_it_says_how_much_could_not_be_read(tmp_path: Path):
    metrics = b'{"resourceMetrics": []}\n'
    (tmp_path / "bad.jsonl").write_bytes(b"7\n" * 8 + b"\n" + metrics)
    (tmp_path / "worse.jsonl").write_bytes(b"7\n")
    (tmp_path / "metrics.jsonl").write_bytes(metrics)
    one = replay("bad.jsonl", cwd=tmp_path)
    three = replay("bad.jsonl", "metrics.jsonl", "worse.jsonl", cwd=tmp_path)
    found = [result.stdout.decode() for result in (one, three)]
    assert found == [
        "No runs found: 8 of 9 lines of bad.jsonl could not be read.\n",
        "No runs found: 8 of 9 lines of bad.jsonl, 1 of 1 line of worse.jsonl could not be read.\n",
    ]
    assert (one.returncode, three.returncode) == (0, 2)


def test_exit_codes_are_the_same_with_json():
    assert replay("--json", "--fail-on-trip", "runs.jsonl").returncode == 3
    assert replay("--json", "--strict", "bad_lines.jsonl").returncode == 2


def test_a_missing_file_is_named_and_the_others_are_read():
    result = replay("--json", "missing.jsonl", "identical.jsonl")
    assert result.stderr.decode() == "missing.jsonl: it cannot be read: No such file or directory\n"
    assert [run["source"] for run in runs_of(result)] == ["identical.jsonl"]


def test_an_unreadable_file_says_so_after_its_lines():
    result = replay("--json", "nothing_readable.jsonl")
    *lines, last = result.stderr.decode().splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "nothing_readable.jsonl:1",
        "nothing_readable.jsonl:2",
    ]
    assert last == "nothing_readable.jsonl: none of its 2 lines can be read"
    assert result.stdout == b""


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_has_no_runs(tmp_path: Path, content: bytes):
    (tmp_path / "empty.jsonl").write_bytes(content)
    as_json = replay("--json", "--strict", "empty.jsonl", cwd=tmp_path)
    table = replay("empty.jsonl", cwd=tmp_path)
    assert (as_json.returncode, as_json.stdout, as_json.stderr) == (0, b"", b"")
    assert (table.returncode, table.stdout, table.stderr) == (0, b"No runs found.\n", b"")


def test_gzip_is_read_by_content_whatever_the_name(tmp_path: Path):
    packed = gzip.compress((DATA / "runs.jsonl").read_bytes())
    for name in ("runs.jsonl.gz", "runs.jsonl"):
        (tmp_path / name).write_bytes(packed)
        result = replay("--json", name, cwd=tmp_path)
        assert [run["run_id"] for run in runs_of(result)][:2] == ["healthy", "loop"]
        assert result.returncode == 0


def test_a_gzip_file_cut_short_is_read_as_far_as_it_goes(tmp_path: Path):
    lines = [(DATA / "identical.jsonl").read_bytes()]
    lines += [b'{"run_id": "%d", "steps": []}\n' % n for n in range(20_000)]
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"".join(lines))[:-20_000])
    result = replay("--json", "cut.gz", cwd=tmp_path)
    runs = runs_of(result)
    assert runs[0]["tripped"]
    assert 1 < len(runs) < 20_000
    assert result.stderr.decode().splitlines()[-1].startswith("cut.gz: it cannot be read: ")
    assert result.returncode == 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_dash_is_standard_input(pack: Any):
    result = replay("--json", "-", stdin=pack((DATA / "identical.jsonl").read_bytes()))
    assert [(run["source"], run["tripped"]) for run in runs_of(result)] == [("-", True)]
    assert result.returncode == 0


def test_json_output_comes_while_input_goes_on():
    with subprocess.Popen(
        [sys.executable, "-m", "otel_loopguard.cli", "replay", "--json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write((DATA / "identical.jsonl").read_bytes())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["run_id"] == "identical"
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_reader_that_leaves_is_no_error(tmp_path: Path):
    (tmp_path / "many.jsonl").write_bytes((DATA / "identical.jsonl").read_bytes() * 2_000)
    for form in ("--json", "--strict"):
        with subprocess.Popen(
            [sys.executable, "-m", "otel_loopguard.cli", "replay", form, "many.jsonl"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""


def test_a_bad_policy_is_one_plain_line():
    result = replay("--policy", "bad_policy.toml", "runs.jsonl")
    [line] = result.stderr.decode().splitlines()
    assert line.startswith("otel-loopguard: bad_policy.toml: limits.max_steps: expected ")
    assert result.stdout == b""


def test_a_missing_policy_is_one_plain_line():
    result = replay("--policy", "missing.toml", "runs.jsonl")
    [line] = result.stderr.decode().splitlines()
    assert "missing.toml" in line


def test_the_table_has_colours_on_a_terminal_only_and_not_against_no_color():
    plain = replay("runs.jsonl")
    coloured = replay("runs.jsonl", FORCE_COLOR="1", TERM="xterm-256color")
    against = replay("runs.jsonl", FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1")
    assert b"\x1b[" not in plain.stdout
    assert b"\x1b[1;31mSTOP" in coloured.stdout
    assert b"\x1b[1;31m" not in against.stdout


def test_ids_that_a_terminal_cannot_show_break_nothing():
    line = b'{"run_id": "\\ud83d\\u001b[31m[bold]:smile:", "steps": []}\n'
    table = replay("-", stdin=line, PYTHONIOENCODING="ascii")
    as_json = replay("--json", "-", stdin=line)
    assert (table.returncode, as_json.returncode) == (0, 0)
    assert b"??[31m[bold]:smile:" in table.stdout
    assert runs_of(as_json)[0]["run_id"] == "?\x1b[31m[bold]:smile:"


@pytest.mark.parametrize(("count", "shown"), [(10, True), (1, False)])
def test_long_input_shows_its_progress_on_a_terminal(tmp_path: Path, count: int, *, shown: bool):
    line = json.dumps({"steps": [], "padding": "x" * 1_000_000})
    (tmp_path / "many.jsonl").write_text(f"{line}\n" * count)
    terminal, other_end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "otel_loopguard.cli", "replay", "--json", "many.jsonl"],
        stdout=subprocess.PIPE,
        stderr=other_end,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
    ) as process:
        os.close(other_end)
        assert process.stdout is not None
        written = bytearray()
        reading = threading.Thread(target=_drain, args=(terminal, written))
        reading.start()
        assert len(process.stdout.read().splitlines()) == count
        assert process.wait(60) == 0
        reading.join()
    os.close(terminal)
    assert (b"reading" in written) is shown


def _drain(terminal: int, written: bytearray) -> None:
    """Read until the other end is closed, which Linux reports as an error."""
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65_536):
            written.extend(data)


def test_version():
    result = command("--version", cwd=DATA)
    assert result.stdout.decode().split()[0] == "otel-loopguard"
    assert result.returncode == 0


def test_the_package_runs_as_the_script_does():
    as_package = [sys.executable, "-m", "otel_loopguard"]
    result = subprocess.run(
        [*as_package, "replay", "--json", "--fail-on-trip", "runs.jsonl"],
        capture_output=True,
        check=False,
        cwd=DATA,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=240,
    )
    assert result.stdout.decode() == (DATA / "runs.json.out").read_text("utf-8")
    assert (result.returncode, result.stderr) == (3, b"")


def test_help_names_the_command_and_its_options():
    assert b"replay" in command("--help", cwd=DATA).stdout
    shown = replay("--help", COLUMNS="200").stdout
    for option in (b"--policy", b"--json", b"--fail-on-trip", b"--strict", b"FILE..."):
        assert option in shown


def test_without_the_extra_one_line_says_how_to_install_it(tmp_path: Path):
    # A package that fails to import stands in for the missing one, as an uninstalled one does.
    (tmp_path / "typer.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')\n"
    )
    result = command("replay", "x", cwd=DATA, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    [line] = result.stderr.decode().splitlines()
    assert "pip install 'otel-loopguard[cli]'" in line
    assert result.returncode == 2

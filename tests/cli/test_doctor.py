"""`otel-loopguard doctor` as people and scripts run it: output, exit codes, bad input."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from otel_loopguard.doctor.finding import Name
from tests._command import ROOT, command
from tests._recorded_protobuf import request_of, with_four_bytes
from tests._recordings import Recording, recordings

BLIND = Recording("langchain-genai-nocontent", "finish3")
WELL = Recording("langchain-genai", "finish3")


def doctor(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return command("doctor", *arguments, cwd=cwd, **options)


def said(*arguments: str, **options: Any) -> dict[str, Any]:
    result = doctor("--json", *arguments, **options)
    assert (result.returncode, result.stderr) == (0, b"")
    (line,) = result.stdout.splitlines()
    return json.loads(line)


def written(folder: Path, recording: Recording, name: str = "traces.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(recording.lines()))
    return path


@pytest.mark.parametrize("recording", [BLIND, WELL], ids=str)
def test_the_page_shows_what_it_prints(tmp_path: Path, recording: Recording):
    written(tmp_path, recording)
    result = doctor("traces.jsonl", cwd=tmp_path)
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")

    assert (result.returncode, result.stderr) == (0, b"")
    assert f"$ otel-loopguard doctor traces.jsonl\n{result.stdout.decode()}```\n" in page


def test_the_page_names_every_finding():
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")

    assert [name for name in get_args(Name) if f"`{name}`" not in page] == []


def test_json_is_one_object_with_the_worst_finding_first(tmp_path: Path):
    written(tmp_path, BLIND)
    report = said("traces.jsonl", cwd=tmp_path)

    assert list(report) == ["findings", "seen"]
    assert report["findings"][0] == {
        "finding": "no_arguments",
        "severity": "blind",
        "scopes": ["opentelemetry.instrumentation.genai.langchain"],
        "what": "arguments are on none of 2 tool calls",
        "means": report["findings"][0]["means"],
        "remedy": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
        "source": "opentelemetry-util-genai 1.3b0: environment_variables.py, utils.py; recordings",
    }
    assert report["seen"]["spans"] == 6


def test_gzip_standard_input_and_protobuf_say_the_same(tmp_path: Path):
    plain = written(tmp_path, BLIND).read_bytes()
    (tmp_path / "traces.jsonl.gz").write_bytes(gzip.compress(plain))
    messages = [request_of(line).SerializeToString() for line in BLIND.lines()]
    (tmp_path / "traces.pb").write_bytes(with_four_bytes(messages))
    expected = said("traces.jsonl", cwd=tmp_path)

    assert said("traces.jsonl.gz", cwd=tmp_path) == expected
    assert said("-", stdin=plain, cwd=tmp_path) == expected
    assert said("traces.pb", cwd=tmp_path) == expected


def test_several_files_make_one_report(tmp_path: Path):
    written(tmp_path, BLIND, "a.jsonl")
    written(tmp_path, WELL, "b.jsonl")
    report = said("a.jsonl", "b.jsonl", cwd=tmp_path)

    assert report["seen"]["spans"] == 12
    assert report["findings"][0]["what"] == "arguments are on 2 of 4 tool calls"


@pytest.mark.parametrize(("recording", "code"), [(BLIND, 3), (WELL, 0)], ids=str)
def test_blindness_may_fail_a_build(tmp_path: Path, recording: Recording, code: int):
    written(tmp_path, recording)

    assert doctor("--fail-on-blind", "traces.jsonl", cwd=tmp_path).returncode == code
    assert doctor("traces.jsonl", cwd=tmp_path).returncode == 0


def test_what_cannot_be_read_is_told(tmp_path: Path):
    good = written(tmp_path, WELL).read_bytes()
    (tmp_path / "partly.jsonl").write_bytes(b"{]\n" + good)
    (tmp_path / "bad.jsonl").write_bytes(b"{]\n")
    (tmp_path / "steps.jsonl").write_text('{"steps": []}\n', "utf-8")

    missing = doctor("nothing.jsonl", cwd=tmp_path)
    assert (missing.returncode, b"nothing.jsonl" in missing.stderr) == (2, True)
    partly = doctor("partly.jsonl", cwd=tmp_path)
    assert (partly.returncode, partly.stderr.startswith(b"partly.jsonl:1: ")) == (0, True)
    assert doctor("--strict", "partly.jsonl", cwd=tmp_path).returncode == 2
    assert doctor("--fail-on-blind", "bad.jsonl", cwd=tmp_path).returncode == 2
    steps = doctor("steps.jsonl", cwd=tmp_path)
    assert steps.returncode == 2
    assert b"a steps file has no spans" in steps.stderr


def test_an_empty_file_has_no_steps(tmp_path: Path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    result = doctor("--fail-on-blind", "empty.jsonl", cwd=tmp_path)

    assert result.returncode == 3
    assert result.stdout.startswith(b"blind none of 0 spans is an agent")


def test_every_recording_can_be_printed(tmp_path: Path):
    chosen = [each for each in recordings() if each.script.startswith("finish3")]
    names = [written(tmp_path, each, f"{each}.jsonl").name for each in chosen]
    result = doctor(*names, cwd=tmp_path, PYTHONIOENCODING="ascii")

    assert (result.returncode, result.stderr) == (0, b"")
    assert b"not known for this instrumentation" in result.stdout
    assert b"ok    " in result.stdout

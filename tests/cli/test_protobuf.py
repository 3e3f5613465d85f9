"""Recordings in OTLP protobuf on the command line: the same runs as from OTLP/JSON."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests._command import command
from tests._recorded_protobuf import (
    json_lines,
    logs,
    messages,
    metrics,
    with_four_bytes,
    with_varints,
)
from tests._recordings import Recording

ENDLESS = Recording("openai-agents-genai", "endless")
HEALTHY = Recording("langchain-genai", "finish3")
FRAMINGS: dict[str, Callable[[Iterable[bytes]], bytes]] = {
    "four bytes": with_four_bytes,
    "varint": with_varints,
    # Messages one after the other are, to protobuf, one that holds all of it.
    "bare": b"".join,
}


def runs_of(result: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    assert (result.returncode, result.stderr) == (0, b"")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return what the JSON recording of the same spans gives, from a file of the same name."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "recording").write_bytes(b"\n".join(json_lines(ENDLESS)))
    result = command("replay", "--json", "--strict", "recording", cwd=folder)
    assert runs_of(result)[0]["tripped"]
    return result.stdout


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_output_is_that_of_the_json_recording(
    tmp_path: Path, expected: bytes, framing: str, pack: Callable[[bytes], bytes]
):
    (tmp_path / "recording").write_bytes(pack(FRAMINGS[framing](messages(ENDLESS))))
    result = command("replay", "--json", "--strict", "recording", cwd=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == (expected, b"", 0)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_standard_input_is_read_as_well(tmp_path: Path, expected: bytes, framing: str):
    stdin = FRAMINGS[framing](messages(ENDLESS))
    result = command("replay", "--json", "--strict", "-", cwd=tmp_path, stdin=stdin)
    assert result.stdout == expected.replace(b'"recording"', b'"-"')


def test_metrics_and_logs_between_are_passed_over(tmp_path: Path, expected: bytes):
    mixed = [metrics(), *messages(ENDLESS), logs(), b"", metrics()]
    (tmp_path / "recording").write_bytes(with_four_bytes(mixed))
    result = command("replay", "--json", "--strict", "recording", cwd=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == (expected, b"", 0)


@pytest.mark.parametrize(("framing", "place"), [("four bytes", 0), ("varint", 1), ("varint", -1)])
def test_a_bad_message_is_named_and_the_rest_is_read(tmp_path: Path, framing: str, place: int):
    found = messages(ENDLESS)
    found[place] = b"\x0a\x7f" + found[place]
    (tmp_path / "recording").write_bytes(FRAMINGS[framing](found))
    number = len(found) if place < 0 else place + 1
    for strict, code in (((), 0), (("--strict",), 2)):
        result = command("replay", "--json", *strict, "recording", cwd=tmp_path)
        [line] = result.stderr.decode().splitlines()
        assert line.startswith(f"recording:{number}: message {number}: expected ")
        assert (len(result.stdout.splitlines()), result.returncode) == (1, code)
    table = command("replay", "recording", cwd=tmp_path)
    assert b"1 run, 1 would have been stopped" in table.stdout


@pytest.mark.parametrize("framing", ["four bytes", "varint"])
def test_a_last_message_that_is_cut_is_named(tmp_path: Path, framing: str):
    found = messages(ENDLESS)
    size = len(found[-1])
    whole = FRAMINGS[framing](found)
    for cut, got in ((1, size - 1), (size, 0)):
        (tmp_path / "recording").write_bytes(whole[:-cut])
        result = command("replay", "--json", "recording", cwd=tmp_path)
        why = f"message {len(found)}: expected {size} bytes, got {got}: the file ends there"
        assert result.stderr.decode() == f"recording:{len(found)}: {why}\n"
        assert (len(result.stdout.splitlines()), result.returncode) == (1, 0)


def test_many_bad_messages_are_counted(tmp_path: Path):
    broken = [b"\x0a\x7f" + message for message in messages(ENDLESS)[:12]]
    (tmp_path / "recording").write_bytes(with_four_bytes([metrics(), *broken]))
    result = command("replay", "recording", cwd=tmp_path)
    assert result.stderr.decode().endswith("recording: 2 more messages could not be read\n")
    assert result.stdout.decode() == (
        "No runs found: 12 of 13 messages of recording could not be read.\n"
    )
    (tmp_path / "recording").write_bytes(messages(ENDLESS)[0][:-1])
    for name in ("replay", "backtest"):
        result = command(name, "recording", cwd=tmp_path)
        last = result.stderr.decode().splitlines()[-1]
        assert last == "recording: none of its 1 messages can be read"
        assert result.returncode == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(90), "expected OTLP/JSON lines, a steps file, or OTLP proto"),
        (bytes(100), "expected OTLP/JSON lines, a steps file, or OTLP protobuf"),
        (b"\x28\xb5\x2f\xfd" + bytes(99), "it is packed with zstd"),
        (b"\0\0\0\x63\x28\xb5\x2f\xfd" + bytes(95), "its messages are packed with zstd"),
    ],
    ids=["picture", "zeros", "zstd", "zstd messages"],
)
def test_a_file_of_another_kind_says_what_was_expected(tmp_path: Path, content: bytes, why: str):
    for name, pack in (("replay", bytes), ("backtest", gzip.compress)):
        (tmp_path / "recording").write_bytes(pack(content))
        result = command(name, "recording", cwd=tmp_path)
        [line] = result.stderr.decode().splitlines()
        assert line.startswith(f"recording: {why}")
        assert result.returncode == 2


def test_backtest_finds_reads_and_judges_them_in_folders_with_labels(tmp_path: Path):
    folders = [tmp_path / "json", tmp_path / "protobuf"]
    reports: list[dict[str, Any]] = []
    for folder in folders:
        folder.mkdir()
        for name, file in ((ENDLESS, "a"), (HEALTHY, "b")):
            written = (
                b"\n".join(json_lines(name))
                if folder.name == "json"
                else with_four_bytes(messages(name))
            )
            (folder / file).write_bytes(written)
        (folder / "README.md").write_text("# Runs\n")
        (folder / "picture.png").write_bytes(b"\x89PNG\r\n" + bytes(99))
        endless, healthy = runs_of(command("replay", "--json", "a", "b", cwd=folder))
        labels = {endless["run_id"]: "loop", healthy["run_id"]: {"label": "no", "success": True}}
        (tmp_path / "labels.json").write_text(json.dumps(labels))
        arguments = ("backtest", "--json", "--labels", "../labels.json", "--by", "file")
        for jobs in ("1", "2"):
            result = command(*arguments, "--jobs", jobs, ".", cwd=folder)
            assert result.returncode == 0
            assert len(result.stderr.splitlines()) == 2, "the page and the picture"
            reports.append(json.loads(result.stdout))
    assert reports[0]["policies"][0]["total"]["labels"]["loop"] == 1
    assert all(report == reports[0] for report in reports)


def test_backtest_reads_standard_input(tmp_path: Path):
    stdin = gzip.compress(with_varints(messages(ENDLESS)))
    result = command("backtest", "--json", "--jobs", "2", "-", cwd=tmp_path, stdin=stdin)
    report = json.loads(result.stdout)
    assert (report["lines"], report["bad_lines"]) == (len(messages(ENDLESS)), 0)
    assert report["policies"][0]["total"]["tripped"] == 1

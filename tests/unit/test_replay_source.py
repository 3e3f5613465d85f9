"""Lines of recorded files: what kind each is, and how files are opened."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from otel_loopguard.replay import ReplayError
from otel_loopguard.replay.source import kind_of, numbered_lines, size_of


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"resourceSpans":[]}', "spans"),
        (b' { "resourceSpans" : [] }', "spans"),
        (b'{"resource_spans":[]}', "spans"),
        (b'\xef\xbb\xbf{"resourceSpans":[]}', "spans"),
        (b'{"schema": 1, "resourceSpans":[]}', "spans"),
        (b'{"steps":[]}', "steps"),
        (b'{"run_id": "resourceSpans", "meta": {"resourceSpans": 1}, "steps":[]}', "steps"),
        (b'{"run_id": "r", "steps": [{"result": "\\"resourceSpans\\": "}]}', "steps"),
        (b'{"run_id": "\\ud83d", "steps": [NaN]}', "steps"),
        (b'{"resourceMetrics":[]}', "other"),
        (b'{"resourceLogs":[]}', "other"),
        (b"", "blank"),
        (b" \r\n", "blank"),
    ],
)
def test_kind_of(line: bytes, kind: str):
    assert kind_of(line) == kind


@pytest.mark.parametrize("line", [b"{}", b"[]", b"7", b"null", b'{"other": 1}', b'"steps"', b"x"])
def test_a_line_of_no_known_kind(line: bytes):
    with pytest.raises(ReplayError, match="expected"):
        kind_of(line)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_lines_are_numbered_from_1_and_bytes_are_counted(tmp_path: Path, pack: type[bytes]):
    text = b"".join(b"%d\n" % n for n in range(200_000)) + b"last"
    file = tmp_path / "file"
    file.write_bytes(pack(text))
    told: list[int] = []
    lines = list(numbered_lines(str(file), told.append))
    assert lines[0] == (1, b"0\n")
    assert lines[-1] == (200_001, b"last")
    assert sum(told) == file.stat().st_size == size_of(str(file))


def test_gzip_members_one_after_the_other_are_one_file(tmp_path: Path):
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert [line for _, line in numbered_lines(str(file))] == [b"a\n", b"b\n"]


def test_a_file_that_cannot_be_opened(tmp_path: Path):
    with pytest.raises(ReplayError, match="it cannot be read: No such file or directory"):
        list(numbered_lines(str(tmp_path / "missing")))
    assert size_of(str(tmp_path / "missing")) is None


def test_a_gzip_file_that_is_damaged(tmp_path: Path):
    packed = bytearray(gzip.compress(b"a line\n" * 1_000))
    packed[len(packed) // 2] ^= 0xFF
    file = tmp_path / "file.gz"
    file.write_bytes(packed)
    with pytest.raises(ReplayError, match="it cannot be read: "):
        list(numbered_lines(str(file)))


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "a": "loop"\n}\n',
        '\ufeff\n{\n\n"a": "loop"}',
        '{"labels": [\n  {"run_id": "a"}\n]}',
        '[\n{\n"run_id": "a"\n}\n]',
        '[{"steps": []},\n{"steps": []}]',
    ],
)
def test_one_json_document_over_several_lines_is_told_at_once(tmp_path: Path, text: str):
    file = tmp_path / "labels.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ReplayError, match="this looks like one JSON document; expected one JSON"):
        list(numbered_lines(str(file)))


@pytest.mark.parametrize(
    "text",
    [
        '{"steps": [{"ty\n{"steps": []}\n',
        '\n{"steps": [\n\n',
        '{"steps": [',
        "7\n{\n",
        '{"steps": []}\n{\n"a": 1\n}\n',
        "[1]\n[2]\n",
    ],
)
def test_a_line_that_was_cut_is_a_line(tmp_path: Path, text: str):
    file = tmp_path / "runs.jsonl"
    file.write_text(text)
    lines = list(numbered_lines(str(file)))
    assert b"".join(line for _, line in lines) == text.encode()
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))

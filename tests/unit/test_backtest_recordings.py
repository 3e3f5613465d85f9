"""Which files of a folder are recordings."""

from __future__ import annotations

import gzip
from pathlib import Path

from otel_loopguard.backtest import find_recordings

STEPS = b'{"run_id": "a", "steps": []}\n'
SPANS = b'{"resourceSpans": []}\n'


def test_a_folder_is_searched_for_recordings(tmp_path: Path):
    contents = {
        "b/deep/x.json": b"\xef\xbb\xbf\n " + SPANS,
        "b/y.gz": gzip.compress(STEPS),
        "a.jsonl": STEPS,
        "README.md": b"# Runs\n",
        "labels.json": b'{\n "a": "loop"\n}\n',
        "other.jsonl": b'{"event": 1}\n',
        "empty": b"",
        "picture.png": b"\x89PNG\r\n" + bytes(99),
        "cut.gz": gzip.compress(STEPS)[:12],
        ".hidden.jsonl": STEPS,
        ".git/x.jsonl": STEPS,
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found = find_recordings([str(tmp_path)])
    assert [name.removeprefix(f"{tmp_path}/") for name in found.files] == [
        "a.jsonl",
        "b/y.gz",
        "b/deep/x.json",
    ]
    assert [name.removeprefix(f"{tmp_path}/") for name in found.passed_over] == [
        "README.md",
        "cut.gz",
        "empty",
        "labels.json",
        "other.jsonl",
        "picture.png",
    ]
    assert found.empty == ()


def test_what_is_named_itself_is_taken_and_once(tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(STEPS)
    (tmp_path / "b.txt").write_bytes(b"no recording")
    (tmp_path / "nothing").mkdir()
    a, b = str(tmp_path / "a.jsonl"), str(tmp_path / "b.txt")
    found = find_recordings([b, "-", "missing", a, str(tmp_path), "-", str(tmp_path / "nothing")])
    assert found.files == (b, "-", "missing", a)
    assert found.empty == (str(tmp_path / "nothing"),)

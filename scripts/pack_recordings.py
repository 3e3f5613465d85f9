"""Packs recordings of agents into one small file per folder: `tests/testdata/traces`.

    python -m scripts.pack_recordings RECORDINGS TARGET

Reads `FOLDER/SCRIPT[.PART].otlp.jsonl.gz`, one OTLP/JSON request a line, and beside it
`FOLDER/SCRIPT[.PART].events.jsonl.gz`, the starts and ends of the same spans in their order. Writes
`FOLDER.jsonl.xz`, one script a line. Requests are kept as they are, of events what a live feed
needs. A value that names a folder of the machine is refused: clean the recording first.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
import sys
from pathlib import Path
from typing import Any

SPANS = ".otlp.jsonl.gz"
EVENTS = ".events.jsonl.gz"
OF_A_MACHINE = re.compile(r"/(?:root|home|Users|tmp|opt|usr|var|mnt|srv)\b[^\s\"\\]*")
OF_A_START = ("name", "trace", "parent", "scope", "t", "thread", "task")
OF_AN_END = ("t", "thread")


def lines_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def trimmed(event: dict[str, Any]) -> dict[str, Any]:
    """Return a start or an end without what is not asked for; what is absent stays absent."""
    kind = event["ev"]
    keys = OF_A_START if kind == "start" else OF_AN_END
    kept = {kind: event["span"], **{key: event[key] for key in keys if key in event}}
    return kept | ({"attributes": event["attrs_at_start"]} if kind == "start" else {})


def part_of(path: Path) -> dict[str, Any]:
    part: dict[str, Any] = {"spans": lines_of(path)}
    events = path.with_name(path.name.removesuffix(SPANS) + EVENTS)
    if events.exists():
        part["events"] = [trimmed(event) for event in lines_of(events)]
    return part


def packed(folder: Path) -> str:
    scripts: dict[str, dict[str, Any]] = {}
    names = [path.name.removesuffix(SPANS) for path in folder.glob(f"*{SPANS}")]
    for name in sorted(names, key=lambda name: name.split(".")):  # a script before its parts
        script, _, part = name.partition(".")
        found = part_of(folder / f"{name}{SPANS}")
        if part:
            scripts[script][part] = found
        else:
            scripts[script] = {"script": script, **found}
    text = "".join(
        json.dumps(script, ensure_ascii=False, separators=(",", ":")) + "\n"
        for script in scripts.values()
    )
    if named := sorted(set(OF_A_MACHINE.findall(text))):
        raise SystemExit(f"{folder} names folders of a machine: {', '.join(named[:5])}")
    return text


def main(recordings: Path, target: Path) -> None:
    for folder in sorted(path for path in recordings.iterdir() if path.is_dir()):
        data = packed(folder).encode()
        path = target / f"{folder.name}.jsonl.xz"
        path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
        print(f"{path}: {path.stat().st_size:,} bytes of {len(data):,}")
    shutil.copyfile(recordings / "truth.json", target / "truth.json")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))

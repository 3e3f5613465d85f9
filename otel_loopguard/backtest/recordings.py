"""Names on the command line -> recorded files; folders are searched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from otel_loopguard.replay import ReplayError
from otel_loopguard.replay.contents import BLANK, GZIP
from otel_loopguard.replay.files import read_line
from otel_loopguard.replay.proto_frames import Message, framing_of
from otel_loopguard.replay.source import STDIN, kind_of, numbered_lines

_BEGIN = 4_096


class Recordings(msgspec.Struct, frozen=True):
    """Files to read, each once."""

    files: tuple[str, ...]
    passed_over: tuple[str, ...]
    """Files of the folders that are no recordings."""
    empty: tuple[str, ...]
    """Folders in which there is no recording."""


def find_recordings(names: Iterable[str]) -> Recordings:
    """Return the recorded files that `names` name, in order; those of a folder in that of names.

    What is named itself is taken whatever it is. In a folder, and the folders in it, files count
    whose first line is that of a recording; names that begin with a dot are left out.
    """
    files: dict[str, str] = {}
    passed_over: list[str] = []
    empty: list[str] = []
    for name in dict.fromkeys(names):
        if name == STDIN or not Path(name).is_dir():
            files.setdefault(_key(name), name)
            continue
        inside = [(path, _is_recording(path)) for path in _files_in(name)]
        passed_over += (path for path, is_recording in inside if not is_recording)
        found = [path for path, is_recording in inside if is_recording]
        if not found:
            empty.append(name)
        for path in found:
            files.setdefault(_key(path), path)
    return Recordings(tuple(files.values()), tuple(passed_over), tuple(empty))


def _key(name: str) -> str:
    return name if name == STDIN else os.path.realpath(name)


def _files_in(folder: str) -> list[str]:
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += (os.path.join(place, n) for n in sorted(names) if not n.startswith("."))  # noqa: PTH118 -- names stay as they were given
    return [path for path in found if Path(path).is_file()]


def _is_recording(path: str) -> bool:
    """Say whether the first line that is not blank, or the first message, is one of a recording."""
    lines = numbered_lines(path)
    try:
        with Path(path).open("rb") as file:
            begin = file.read(_BEGIN)
        if not _may_be_recording(begin):
            return False
        for _, line in lines:
            if isinstance(line, Message):
                return read_line(line, 1) is not None
            content = line.strip(BLANK)
            if content:
                return content[:1] == b"{" and bool(kind_of(content))
    except (OSError, ReplayError):
        return False
    finally:
        lines.close()
    return False


def _may_be_recording(begin: bytes) -> bool:
    """Say so of what begins like this: a file of another kind may be one line of any length."""
    return (
        begin.startswith(GZIP)
        or begin.strip(BLANK)[:1] in (b"{", b"")
        or framing_of(begin) is not None
    )

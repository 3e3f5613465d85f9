"""What a backtest writes beside its table: JSON, one line for each tripped run, and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from otel_loopguard.backtest import RunRow
from otel_loopguard.cli.json_lines import json_line


class OutputError(Exception):
    """A file that cannot be written; the text names it and says why."""


def details_to(path: str, stack: ExitStack) -> Callable[[RunRow], None]:
    """Open a file until `stack` is left; return what writes a run to it, as one JSON object a line.

    A run that did not trip is not written.

    Raises:
        OutputError: the file cannot be written, now or later.

    """
    try:
        file = stack.enter_context(Path(path).open("wb"))  # noqa: SIM115 -- the stack closes it
    except OSError as error:
        raise _cannot_write(path, error) from None

    def write(row: RunRow) -> None:
        if row.rule is not None:
            _write(file, json_line(row), path)

    return write


def refuse_unwritable(path: str) -> None:
    """Find out before the work begins that a file cannot be written.

    Raises:
        OutputError: its folder does not exist, or it may not be written.

    """
    place = Path(path)
    why = None
    if place.is_dir():
        why = "it is a folder; give the name of a file"
    elif not place.parent.is_dir():
        why = f"there is no folder {str(place.parent)!r}"
    elif not os.access(place if place.exists() else place.parent, os.W_OK):
        why = "permission denied"
    if why is not None:
        message = f"{path}: it cannot be written: {why}"
        raise OutputError(message)


def refuse_shared(outputs: Sequence[tuple[str, str]], inputs: Sequence[tuple[str, str]]) -> None:
    """Refuse an output that is an input, or another output, by whatever name.

    Each is what it is, such as `--html` or `the recording`, and its path.

    Raises:
        OutputError: names both.

    """
    taken = {_identity(path): (what, path) for what, path in inputs}
    for option, path in outputs:
        if Path(path).exists() and not Path(path).is_file():
            continue  # a device or a pipe has no content to lose; a folder is refused elsewhere
        other = taken.setdefault(_identity(path), (option, path))
        if other != (option, path):
            what, name = other
            message = (
                f"{option} {path!r}: it would overwrite {what} {name!r}, which is the same file; "
                "give another name"
            )
            raise OutputError(message)


def _identity(path: str) -> object:
    """Return what two names of one file have in common: links have it too, of either kind."""
    try:
        found = Path(path).stat()
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def refuse_other_policy(path: str, option: str, heading: str) -> None:
    """Refuse to let an option write its policy file over one that it did not write.

    Raises:
        OutputError: there is such a file, and it does not begin with the option's heading.

    """
    try:
        text = Path(path).read_bytes()
    except OSError:
        return
    if text.strip() and not text.startswith(heading.encode()):
        message = (
            f"{path}: it is not overwritten, because it was not written by {option}; "
            "give another name, or delete it"
        )
        raise OutputError(message)


def write_text(path: str, text: str) -> None:
    """Write a file.

    Raises:
        OutputError: it cannot be written.

    """
    try:
        Path(path).write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise _cannot_write(path, error) from None


def _write(file: BinaryIO, data: bytes, path: str) -> None:
    try:
        file.write(data)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: it cannot be written: {error.strerror or error}")

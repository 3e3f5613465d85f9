"""Script files: the turns of a model, written down as TOML or as JSON lines.

    [[turns]]
    calls = [{ name = "search", arguments = { query = "opentelemetry" } }]

    [[turns]]
    text = "Found it."
    usage = { input_tokens = 1200, cached_tokens = 1024, output_tokens = 12 }

A file of JSON lines has the same fields, one turn a line. The n-th request gets the n-th turn, and
nothing is ever made up behind the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import cast

import msgspec

from otel_loopguard.mistakes import placed
from otel_loopguard.options.errors import PolicyError
from otel_loopguard.options.toml_lines import Keys, lines_of
from otel_loopguard.options.toml_text import decoded, read_toml
from otel_loopguard.testing.scripts.names import find_script, script_named
from otel_loopguard.testing.scripts.turns import (
    NoTurnError,
    OfferedTool,
    Script,
    Turn,
)
from otel_loopguard.testing.scripts.written_turns import TurnError, turn_said

MOST_COMPLAINTS = 10
"""Mistakes of one file that are told of."""
MOST_BYTES = 1 << 24


class ScriptFileError(ValueError):
    """A script file that cannot be played; the text names each mistake with its line."""


def script_of(turns: Sequence[Turn], name: str = "turns") -> Script:
    """Return a script that plays these turns one after the other, one for each request."""
    played = tuple(turns)

    def play(_tools: Sequence[OfferedTool], requests: int) -> Turn:
        if requests < len(played):
            return played[requests]
        raise NoTurnError(
            f"script {name!r} has {len(played)} turns, and request {requests + 1} wants another; "
            "expected the run to end before: stop it, or add a turn"
        )

    return Script(name=name, play=play, counts="requests")


def script_from(script: str | PathLike[str] | Script | Sequence[Turn]) -> Script:
    """Return the script of a name, the one in a file, or the one that is given.

    Raises `ValueError` for a name that is no script's and no script file's, and its
    `ScriptFileError` for a file that cannot be played.
    """
    if isinstance(script, Script):
        return script
    if isinstance(script, PathLike):
        return read_script(script)
    if not isinstance(script, str):
        return script_of(script)
    is_file = find_script(script) is None and PurePath(script).suffix in _READERS
    return read_script(script) if is_file else script_named(script)


def read_script(path: str | PathLike[str]) -> Script:
    """Read a script file: TOML (`.toml`), or JSON lines (`.jsonl`, `.ndjson`).

    Raises `ScriptFileError`, with the file and the line of each mistake.
    """
    name = fspath(path)
    read = _READERS.get(PurePath(name).suffix)
    if read is None:
        endings = ", ".join(repr(each) for each in _READERS)
        raise ScriptFileError(f"{name}: expected the name of a script file to end in {endings}")
    turns: list[Turn] = []
    complaints: list[str] = []
    for each in read(_text_of(name)):
        if isinstance(each, Turn):
            turns.append(each)
        else:
            line, why = each
            complaints.append(placed(why, name, line))
    if not turns and not complaints:
        complaints.append(f"{name}: no turns in it; expected at least one")
    if complaints:
        told = complaints[:MOST_COMPLAINTS]
        more = len(complaints) - len(told)
        raise ScriptFileError("\n".join([*told, *([f"{name}: and {more} more"] if more else [])]))
    return script_of(turns, name)


def _text_of(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # there are paths that the system is not even asked for
        why = getattr(error, "strerror", None) or error
        raise ScriptFileError(f"{name}: it cannot be read: {why}") from None
    if len(data) > MOST_BYTES:
        raise ScriptFileError(f"{name}: it has more than {MOST_BYTES:,} bytes")
    try:
        return decoded(data)
    except PolicyError as error:
        raise ScriptFileError(placed("expected UTF-8 text", name, error.line)) from None


def _of_toml(text: str) -> Iterator[Turn | tuple[int | None, str]]:
    try:
        said = read_toml(text)
    except PolicyError as error:
        yield error.line, str(error)
        return
    lines = lines_of(text)
    for key in said.keys() - {"turns"}:
        yield lines.get((key,)), f"{key!r} is nothing that a script file says; expected [[turns]]"
    turns: object = said.get("turns", [])
    if not isinstance(turns, list):
        yield lines.get(("turns",)), "turns: expected tables, each under [[turns]]"
        return
    for place, turn in enumerate(cast("list[object]", turns)):
        try:
            yield turn_said(turn)
        except TurnError as mistake:
            yield _line(lines, ("turns", place, *mistake.keys)), f"turn {place + 1}: {mistake}"


def _of_json_lines(text: str) -> Iterator[Turn | tuple[int | None, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield turn_said(msgspec.json.decode(line))
        except (TurnError, msgspec.DecodeError) as error:
            yield number, str(error)
        except RecursionError:
            yield number, "too many lists and objects stand in one another"


def _line(lines: Mapping[Keys, int], keys: Keys) -> int | None:
    """Return the line of the place, or of the nearest one around it that has one."""
    return next(
        (lines[keys[:length]] for length in range(len(keys), 0, -1) if keys[:length] in lines), None
    )


_READERS: Mapping[str, Callable[[str], Iterator[Turn | tuple[int | None, str]]]] = {
    ".toml": _of_toml,
    ".jsonl": _of_json_lines,
    ".ndjson": _of_json_lines,
}

"""`otel-loopguard sanitise`: a fixture from a recording, without what was said in it."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from otel_loopguard.cli.complaints import Complaints
from otel_loopguard.cli.policies import read_named, tell_warnings
from otel_loopguard.cli.tables import complaining, of, printable
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.replay.source import STDIN
from otel_loopguard.sanitising import Recording, asked_words

UNREADABLE = 2
DIFFERENT = 3

_KEY_BYTES = 32
_MAX_TOLD = 10


def sanitise(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="OTLP/JSON lines, OTLP protobuf or steps files, plain or gzip, taken as one; "
            "- is standard input.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="Where to write; gzip if it ends in .gz; - is standard output.",
            show_default=False,
        ),
    ],
    rename: Annotated[
        bool,
        typer.Option("--rename", help="Replace names of tools, agents and models as well."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="WORD", help="A further word that is kept wherever it stands."
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            "--seed",
            metavar="TEXT",
            help="Draw the same placeholders each time. Whoever knows it can try guesses: keep it "
            "secret.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="P.toml",
            help="The policy under which what was written is compared with the recording: a file, "
            "'default' or 'none'; without one, the default policy.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 if any line or message could not be read.")
    ] = False,
) -> None:
    """Write recorded runs with placeholders for what was said, so that they can be shared.

    What `replay` says of them stays the same; that is checked. Exits with 0; with 3 if it is not;
    with 2 if a file, or every line of it, cannot be read, or the output cannot be written.
    """
    _refuse_input_as_output(files, out)
    _refuse_what_is_no_word(keep or ())
    ruling = _policy(policy or "default")
    console = complaining()
    tell_warnings({policy or "default": ruling}, console)
    complaints = Complaints(console)
    recording = Recording()
    failed = False
    for name in files:
        for problem in recording.read(name):
            failed = failed or strict or problem.line is None
            complaints.add(problem)
        complaints.end_lines(recording.counts[-1])
    key = secrets.token_bytes(_KEY_BYTES) if seed is None else _key_of(seed)
    lines = recording.sanitised(key, rename=rename, words=keep or ())
    if not lines:
        typer.echo(f"otel-loopguard: nothing to write: {out!r} is left as it is", err=True)
        raise typer.Exit(UNREADABLE if failed else 0)
    _write(out, b"".join(lines))
    names = () if rename else sorted(recording.names())
    if names:
        console.print(printable(f"{out}: names that are kept: {', '.join(names)}"))
    different = recording.differences(lines, ruling)
    for difference in different[:_MAX_TOLD]:
        console.print(printable(f"{out}: {difference}"))
    if len(different) > _MAX_TOLD:
        console.print(f"{out}: {of(len(different) - _MAX_TOLD, 'more difference')}")
    if failed:
        raise typer.Exit(UNREADABLE)
    if different:
        raise typer.Exit(DIFFERENT)


def _key_of(seed: str) -> bytes:
    return hashlib.sha256(seed.encode(errors="surrogateescape")).digest()


def _refuse_input_as_output(files: list[str], out: str) -> None:
    for name in files:
        with suppress(OSError):  # that there is no such file is said when it is read
            if STDIN not in {name, out} and Path(name).samefile(out):
                _fail(f"{out!r} is what is read: expected another file, so that nothing is lost")


def _refuse_what_is_no_word(words: Sequence[str]) -> None:
    for word in words:
        if not asked_words(word):
            _fail(f"--keep {word!r} is no word: expected one with letters, such as 'buyer_no'")


def _fail(message: str) -> NoReturn:
    typer.echo(f"otel-loopguard: {message}", err=True)
    raise typer.Exit(UNREADABLE)


def _write(out: str, data: bytes) -> None:
    if out == STDIN:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    # Without the time of writing: the same runs under the same seed are the same bytes.
    packed = gzip.compress(data, mtime=0) if out.endswith(".gz") else data
    try:
        if Path(out).exists() and not Path(out).is_file():  # a pipe, a device
            Path(out).write_bytes(packed)
        else:
            _replace(Path(os.path.realpath(out)), packed)
    except OSError as error:
        _fail(f"{out!r} cannot be written: {error.strerror}")


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole, or leave it as it is."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _policy(path: str) -> Policy:
    try:
        return read_named(path)
    except PolicyError as error:
        _fail(str(error))

"""Runs a command of tests as it is, then once for each change of the guard: was it noticed?"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from otel_loopguard.testing.mutations import VARIABLE, Change, Heard, Kind, Order

_OF_THE_WHOLE: Final[tuple[Kind, ...]] = ("never_stops", "only_observes")
_OF_A_RULE: Final[tuple[Kind, ...]] = ("later", "earlier", "flipped")

_REST_S: Final = 2.0
"""Seconds that a killed command's output is waited for."""

Verdict: TypeAlias = Literal["red", "still green", "no end"]


class MutationCheckError(Exception):
    """The command says nothing about changes: it is not green as it is, or no test ran."""


class Mutated(msgspec.Struct, frozen=True, kw_only=True):
    """What a command said of the guard with a change. Its fields are those of the JSON output."""

    change: str
    verdict: Verdict
    failed: tuple[str, ...] = ()
    """The tests that noticed."""

    @property
    def noticed(self) -> bool:
        """Whether the change turned the command red, or kept it from ending."""
        return self.verdict != "still green"


class _Ran(msgspec.Struct, frozen=True, kw_only=True):
    code: int | None
    """`None` where it did not end in time."""
    heard: Heard | None
    """`None` where no session with the plugin ended."""
    output: str


def mutated_runs(command: Sequence[str], *, timeout_s: float) -> Iterator[Mutated]:
    """Yield what the command says of each change, once it has been run as it is.

    Each limit that a guard of the tests has, and each rule that stopped one, is changed in turn. No
    run lasts longer than `timeout_s` seconds.

    Raises:
        MutationCheckError: it says nothing about changes as it is; names what to do.

    """
    reached = _as_it_is(command, timeout_s)
    for change in _changes(reached):
        ran = _run(command, change, timeout_s)
        verdict: Verdict = "no end" if ran.code is None else "red" if ran.code else "still green"
        failed = () if ran.heard is None else tuple(ran.heard.failed)
        yield Mutated(change=str(change), verdict=verdict, failed=failed)


def _as_it_is(command: Sequence[str], timeout_s: float) -> Heard:
    ran = _run(command, None, timeout_s)
    if ran.code is None:
        raise MutationCheckError(
            f"expected the command to end within {timeout_s:g} seconds as it is; allow more with "
            "--timeout"
        )
    if ran.code:
        raise MutationCheckError(
            f"expected the command to be green as it is, got exit code {ran.code}; it said:\n"
            f"{ran.output.strip()}"
        )
    if ran.heard is None:
        raise MutationCheckError(
            "expected a pytest command that loads the plugin of otel-loopguard, got none; install "
            "otel-loopguard beside pytest, and do not switch its plugin off"
        )
    if not ran.heard.ran:
        raise MutationCheckError("expected the command to run tests, got none that ran")
    return ran.heard


def _changes(reached: Heard) -> Iterator[Change]:
    for kind in _OF_THE_WHOLE:
        yield Change(kind=kind)
    for rule in dict.fromkeys((*sorted(reached.limits), *sorted(reached.tripped))):
        for kind in _OF_A_RULE:
            yield Change(kind=kind, rule=rule)


def _run(command: Sequence[str], change: Change | None, timeout_s: float) -> _Ran:
    with tempfile.TemporaryDirectory(prefix="loopguard-") as folder:
        report = Path(folder, "report.jsonl")
        order = msgspec.json.encode(Order(report=str(report), change=change)).decode()
        try:
            process = subprocess.Popen(  # noqa: S603 -- it is what the caller asks to be run
                command,
                env={**os.environ, VARIABLE: order},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise MutationCheckError(
                f"{command[0]!r} cannot be started: {error.strerror}; name a command after --"
            ) from error
        with process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                _kill(process)
                return _Ran(code=None, heard=_read(report), output=_rest_of(process))
            except BaseException:
                _kill(process)
                raise
        return _Ran(code=process.returncode, heard=_read(report), output=output)


def _rest_of(process: subprocess.Popen[str]) -> str:
    """Return what a killed command has said; what it has put into another session may go on."""
    try:
        output, _ = process.communicate(timeout=_REST_S)
    except subprocess.TimeoutExpired as error:
        if process.stdout is not None:
            process.stdout.close()
        said: object = error.output
        return said.decode(errors="replace") if isinstance(said, bytes) else ""
    return output


def _kill(process: subprocess.Popen[str]) -> None:
    """End a command and all that it has started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _read(report: Path) -> Heard | None:
    """Return what all processes of a run have said together; `None` if none has said anything."""
    if not report.exists():
        return None
    together = Heard()
    for heard in msgspec.json.Decoder(Heard).decode_lines(report.read_bytes()):
        together.ran += heard.ran
        together.failed += heard.failed
        together.limits += [rule for rule in heard.limits if rule not in together.limits]
        together.tripped += [rule for rule in heard.tripped if rule not in together.tripped]
    return together

"""Entry of the command `otel-loopguard`: the program itself needs the extra `cli`."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

_EXTRA = frozenset({"rich", "typer"})


def main() -> None:
    """Run the command line; exits with its code."""
    try:
        from otel_loopguard.cli.program import program  # noqa: PLC0415 -- the extra may be missing
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        _give_up(
            f"the command line needs {error.name!r}, which is not installed; "
            "install it with: pip install 'otel-loopguard[cli]'"
        )
    if sys.__stdout__ is None:
        _give_up("the output cannot be written: standard output is closed")
    try:
        program()
    except OSError as error:
        # Files that cannot be read are told apart before it comes to this.
        _drop_output()
        _give_up(f"the output cannot be written: {error.strerror or error}")


def _give_up(why: str) -> NoReturn:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"otel-loopguard: {why}\n")
    sys.exit(2)


def _drop_output() -> None:
    """Let what is buffered go nowhere, or the interpreter fails on it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    main()

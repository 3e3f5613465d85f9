"""Entry of the command `otel-loopguard`: the program itself needs the extra `cli`."""

from __future__ import annotations

import sys

_EXTRA = frozenset({"rich", "typer"})


def main() -> None:
    """Run the command line; exits with its code."""
    try:
        from otel_loopguard.cli.program import program  # noqa: PLC0415 -- the extra may be missing
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.stderr.write(
            f"otel-loopguard: the command line needs {error.name!r}, which is not installed; "
            "install it with: pip install 'otel-loopguard[cli]'\n"
        )
        sys.exit(2)
    program()


if __name__ == "__main__":
    main()

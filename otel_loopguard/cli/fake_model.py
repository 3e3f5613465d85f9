"""`otel-loopguard fake-model`: a scripted model on loopback, for any client in any language."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Annotated, NoReturn

import typer

from otel_loopguard.cli.fake_model_log import Log, Started
from otel_loopguard.cli.tables import complaining, printable
from otel_loopguard.testing.scripts import DESCRIPTIONS, script_from

WRONG = 2
_EXTRA = frozenset({"uvicorn"})
_LOOK_S = 1.0
"""How often it looks whether it is over: on Windows, a wait without end is not interrupted."""


def fake_model(
    *,
    script: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE", help="What is played: see --list; or a file, .toml or .jsonl."
        ),
    ] = "endless",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="A port of 127.0.0.1; 0 is any free one.")
    ] = 0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict/--no-strict",
            help="Refuse a history in which a tool call has no result, as providers do.",
        ),
    ] = True,
    cap: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Answer so many requests of each script, and refuse the others.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line, and nothing else.")
    ] = False,
    list_scripts: Annotated[
        bool, typer.Option("--list", help="Print what can be played, and exit.")
    ] = False,
) -> None:
    """Serve a scripted model on 127.0.0.1, for a client in any language.

    Prints what to set in clients, then a line for each request, and at SIGINT or SIGTERM what
    there was. Exits with 0; with 2 if the script cannot be played or the port cannot be had.
    """
    log = Log(as_json=as_json)
    if list_scripts:
        log.print_scripts(DESCRIPTIONS)
        return
    try:
        from otel_loopguard.testing.model_server import (  # noqa: PLC0415 -- the extra may be missing
            model_server,
        )
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        _give_up(
            f"fake-model needs {error.name!r}, which is not installed; "
            "install it with: pip install 'otel-loopguard[testing]'"
        )
    with ExitStack() as stack:
        try:
            played = script_from(script)
            stack.enter_context(_until_told(log))
            server = stack.enter_context(
                model_server(
                    played,
                    strict=strict,
                    cap=cap,
                    port=port,
                    on_request=log.add,
                    on_wrong_path=log.add_lost,
                )
            )
        except ValueError as error:
            _give_up(str(error))
        except OSError as error:
            _give_up(f"port {port} of 127.0.0.1 cannot be had: {error.strerror or error}")
        log.start(Started(script=played.name, root=server.root, strict=strict, cap=cap))
        while not log.is_over_within(_LOOK_S):
            pass
    log.stop(server.tool_results)


@contextmanager
def _until_told(log: Log) -> Generator[None]:
    """Let the log be over at SIGINT and SIGTERM, and leave these as they were."""

    def end(_number: int, _frame: object) -> None:
        log.end()

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _give_up(why: str) -> NoReturn:
    complaining().print(_printable(why))
    raise typer.Exit(WRONG)


def _printable(text: str) -> str:
    """Return text of several lines that this terminal can show."""
    return "\n".join(printable(line) for line in text.split("\n"))

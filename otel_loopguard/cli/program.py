"""The program: options of all commands, and the table of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from otel_loopguard.cli.backtest import backtest
from otel_loopguard.cli.check_config import check_config
from otel_loopguard.cli.doctor import doctor
from otel_loopguard.cli.fake_model import fake_model
from otel_loopguard.cli.mutation_check import mutation_check
from otel_loopguard.cli.replay import replay
from otel_loopguard.cli.sanitise import sanitise
from otel_loopguard.version import VERSION


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- typer passes the option's value
    if wanted:
        typer.echo(f"otel-loopguard {VERSION}")
        raise typer.Exit


program = typer.Typer(
    name="otel-loopguard",
    help="Stops runaway AI agents. See what the rules would have done to recorded runs.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
program.command()(replay)
program.command()(backtest)
program.command()(doctor)
program.command()(check_config)
program.command()(fake_model)
program.command()(sanitise)
program.command()(mutation_check)


@program.callback()
def options(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Read the options before the command."""

"""`otel-loopguard check-config`: what is wrong with a policy file and the variables, and where."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from typing import Annotated

import msgspec
import typer

from otel_loopguard.cli.config_summary import Summary, summary_of
from otel_loopguard.cli.json_lines import print_json
from otel_loopguard.cli.tables import complaining, printable
from otel_loopguard.environment import OF_A_BAD_FILE, config_path, lay_over, read_text
from otel_loopguard.mistakes import Examined, Remark, examine, placed, unread
from otel_loopguard.options.variables import given
from otel_loopguard.policy import Policy, PolicyError

WRONG = 2


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    file: str | None
    variables: tuple[str, ...]
    """Those that are set."""
    errors: tuple[Remark, ...]
    warnings: tuple[Remark, ...]
    in_force: Summary | None
    """`None` where there is an error."""


def check_config(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A policy file; without one, that of OTEL_LOOPGUARD_CONFIG.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of policy files, and exit.")
    ] = False,
) -> None:
    """Check a policy file, and the variables OTEL_LOOPGUARD_* that are laid over it.

    Names each mistake with its line and what was expected, else says what is in force. Exits with
    0; with 2 if there is a mistake, or the file cannot be read.
    """
    if schema:
        text = files("otel_loopguard").joinpath("loopguard.schema.json").read_bytes()
        sys.stdout.buffer.write(text)
        return
    checked, lines = _check(file or config_path())
    console = complaining()
    if as_json:
        print_json(checked)
    else:
        for line in lines:
            console.print(printable(line))
        if checked.in_force is not None:
            sys.stdout.write(checked.in_force.text(checked.file, checked.variables))
    if checked.errors:
        raise typer.Exit(WRONG)


def _check(path: str | None) -> tuple[Checked, list[str]]:
    """Return what was found, and the lines that say so to people."""
    examined = Examined(policy=Policy()) if path is None else _of_file(path)
    configuration, wrong = lay_over(examined.policy or OF_A_BAD_FILE, os.environ)
    of_variables = [Remark(message=str(error), path=error.path) for error in wrong]
    errors = (*examined.mistakes, *of_variables)
    in_file = {remark.message: remark for remark in examined.doubts}
    doubts = () if errors else configuration.policy.warnings
    checked = Checked(
        file=path,
        variables=tuple(sorted(given(os.environ))),
        errors=errors,
        warnings=tuple(in_file.get(text, Remark(message=text)) for text in doubts),
        in_force=None if errors else summary_of(configuration),
    )
    lines = [
        *(placed(remark.message, path, remark.line) for remark in examined.mistakes),
        *(remark.message for remark in of_variables),
        *(_placed(f"warning: {text}", path, in_file.get(text)) for text in doubts),
    ]
    return checked, lines


def _of_file(path: str) -> Examined:
    try:
        text = read_text(path)
    except PolicyError as error:
        return unread(path, error)
    return examine(text)


def _placed(said: str, path: str | None, remark: Remark | None) -> str:
    """Return what is said, with its place if it is a remark on the file."""
    return said if remark is None else placed(said, path, remark.line)

"""`otel-loopguard mutation-check`: do the tests notice when the guard is changed?"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from otel_loopguard.cli.json_lines import print_json
from otel_loopguard.cli.tables import new_table, of, print_table, printable
from otel_loopguard.testing.mutation_runs import Mutated, MutationCheckError, mutated_runs

UNNOTICED = 1
NO_ANSWER = 2

_TOLD = 3
"""Tests that are named for a change; the others are counted."""
_STYLES = {"red": "green", "no end": "green", "still green": "bold red"}


def mutation_check(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="A pytest command, such as: pytest -q tests/test_guard.py",
            show_default=False,
        ),
    ],
    *,
    timeout_s: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=1, help="How long each run of it may last."
        ),
    ] = 300,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a change, and nothing else.")
    ] = False,
) -> None:
    """See that tests of a guard can fail: run them as they are, then with a changed guard.

    Each limit that they reach and each rule that stops a run in them is made to strike later,
    earlier, and while all is well; then the guard warns only, and sees without acting. Exits with 0
    if each change turns them red; with 1 if one does not; with 2 if they are not green as they are,
    or none ran.
    """
    found: list[Mutated] = []
    try:
        for mutated in mutated_runs(command, timeout_s=timeout_s):
            found.append(mutated)
            if as_json:
                print_json(mutated)
    except MutationCheckError as error:
        typer.echo(f"otel-loopguard: {error}", err=True)
        raise typer.Exit(NO_ANSWER) from error
    if not as_json:
        _print(found)
    if not all(mutated.noticed for mutated in found):
        raise typer.Exit(UNNOTICED)


def _print(found: list[Mutated]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    table = new_table()
    for name in ("change", "tests", "which noticed"):
        table.add_column(name, overflow="fold")
    for mutated in found:
        verdict = Text(mutated.verdict, style=_STYLES[mutated.verdict])
        table.add_row(mutated.change, verdict, _tests(mutated))
    print_table(console, table)
    unnoticed = sum(not mutated.noticed for mutated in found)
    console.print()
    summary = f"{unnoticed} not noticed." if unnoticed else "all noticed."
    console.print(f"{of(len(found), 'change')}, {summary}")


def _tests(mutated: Mutated) -> str:
    more = len(mutated.failed) - _TOLD
    named = [printable(test) for test in mutated.failed[:_TOLD]]
    return ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])

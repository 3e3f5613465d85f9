"""`otel-loopguard replay`: what a policy makes of recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Annotated

import typer

from otel_loopguard.cli.complaints import Complaints
from otel_loopguard.cli.json_lines import print_json
from otel_loopguard.cli.policies import read_named, tell_warnings
from otel_loopguard.cli.progress import show_progress
from otel_loopguard.cli.replay_table import print_runs
from otel_loopguard.cli.tables import complaining
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.replay import LineCounts, Problem, ReplayedRun, replay_file

UNREADABLE = 2
TRIPPED = 3


def replay(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="OTLP/JSON lines, OTLP protobuf or steps files, plain or gzip; "
            "- is standard input.",
            show_default=False,
        ),
    ],
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="P.toml",
            help="A policy file, 'default' or 'none'; without one, the default policy.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a run, and nothing else.")
    ] = False,
    fail_on_trip: Annotated[
        bool, typer.Option("--fail-on-trip", help="Exit with 3 if a run tripped.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 if any line or message could not be read.")
    ] = False,
) -> None:
    """Replay recorded runs and say what the rules would have done.

    Exits with 0; with 3 if a run tripped and --fail-on-trip is given; with 2 if a file, or every
    line of it, cannot be read.
    """
    ruling = _policy(policy or "default")
    console = complaining()
    tell_warnings({policy or "default": ruling}, console)
    complaints = Complaints(console)
    runs: list[ReplayedRun] = []
    tripped = failed = False
    with ExitStack() as stack:
        on_bytes = show_progress(stack, console, files, as_json=as_json)
        for item in _replayed(files, ruling, on_bytes, complaints.end_lines):
            if isinstance(item, Problem):
                failed = failed or strict or item.line is None
                complaints.add(item)
                continue
            tripped = tripped or item.tripped
            if as_json:
                print_json(item)
            else:
                runs.append(item)
    if not as_json:
        print_runs(runs, complaints.files, show_source=len(files) > 1)
    if failed:
        raise typer.Exit(UNREADABLE)
    if fail_on_trip and tripped:
        raise typer.Exit(TRIPPED)


def _replayed(
    files: list[str],
    policy: Policy,
    on_bytes: Callable[[int], object] | None,
    on_lines: Callable[[LineCounts], object],
) -> Iterator[ReplayedRun | Problem]:
    for name in files:
        yield from replay_file(name, policy, on_bytes=on_bytes, on_lines=on_lines)


def _policy(path: str) -> Policy:
    try:
        return read_named(path)
    except PolicyError as error:
        typer.echo(f"otel-loopguard: {error}", err=True)
        raise typer.Exit(UNREADABLE) from error

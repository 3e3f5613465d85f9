"""`otel-loopguard backtest`: what policies make of many recorded runs, and how rightly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from typing import Annotated, NoReturn, TypeVar

import typer
from rich.console import Console

from otel_loopguard.backtest import BacktestReport, Grouping, LabelError
from otel_loopguard.backtest.fit_report import FitOn
from otel_loopguard.cli.backtest_outputs import OutputError
from otel_loopguard.cli.backtest_table import percent, print_report
from otel_loopguard.cli.backtest_work import Wanted, carry_out
from otel_loopguard.cli.json_lines import print_json
from otel_loopguard.cli.tables import complaining
from otel_loopguard.policy import PolicyError

UNREADABLE = 2
TOO_MANY = 3


_BY: Sequence[Grouping] = ("source", "file", "agent", "model")
_FIT_ON: Sequence[FitOn] = ("labels", "failed")
_Word = TypeVar("_Word", bound=str)


def _one_of(words: Sequence[_Word]) -> Callable[[str], _Word]:
    """Return what takes an option's value if it is one of these words."""

    def checked(value: str) -> _Word:
        found = next((word for word in words if word == value), None)
        if found is None:
            message = f"expected one of {', '.join(words)}, got {value!r}"
            raise typer.BadParameter(message)
        return found

    return checked


def backtest(  # noqa: PLR0913 -- the options of the command
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="OTLP/JSON lines, OTLP protobuf or steps files, plain or gzip; "
            "folders are searched; - is standard input.",
            show_default=False,
        ),
    ],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P.toml",
            help="A policy file, 'default' or 'none'; give it several times to compare policies. "
            "Without one, the default policy.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="L.json",
            help='What is known of runs: {"run id": "loop" | "weak" | "no"}. '
            "Gives precision and the share of loops caught.",
        ),
    ] = None,
    by: Annotated[
        Grouping,
        typer.Option(
            parser=_one_of(_BY),
            metavar="|".join(_BY),
            help="What makes runs a set, with figures of its own: the field 'source' of a steps "
            "file (the file where there is none), the file, the agent or the model.",
        ),
    ] = "source",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
    ] = False,
    details: Annotated[
        str | None,
        typer.Option(metavar="D.jsonl", help="Write each tripped run to this file, one a line."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="R.html", help="Write a page with plots; it needs no other file."),
    ] = None,
    suggest: Annotated[
        str | None,
        typer.Option(
            metavar="S.toml",
            help="Write a policy file with budgets: 1.5 x p95 of what successful runs use, by "
            "agent.",
        ),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="F.toml",
            help="Write a policy file with weights of the rule stagnation that are fitted to runs "
            "labelled as loops and to successful ones, and show what they change.",
        ),
    ] = None,
    fit_on: Annotated[
        FitOn,
        typer.Option(
            parser=_one_of(_FIT_ON),
            metavar="|".join(_FIT_ON),
            help="What --fit takes for loops: runs labelled so, or failed runs without a label as "
            "well, which is a rough guess.",
        ),
    ] = "labels",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; without it, one for each core."),
    ] = None,
    fail_on_false_trips: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Exit with 3 if a policy trips more than this share of the successful runs, "
            "such as 0.003.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 2 if any line or message, or a file of a folder, could not be read.",
        ),
    ] = False,
) -> None:
    """Judge policies by many recorded runs.

    Says what each policy would have stopped, by which rule and at which step, what that would have
    saved, and how often it would have been wrong. Exits with 0; with 3 if there are too many false
    trips for --fail-on-false-trips; with 2 if nothing, or not all that was named, can be read.
    """
    console = complaining()
    wanted = Wanted(
        files=files,
        policies=policy or (),
        labels=labels,
        by=by,
        as_json=as_json,
        html=html,
        details=details,
        suggest=suggest,
        fit=fit,
        fit_on=fit_on,
        jobs=jobs,
        strict=strict,
    )
    try:
        report, complete = carry_out(wanted, console)
    except BrokenExecutor:
        _give_up("a process that played recordings died, perhaps for want of memory; try --jobs 1")
    except (PolicyError, LabelError, OutputError) as error:
        _give_up(str(error))
    if as_json:
        print_json(report)
    else:
        print_report(report)
    if not complete:
        raise typer.Exit(UNREADABLE)
    if fail_on_false_trips is not None:
        _judge(report, fail_on_false_trips, console)


def _judge(report: BacktestReport, most: float, console: Console) -> None:
    """Exit with 3 if a policy has more false trips than it may, with 2 if nobody can tell."""
    if not report.policies[0].total.succeeded:
        console.print(
            "otel-loopguard: --fail-on-false-trips: no run is known to have succeeded; give runs "
            "of steps files a field 'success', or name them in a file of --labels"
        )
        raise typer.Exit(UNREADABLE)
    too_many = [
        found.policy for found in report.policies if (found.total.false_trips.share or 0.0) > most
    ]
    for name in too_many:
        console.print(f"{name}: more than {percent(most)} of the successful runs tripped")
    if too_many:
        raise typer.Exit(TOO_MANY)


def _give_up(why: str) -> NoReturn:
    typer.echo(f"otel-loopguard: {why}", err=True)
    raise typer.Exit(UNREADABLE)

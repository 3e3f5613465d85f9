"""`otel-loopguard doctor`: what the guard can and cannot see, and the settings that change it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from otel_loopguard.cli.complaints import Complaints
from otel_loopguard.cli.doctor_table import print_report
from otel_loopguard.cli.json_lines import print_json
from otel_loopguard.cli.progress import show_progress
from otel_loopguard.cli.tables import complaining
from otel_loopguard.doctor import Examination, examine_file, report_on

UNREADABLE = 2
BLIND = 3


def doctor(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="OTLP/JSON lines or OTLP protobuf, plain or gzip; - is standard input.",
            show_default=False,
        ),
    ],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
    ] = False,
    fail_on_blind: Annotated[
        bool, typer.Option("--fail-on-blind", help="Exit with 3 if rules cannot act somewhere.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 if any line or message could not be read.")
    ] = False,
) -> None:
    """Look at recorded spans and say what the guard can and cannot see of them.

    Each finding names the setting that changes it. Exits with 0; with 3 if rules cannot act and
    --fail-on-blind is given; with 2 if a file, or every line of it, cannot be read.
    """
    console = complaining()
    complaints = Complaints(console)
    examination, failed = Examination(), False
    with ExitStack() as stack:
        on_bytes = show_progress(stack, console, files, as_json=as_json)
        for name in files:
            found = examine_file(
                name, examination, on_bytes=on_bytes, on_lines=complaints.end_lines
            )
            for problem in found:
                failed = failed or strict or problem.line is None
                complaints.add(problem)
    report = report_on(examination.seen())
    if as_json:
        print_json(report)
    else:
        print_report(report)
    if failed:
        raise typer.Exit(UNREADABLE)
    if fail_on_blind and report.is_blind:
        raise typer.Exit(BLIND)

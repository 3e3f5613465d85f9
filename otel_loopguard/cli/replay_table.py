"""Replayed runs as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from otel_loopguard.cli.tables import dollars, new_table, of, print_table, printable
from otel_loopguard.replay import LineCounts, ReplayedRun, ReplayedViolation

_STYLES = {"abort": "bold red", "warn": "yellow"}


def print_runs(
    runs: Sequence[ReplayedRun], files: Sequence[LineCounts], *, show_source: bool
) -> None:
    """Print one row a run, then what stopping the tripped ones would have saved.

    Where there is no run, say how much of which files could not be read.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not runs:
        console.print(_no_runs(files), soft_wrap=True)
        return
    table = new_table()
    for name in ("run", *(("file",) if show_source else ()), "ended"):
        table.add_column(name, overflow="fold")
    for name in ("steps", "model", "tools", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for run in runs:
        table.add_row(*_cells(run, show_source=show_source), style="bold" if run.tripped else "")
    print_table(console, table)
    console.print()
    console.print(_summary(runs), soft_wrap=True)


def _no_runs(files: Sequence[LineCounts]) -> str:
    bad = [
        f"{file.bad:,} of {of(file.lines, file.unit)} of {printable(file.source)}"
        for file in files
        if file.bad
    ]
    return f"No runs found: {', '.join(bad)} could not be read." if bad else "No runs found."


def _cells(run: ReplayedRun, *, show_source: bool) -> list[Text | str]:
    tokens = run.input_tokens + run.output_tokens
    return [
        printable(run.run_id),
        *((printable(run.source),) if show_source else ()),
        run.status,
        f"{run.steps:,}",
        f"{run.model_calls:,}",
        f"{run.tool_calls:,}",
        f"{tokens:,}",
        _verdict(run),
    ]


def _verdict(run: ReplayedRun) -> Text:
    """Say what happened first at the worst level."""
    if not run.violations:
        return Text("ok", style="green")
    trip = next((found for found in run.violations if found.action == "abort"), None)
    if trip is None:
        return _found("warning", run.violations[0])
    return _found("STOP", trip)


def _found(word: str, found: ReplayedViolation) -> Text:
    evidence = f"count {found.count:g}, threshold {found.threshold:g}"
    text = f"{word} at step {found.step}: {found.rule}, {evidence}"
    return Text(text, style=_STYLES[found.action])


def _summary(runs: Sequence[ReplayedRun]) -> Text:
    tripped = [run for run in runs if run.tripped]
    all_runs = of(len(runs), "run")
    if not tripped:
        return Text(f"{all_runs}, none would have been stopped.")
    steps = sum(run.saved.steps for run in tripped)
    tokens = sum(run.saved.tokens for run in tripped)
    cost = sum(run.saved.cost_usd for run in tripped)
    all_steps = sum(run.steps for run in runs)
    all_tokens = sum(run.input_tokens + run.output_tokens for run in runs)
    return Text(
        f"{all_runs}, {len(tripped):,} would have been stopped. Saved: "
        f"{steps:,} of {all_steps:,} steps, {tokens:,} of {all_tokens:,} tokens"
        + (f", {dollars(cost)}." if cost else "."),
        style="bold",
    )

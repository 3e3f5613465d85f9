"""Replayed runs as a table for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from otel_loopguard.replay import LineCounts, ReplayedRun, ReplayedViolation

_UNBOUNDED = 10_000
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("run", *(("file",) if show_source else ()), "ended"):
        table.add_column(name, overflow="fold")
    for name in ("steps", "model", "tools", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for run in runs:
        table.add_row(*_cells(run, show_source=show_source), style="bold" if run.tripped else "")
    if console.is_terminal:
        console.print(table)
    else:
        _print_whole(console, table)
    console.print()
    console.print(_summary(runs), soft_wrap=True)


def _no_runs(files: Sequence[LineCounts]) -> str:
    bad = [
        f"{file.bad:,} of {file.lines:,} line{'' if file.lines == 1 else 's'} of "
        f"{_printable(file.source)}"
        for file in files
        if file.bad
    ]
    return f"No runs found: {', '.join(bad)} could not be read." if bad else "No runs found."


def _print_whole(console: Console, table: Table) -> None:
    """Print a table where there is no edge to keep to: rows stay whole, without a padded end."""
    console.width = Measurement.get(
        console, console.options.update(width=_UNBOUNDED), table
    ).maximum
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(line.rstrip(), soft_wrap=True)


def _cells(run: ReplayedRun, *, show_source: bool) -> list[Text | str]:
    tokens = run.input_tokens + run.output_tokens
    return [
        _printable(run.run_id),
        *((_printable(run.source),) if show_source else ()),
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
    all_runs = f"{len(runs):,} run" + ("" if len(runs) == 1 else "s")
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
        + (f", ${cost:,.{2 if cost >= 1 else 4}f}." if cost else "."),
        style="bold",
    )


def _printable(text: str) -> str:
    """Return text that this terminal can show."""
    encoding = sys.stdout.encoding or "utf-8"
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown.encode(encoding, "replace").decode(encoding, "replace")

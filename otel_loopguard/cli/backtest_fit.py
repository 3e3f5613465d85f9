"""What fitted weights of `stagnation` change, as rows for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from otel_loopguard.backtest import FitReport
from otel_loopguard.backtest.fit_report import cautions, shown_points
from otel_loopguard.cli.tables import new_table, print_table, printable


def fit_title(fit: FitReport) -> str:
    """Return what the weights were fitted to."""
    return (
        f"Weights of stagnation, fitted to {fit.loops:,} loops and {fit.healthy:,} healthy runs "
        f"({fit.left_out:,} others left out)"
    )


def fit_heads(fit: FitReport) -> Sequence[str]:
    """Return the heads of `fit_rows`."""
    return (
        "score",
        f"false aborts of {fit.healthy:,} before",
        "after",
        f"caught of {fit.loops:,} before",
        "after",
    )


def fit_rows(fit: FitReport) -> list[list[str]]:
    """Return what aborting at some scores would have done; `*` marks that of the policy."""
    return [
        [
            f"{before.threshold:g}{'*' if before.threshold == fit.abort else ''}",
            *(
                f"{rate.count:,}"
                for rate in (
                    before.false_aborts,
                    after.false_aborts,
                    before.caught,
                    after.caught,
                )
            ),
        ]
        for before, after in shown_points(fit)
    ]


def class_rows(fit: FitReport) -> list[list[str]]:
    """Return the weight of each class before and after, and how many steps of it there are."""
    return [
        [
            name,
            f"{found.before:g}",
            f"{found.after:g}",
            f"{found.in_loops:,}",
            f"{found.in_healthy:,}",
        ]
        for name, found in fit.classes.items()
    ]


def print_fit(console: Console, fit: FitReport) -> None:
    """Print what aborting at some scores would have done, and why to be careful."""
    table = new_table()
    for name in fit_heads(fit):
        table.add_column(name, justify="right")
    for row in fit_rows(fit):
        table.add_row(*row)
    console.print()
    console.print(printable(f"{fit.policy}: {fit_title(fit)}"), soft_wrap=True)
    print_table(console, table)
    for caution in cautions(fit):
        console.print(Text(caution, style="yellow"), soft_wrap=True)

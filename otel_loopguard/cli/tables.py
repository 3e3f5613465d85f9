"""Tables for people: whole rows where there is no edge to keep to, and text that can be shown."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_UNBOUNDED = 10_000


def new_table() -> Table:
    """Return an empty table in the style of all of them."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def print_table(console: Console, table: Table) -> None:
    """Print a table; where there is no edge to keep to, rows stay whole, without a padded end."""
    if console.is_terminal:
        console.print(table)
        return
    console.width = Measurement.get(
        console, console.options.update(width=_UNBOUNDED), table
    ).maximum
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(line.rstrip(), soft_wrap=True)


def of(count: int, what: str) -> str:
    """Return a count and what is counted, as `1 run` and `2 runs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def dollars(amount: float) -> str:
    """Return US dollars, small amounts with more digits."""
    return f"${amount:,.{2 if amount >= 1 else 4}f}"


def complaining() -> Console:
    """Return where complaints go: whole lines, as they are."""
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def printable(text: str) -> str:
    """Return text that this terminal can show."""
    encoding = sys.stdout.encoding or "utf-8"
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown.encode(encoding, "replace").decode(encoding, "replace")

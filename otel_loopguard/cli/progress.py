"""A progress bar on standard error, where a person waits for long input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from otel_loopguard.replay.source import STDIN, size_of

LONG_INPUT = 8_000_000
"""Bytes from which a progress bar is worth its lines; standard input is taken as long."""


def show_progress(
    stack: ExitStack,
    console: Console,
    files: Sequence[str],
    *,
    as_json: bool,
    long_input: int = LONG_INPUT,
) -> Callable[[int], object] | None:
    """Show a progress bar until `stack` is left; return what is to be told of the bytes read."""
    if not console.is_terminal or (as_json and sys.stdout.isatty()):
        return None
    sizes = [size_of(name) for name in files]
    total = None if STDIN in files else sum(size or 0 for size in sizes)
    if total is not None and total < long_input:
        return None
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = stack.enter_context(Progress(*columns, console=console, transient=True))
    task = progress.add_task("reading", total=total)
    return lambda count: progress.advance(task, count)

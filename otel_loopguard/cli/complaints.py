"""What could not be read, for people: a file's first bad lines in full, the others counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from otel_loopguard.cli.tables import of
from otel_loopguard.replay import LineCounts, Problem

MAX_LINES = 10
"""Bad lines of a file that are reported; a file of another kind would fill the screen."""


class Complaints:
    """Reports what could not be read, file by file."""

    def __init__(self, console: Console) -> None:
        """Write to this console."""
        self._console = console
        self._told = Counter[bool]()
        self._files: list[LineCounts] = []

    @property
    def files(self) -> Sequence[LineCounts]:
        """The files that were read so far."""
        return self._files

    def add(self, problem: Problem) -> None:
        """Report a problem, unless enough lines of its file have been reported."""
        self._told[problem.is_read] += problem.line is not None
        if problem.line is None or self._told[problem.is_read] <= MAX_LINES:
            self._console.print(str(problem))

    def end_lines(self, counts: LineCounts) -> None:
        """Say how many bad lines of the file were not reported; all of its lines have been read."""
        self._count_more(counts.source, counts.bad, counts.unit, "could not be read")
        what = "with a label or a success that says nothing"
        self._count_more(counts.source, counts.unclear, "line", what)
        self._files.append(counts)
        self._told.clear()

    def add_unclear(self, source: str, unclear: Sequence[str]) -> None:
        """Report fields of a file of labels that say nothing."""
        for why in unclear[:MAX_LINES]:
            self._console.print(why)
        self._count_more(source, len(unclear), "field", "not known")

    def _count_more(self, source: str, count: int, unit: str, what: str) -> None:
        if count > MAX_LINES:
            self._console.print(f"{source}: {of(count - MAX_LINES, f'more {unit}')} {what}")

"""What could not be read, for people: a file's first bad lines in full, the others counted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from otel_loopguard.replay import LineCounts, Problem

MAX_LINES = 10
"""Bad lines of a file that are reported; a file of another kind would fill the screen."""


class Complaints:
    """Reports what could not be read, file by file."""

    def __init__(self, console: Console) -> None:
        """Write to this console."""
        self._console = console
        self._lines = 0
        self._files: list[LineCounts] = []

    @property
    def files(self) -> Sequence[LineCounts]:
        """The files that were read so far."""
        return self._files

    def add(self, problem: Problem) -> None:
        """Report a problem, unless enough lines of its file have been reported."""
        self._lines += problem.line is not None
        if problem.line is None or self._lines <= MAX_LINES:
            self._console.print(str(problem))

    def end_lines(self, counts: LineCounts) -> None:
        """Say how many bad lines of the file were not reported; all of its lines have been read."""
        unsaid = counts.bad - MAX_LINES
        if unsaid > 0:
            lines = "line" if unsaid == 1 else "lines"
            self._console.print(f"{counts.source}: {unsaid:,} more {lines} could not be read")
        self._files.append(counts)
        self._lines = 0

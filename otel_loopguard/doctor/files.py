"""Recorded files -> what their spans show, and problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from otel_loopguard.doctor.examination import Examination
from otel_loopguard.doctor.sightings import Sighting
from otel_loopguard.replay.errors import ReplayError
from otel_loopguard.replay.files import read_file, read_line
from otel_loopguard.replay.results import LineCounts, Problem
from otel_loopguard.spans import SpanRecord

_STEPS = "a steps file has no spans: the doctor looks at what instrumentations write"


def examine_file(
    name: str,
    examination: Examination,
    *,
    on_bytes: Callable[[int], object] | None = None,
    on_lines: Callable[[LineCounts], object] | None = None,
) -> Iterator[Problem]:
    """Take in the spans of a file (plain or gzip; `-` is standard input); yield what is bad.

    A line that cannot be read is skipped; a last `Problem` without a line says that the file, or
    every line of it, could not be read. `on_bytes` and `on_lines` are told as by `replay_file`.
    """
    sightings: list[Sighting] = []
    for found in read_file(name, _spans_of, on_bytes=on_bytes, on_lines=on_lines):
        if isinstance(found, Problem):
            yield found
        else:
            sightings += (Sighting(record=record) for record in found)
    examination.take(sightings)


def _spans_of(line: bytes, number: int) -> list[SpanRecord] | None:
    found = read_line(line, number)
    if found is None or isinstance(found, list):
        return found
    raise ReplayError(_STEPS)

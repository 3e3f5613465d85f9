"""Recorded files -> what their spans show, and problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from otel_loopguard.doctor.examination import Examination
from otel_loopguard.doctor.sightings import Sighting
from otel_loopguard.replay.errors import ReplayError
from otel_loopguard.replay.files import read_line, unit_of
from otel_loopguard.replay.results import LineCounts, Problem, Unit
from otel_loopguard.replay.source import numbered_lines
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
    read = bad = 0
    unit: Unit = "line"
    unreadable: Problem | None = None
    try:
        for number, line in numbered_lines(name, on_bytes):
            unit = unit_of(line)
            try:
                found = _spans_of(line, number)
            except ReplayError as error:
                bad += 1
                yield Problem(source=name, line=number, why=str(error))
                continue
            sightings += (Sighting(record=record) for record in found or ())
            read += found is not None
    except ReplayError as error:
        unreadable = Problem(source=name, line=None, why=str(error))
    if on_lines is not None:
        on_lines(LineCounts(source=name, lines=read + bad, bad=bad, unit=unit))
    if unreadable is not None:
        yield unreadable
    examination.take(sightings)
    if bad and not read:
        yield Problem(source=name, line=None, why=f"none of its {bad} {unit}s can be read")


def _spans_of(line: bytes, number: int) -> list[SpanRecord] | None:
    found = read_line(line, number)
    if found is None or isinstance(found, list):
        return found
    raise ReplayError(_STEPS)

"""Recorded files -> replayed runs and problems, in the order in which they become known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from otel_loopguard.policy import Policy
from otel_loopguard.replay.errors import ReplayError
from otel_loopguard.replay.otlp_json import read_spans
from otel_loopguard.replay.otlp_proto import read_message
from otel_loopguard.replay.proto_frames import Message
from otel_loopguard.replay.recorded_run import replay_run
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.replay.results import LineCounts, Problem, ReplayedRun, Unit
from otel_loopguard.replay.source import kind_of, numbered_lines
from otel_loopguard.replay.steps_file import RecordedRun, read_run
from otel_loopguard.spans import SpanRecord

_Held = TypeVar("_Held")


def replay_file(
    name: str,
    policy: Policy,
    *,
    on_bytes: Callable[[int], object] | None = None,
    on_lines: Callable[[LineCounts], object] | None = None,
) -> Iterator[ReplayedRun | Problem]:
    """Replay a file (plain or gzip; `-` is standard input) under `policy`.

    A run of a steps file comes as soon as its line has been read. Spans of one run may stand
    anywhere in a file, so runs made of spans come at the end of the file, and the file's spans are
    held until then. A line that cannot be read becomes a `Problem` and is skipped; a last `Problem`
    without a line says that the file, or every line of it, could not be read. Where a file is OTLP
    protobuf, all this is meant of its messages. `on_bytes` is told now and then how many bytes were
    read since the last time, `on_lines` at the end of the lines how many there were.
    """
    spans: list[SpanRecord] = []

    def replayed(line: bytes, number: int) -> ReplayedRun | list[SpanRecord] | None:
        found = read_line(line, number)
        return replay_run(found, policy, name) if isinstance(found, RecordedRun) else found

    held: Iterator[ReplayedRun | list[SpanRecord] | Problem]
    held = read_file(name, replayed, on_bytes=on_bytes, on_lines=on_lines)
    for found in held:
        if isinstance(found, ReplayedRun | Problem):
            yield found
        else:
            spans += found
    yield from replay_spans(spans, policy, name)


def read_file(
    name: str,
    read: Callable[[bytes, int], _Held | None],
    *,
    on_bytes: Callable[[int], object] | None = None,
    on_lines: Callable[[LineCounts], object] | None = None,
) -> Iterator[_Held | Problem]:
    """Yield what `read` makes of each line of a file and its number, and what is wrong with it.

    A line of which it says `None` holds nothing; one for which it raises `ReplayError` becomes a
    `Problem`. Files, the last problem, `on_bytes` and `on_lines` are as in `replay_file`.
    """
    good = bad = 0
    unit: Unit = "line"
    broken: str | None = None
    try:
        for number, line in numbered_lines(name, on_bytes):
            unit = unit_of(line)
            try:
                found = read(line, number)
            except ReplayError as error:
                bad += 1
                yield Problem(source=name, line=number, why=str(error))
                continue
            if found is not None:
                good += 1
                yield found
    except ReplayError as error:
        broken = str(error)
    if on_lines is not None:
        on_lines(LineCounts(source=name, lines=good + bad, bad=bad, unit=unit))
    if broken is not None:
        yield Problem(source=name, line=None, why=broken)
    if bad and not good:
        yield Problem(source=name, line=None, why=f"none of its {bad} {unit}s can be read")


def read_line(line: bytes, number: int) -> RecordedRun | list[SpanRecord] | None:
    """Return what a line or a message holds.

    That is a run, spans (none if it has metrics or logs), or nothing at all.

    Raises:
        ReplayError: it cannot be read.

    """
    if isinstance(line, Message):
        return _read_message(line, number)
    content = line.strip()
    kind = kind_of(content)
    if kind == "blank":
        return None
    if kind == "steps":
        return read_run(content, number=number)
    return read_spans(content) if kind == "spans" else []


def unit_of(line: bytes) -> Unit:
    """Return what a line or a message is called."""
    return "message" if isinstance(line, Message) else "line"


def _read_message(message: Message, number: int) -> list[SpanRecord] | None:
    why = f"expected {message.expected_bytes} bytes, got {len(message)}: the file ends there"
    if message.expected_bytes is None:
        try:
            return read_message(message) if message else None
        except ReplayError as error:
            why = str(error)
    raise ReplayError(f"message {number}: {why}")

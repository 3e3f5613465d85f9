"""Recorded lines -> sanitised lines, and whether they replay as the recorded ones do."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from otel_loopguard.dialects import read_step
from otel_loopguard.policy import Policy
from otel_loopguard.replay.errors import ReplayError
from otel_loopguard.replay.files import read_file, read_line
from otel_loopguard.replay.json_text import loads
from otel_loopguard.replay.proto_frames import Message
from otel_loopguard.replay.recorded_run import replay_run
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.replay.results import LineCounts, Problem, ReplayedRun
from otel_loopguard.replay.steps_file import RecordedRun
from otel_loopguard.sanitising.names import names_of
from otel_loopguard.sanitising.otlp_fields import Request
from otel_loopguard.sanitising.span_lines import line_of
from otel_loopguard.sanitising.steps_lines import sanitised_run
from otel_loopguard.sanitising.texts import Texts
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

BEGIN_S: Final = 1_767_225_600
"""When every sanitised recording begins, in seconds since 1970: the first second of 2026."""

_NANOSECONDS: Final = 1_000_000_000
_Content: TypeAlias = RecordedRun | list[SpanRecord]


class RecordedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line or a message that holds runs or spans."""

    number: int
    """Of the line or message in its file, from 1."""
    text: bytes
    content: _Content


class Recording:
    """The lines of one or several files, taken as one."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lines: list[RecordedLine] = []
        self.counts: list[LineCounts] = []

    def read(self, name: str) -> Iterator[Problem]:
        """Add the lines of a file (`-` is standard input); yield what could not be read."""

        def kept(line: bytes, number: int) -> RecordedLine | tuple[()] | None:
            content = read_line(line, number)
            if content is None:
                return None
            if isinstance(content, list) and not content:
                return ()
            return RecordedLine(number=number, text=line, content=content)

        for found in read_file(name, kept, on_lines=self.counts.append):
            if isinstance(found, Problem):
                yield found
            elif isinstance(found, RecordedLine):
                self.lines.append(found)

    def sanitised(
        self, key: bytes, *, rename: bool = False, words: Collection[str] = ()
    ) -> list[bytes]:
        """Return the lines with placeholders, drawn under a key of at most 64 bytes.

        With `rename` the names of tools, agents and models become placeholders as well; `words` are
        kept wherever they stand.
        """
        texts = Texts(key, names=() if rename else self.names(), words=words)
        request = Request(texts, shift_ns=self._shift_ns())
        return [_written(line, request, texts) for line in self.lines]

    def names(self) -> frozenset[str]:
        """Return the names of tools, agents and models that are kept unless they are replaced."""
        return names_of(self._steps())

    def differences(self, lines: Sequence[bytes], policy: Policy) -> list[str]:
        """Return what `replay` says otherwise of sanitised lines than of those that were recorded.

        Ids of runs made of spans are others, and are not compared.
        """
        before = _replayed([line.content for line in self.lines], policy)
        after = _replayed(_read_again(lines), policy)
        if len(before) != len(after):
            return [f"expected {len(before)} runs, got {len(after)}"]
        return [
            f"run {new.run_id}: {field}: expected {getattr(old, field)!r}, got {said!r}"
            for old, new in zip(before, after, strict=True)
            for field in ReplayedRun.__struct_fields__
            if field not in {"run_id", "source"}
            and (said := getattr(new, field)) != getattr(old, field)
        ]

    def _steps(self) -> Iterator[tuple[Step, SpanRecord | None]]:
        for line in self.lines:
            if isinstance(line.content, RecordedRun):
                for each in line.content.steps:
                    if each.step is not None:
                        yield each.step, None
            else:
                for span in line.content:
                    step = read_step(span)
                    if step is not None:
                        yield step, span

    def _shift_ns(self) -> int:
        """Return by how much the first span is late: whole seconds, so that fractions stay."""
        starts = [
            span.started_ns
            for line in self.lines
            if not isinstance(line.content, RecordedRun)
            for span in line.content
            if span.started_ns
        ]
        return (BEGIN_S - min(starts) // _NANOSECONDS) * _NANOSECONDS if starts else 0


def _written(line: RecordedLine, request: Request, texts: Texts) -> bytes:
    data: object
    if isinstance(line.content, RecordedRun):
        data = sanitised_run(loads(line.text), texts)
    elif isinstance(line.text, Message):
        data = request.sanitised(line_of(line.content))
    else:
        data = request.sanitised(loads(line.text.decode("utf-8-sig", "replace")))
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def _read_again(lines: Iterable[bytes]) -> Iterator[_Content]:
    for number, line in enumerate(lines, 1):
        try:
            content = read_line(line, number)
        except ReplayError:  # what has been read is written so that it can be: a fault of ours
            continue
        if content is not None:
            yield content


def _replayed(contents: Iterable[_Content], policy: Policy) -> list[ReplayedRun]:
    """Replay what was read; a run whose own policy cannot be followed is none, as for `replay`."""
    runs: list[ReplayedRun] = []
    spans: list[SpanRecord] = []
    for content in contents:
        if isinstance(content, RecordedRun):
            with suppress(ReplayError):
                runs.append(replay_run(content, policy, source=""))
        else:
            spans += content
    return runs + replay_spans(spans, policy, source="")

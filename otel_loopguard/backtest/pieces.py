"""Recorded files in pieces, so that many processes can share them.

A steps file is cut between lines. Spans of one run may stand anywhere in a file, so a file of spans
(lines, or messages in protobuf) is one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import msgspec

from otel_loopguard.replay import ReplayError
from otel_loopguard.replay.proto_frames import Message
from otel_loopguard.replay.source import STDIN, kind_of, numbered_lines, size_of

BLOCK = 1 << 22
"""Bytes of lines in a piece."""

Lines: TypeAlias = "Iterator[tuple[int, bytes]]"


class FilePiece(msgspec.Struct, frozen=True):
    """A whole file, to be read where it is played."""

    source: str
    size: int
    """Bytes of it, as it lies on the disk."""
    is_last: bool = True


class LinesPiece(msgspec.Struct, frozen=True):
    """Neighbouring lines of a file."""

    source: str
    first: int
    """The number of the first line, from 1."""
    lines: list[bytes]
    size: int
    is_last: bool = False
    broken: str | None = None
    """Why the file cannot be read beyond these lines."""


class StreamPiece(msgspec.Struct, frozen=True):
    """Lines that come from standard input and belong together."""

    source: str
    lines: Lines
    size: int = 0
    is_last: bool = True


Piece: TypeAlias = FilePiece | LinesPiece | StreamPiece


def pieces_of(name: str, *, block: int = BLOCK) -> Iterator[Piece]:
    """Cut a file; its last piece says so. Does not raise for a file that cannot be read."""
    counter = _Counter()
    lines = numbered_lines(name, counter.add)
    before: list[tuple[int, bytes]] = []
    try:
        for numbered in lines:
            before.append(numbered)
            if isinstance(numbered[1], Message) or numbered[1].strip():
                break
    except ReplayError as error:
        empty = [line for _, line in before]
        yield LinesPiece(name, 1, empty, counter.take(), is_last=True, broken=str(error))
        return
    if not before or not _belongs_together(before[-1][1]):
        yield from _cut(name, chain(before, lines), counter, block)
    elif name == STDIN:
        yield StreamPiece(name, chain(before, lines))
    else:
        lines.close()
        yield FilePiece(name, size_of(name) or 0)


def _belongs_together(line: bytes) -> bool:
    try:
        return isinstance(line, Message) or kind_of(line.strip()) in ("spans", "other")
    except ReplayError:
        return False


def _cut(name: str, lines: Lines, counter: _Counter, block: int) -> Iterator[LinesPiece]:
    first, held, length, broken = 1, list[bytes](), 0, None
    try:
        for number, line in lines:
            if length >= block:
                yield LinesPiece(name, first, held, counter.take())
                first, held, length = number, [], 0
            held.append(line)
            length += len(line)
    except ReplayError as error:
        broken = str(error)
    yield LinesPiece(name, first, held, counter.take(), is_last=True, broken=broken)


class _Counter:
    """Counts what has been read since it was last asked."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, count: int) -> None:
        self._count += count

    def take(self) -> int:
        count, self._count = self._count, 0
        return count

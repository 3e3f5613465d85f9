"""Recorded files, by lines or by messages: plain or gzip, by name or from standard input."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, TypeAlias, cast

import msgspec

from otel_loopguard.replay.contents import BLANK, ENOUGH, GZIP, framing_in, is_json
from otel_loopguard.replay.errors import FieldError, ReplayError, shown
from otel_loopguard.replay.json_text import loads
from otel_loopguard.replay.proto_frames import messages_of

STDIN = "-"
"""The name that means standard input."""

LineKind: TypeAlias = Literal["spans", "steps", "other", "blank"]
"""`spans` an OTLP/JSON trace request, `steps` a run of a steps file, `other` OTLP metrics or logs
(collectors write all signals to one file), `blank` nothing."""

_BRACKETS = {b"{": b"}", b"[": b"]"}
_AT_ONCE = 1 << 17
_REPORT_EVERY = 1 << 18
_FIRST_NAME = re.compile(rb'[\s\xef\xbb\xbf]*\{\s*"([A-Za-z_]+)"\s*:')
_KINDS: dict[str, LineKind] = {
    "resourceSpans": "spans",
    "resource_spans": "spans",
    "steps": "steps",
    "resourceMetrics": "other",
    "resourceLogs": "other",
    "resourceProfiles": "other",
}


def size_of(name: str) -> int | None:
    """Return the size of a file in bytes as it lies on the disk; `None` if that is not known."""
    try:
        return None if name == STDIN else Path(name).stat().st_size
    except OSError:
        return None


def numbered_lines(
    name: str, on_bytes: Callable[[int], object] | None = None
) -> Generator[tuple[int, bytes], None, None]:
    """Yield the lines of a file, or the messages of one in protobuf, with their numbers, from 1.

    One of them at a time is held; a message is a `Message`. Which of the two there are, and whether
    it is gzip, is read from its first bytes. `on_bytes` is told now and then how many bytes (as
    they lie on the disk) were read since the last time.

    Raises:
        ReplayError: the file cannot be opened, or not be read to its end, or is something else.

    """
    try:
        with ExitStack() as stack:
            raw = cast("io.BufferedReader", sys.stdin.buffer)
            if name != STDIN:
                raw = stack.enter_context(Path(name).open("rb"))
            file = io.BufferedReader(_Counted(raw, on_bytes), _AT_ONCE)
            if file.peek()[:2] == GZIP:
                packed = stack.enter_context(gzip.GzipFile(fileobj=file))
                file = io.BufferedReader(_Counted(packed, None), _AT_ONCE)
            framing = framing_in(file.peek())
            yield from enumerate(
                _lines_of(file) if framing is None else messages_of(file, framing), 1
            )
    except IsADirectoryError:
        message = "it is a folder; name the files in it, or use backtest, which searches folders"
        raise ReplayError(message) from None
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ReplayError(f"it cannot be read: {reason}") from error


def kind_of(line: bytes) -> LineKind:
    """Say what a line is, by the names of its outermost object.

    Raises:
        ReplayError: it is neither; the message says what was expected.

    """
    if not line.strip():
        return "blank"
    first = _FIRST_NAME.match(line)
    if first is not None and (kind := _KINDS.get(first[1].decode())) is not None:
        return kind
    names = _names(line)
    for name, kind in _KINDS.items():
        if name in names:
            return kind
    expected = "an object with 'resourceSpans' (OTLP/JSON) or 'steps' (a steps file)"
    raise FieldError((), expected, shown(line.decode("utf-8", "replace").strip()))


def _lines_of(file: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yield the lines of a file.

    Raises:
        ReplayError: it is one JSON document over several lines, none of which can be read alone.

    """
    for line in file:
        content = line.strip(BLANK)
        if content and _BRACKETS.get(content[:1], content[-1:]) != content[-1:]:
            # The first line breaks off: either it was cut, or the next one goes on with it.
            between = [line, *_up_to_content(file)]
            following = between[-1]
            goes_on = content[:1] == b"[" or not following.startswith(b"{")
            if len(between) > 1 and following.strip() and goes_on:
                message = "this looks like one JSON document; expected one JSON object a line"
                raise ReplayError(message)
            yield from between
            break
        yield line
        if content:
            break
    yield from file


def _up_to_content(file: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yield lines up to the first that is not blank."""
    for line in file:
        yield line
        if line.strip():
            return


def _names(line: bytes) -> frozenset[str]:
    """Return the names of the outermost object; none if it is another value."""
    try:
        return frozenset(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        data = loads(line)
    return frozenset(cast("dict[str, object]", data)) if isinstance(data, dict) else frozenset()


class _Counted(io.RawIOBase):
    """A raw file that tells how much was read from it, and first gives enough to be told by."""

    def __init__(
        self, source: io.BufferedReader | gzip.GzipFile, on_bytes: Callable[[int], object] | None
    ) -> None:
        super().__init__()
        self._source = source
        self._on_bytes = on_bytes
        self._untold = 0
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._source.read1(len(buffer))
        # A pipe may give a few bytes at a time. Nobody waits for more than a JSON object's name.
        while not self._begun and 0 < len(data) < ENOUGH and not is_json(data):
            more = self._source.read1(len(buffer) - len(data))
            self._begun = not more
            data += more
        self._begun = True
        buffer[: len(data)] = data
        self._untold += len(data)
        if self._on_bytes is not None and (self._untold >= _REPORT_EVERY or not data):
            self._on_bytes(self._untold)
            self._untold = 0
        return len(data)

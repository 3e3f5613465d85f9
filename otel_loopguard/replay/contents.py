"""What a recorded file is, by what it begins with: lines of text, or messages of OTLP protobuf."""

from __future__ import annotations

import re

from otel_loopguard.replay.errors import ReplayError, shown
from otel_loopguard.replay.proto_frames import Framing, framing_of

GZIP = b"\x1f\x8b"
"""What a gzip file begins with."""
BLANK = b" \t\r\n\xef\xbb\xbf"
"""White space, and the mark that some editors put before UTF-8."""
ENOUGH = 64
"""Bytes by which a file can be told."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_SHOWN = 12
_JSON = re.compile(rb'\s*\{\s*(?:"[^"\x00-\x1f]*"\s*:|\})')
_JSON_LINE = re.compile(rb'\n\{\s*"[^"\x00-\x1f]*"\s*:')
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""What no text has, and nearly every message: in a span, the lengths of its ids."""


def is_json(begin: bytes) -> bool:
    """Say whether a file that begins so is made of JSON objects: then there is no doubt."""
    return _JSON.match(begin.lstrip(BLANK)) is not None


def framing_in(begin: bytes) -> Framing | None:
    """Say how the messages of a file that begins so are framed; `None` for lines of text.

    Text that is no JSON is read as lines, of which each says what is wrong with it. JSON and white
    space may stand at the begin of a message: it is told by what follows.

    Raises:
        ReplayError: the file is neither; the message says what was expected.

    """
    if is_json(begin) or not begin.strip(BLANK):
        return None
    framing = framing_of(begin)
    if framing is not None:
        return framing
    if _BINARY.search(begin) is None or _JSON_LINE.search(begin) is not None:
        return None
    if begin.startswith(_ZSTD):
        message = "it is packed with zstd, which is not read here; unpack it: `zstd -d -c FILE`"
        raise ReplayError(message)
    if begin[4:8] == _ZSTD:
        message = (
            "its messages are packed with zstd, which is not read here; record without "
            "`compression: zstd` in the file exporter of the collector"
        )
        raise ReplayError(message)
    message = (
        "expected OTLP/JSON lines, a steps file, or OTLP protobuf (messages with their length "
        f"before them, or a single one), plain or gzip, got {shown(begin[:_SHOWN])}"
    )
    raise ReplayError(message)

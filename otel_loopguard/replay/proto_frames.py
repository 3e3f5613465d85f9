"""Files of OTLP protobuf: where one message ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, Protocol, TypeAlias

from otel_loopguard.replay.proto_wire import MOST_BYTES, Field, WireError, number_at

Framing: TypeAlias = Literal["four bytes", "varint", "bare"]
"""What stands before each message: its length in four bytes, the highest first, as the file
exporter of the collector writes it; its length as a varint, as `writeDelimitedTo` of protobuf does;
or nothing, where one message is the whole file."""

_FRAMED: Final[tuple[Framing, ...]] = ("four bytes", "varint")
_FIRST = 5
"""Messages that are looked at, where the first ones may be broken."""
_AT_ONCE = 1 << 20
_FOUR = 4
_MORE = 0x80
"""A byte of a varint that is no less is not its last one."""
_LONGEST = 10
"""Bytes of a varint."""
_RESOURCES = 0x0A
_IN_REQUEST = frozenset({_RESOURCES, 0x12})
"""Tags of a request's fields: resources, and a table that only profiles have."""
_IN_RESOURCE = frozenset({0x0A, 0x12, 0x1A})
"""Tags of the fields of a resource: what it is, its scopes, the address of its schema."""


class Source(Protocol):
    """A file to read from."""

    def read(self, size: int, /) -> bytes:
        """Return so many bytes, or as many as there are up to the end."""
        ...


class Message(bytes):
    """A message of a file, to be told from a line of text."""

    expected_bytes: int | None = None
    """How long the message should have been, where the file ends within it."""


def framing_of(begin: bytes) -> Framing | None:
    """Say how a file is framed that begins so; `None` if it is no OTLP protobuf."""
    # What begins as a request does could else be a length: of ten bytes, or of 160 MB.
    if _is_request(begin, 0, MOST_BYTES):
        return "bare"
    for count in (1, _FIRST):
        for framing in _FRAMED:
            if any(_is_request(begin, *place) for place in _places(begin, framing, count)):
                return framing
    return None


def messages_of(source: Source, framing: Framing) -> Iterator[Message]:
    """Yield the messages of a file; one is held at a time. The last one may be cut.

    Raises:
        WireError: a length is none, so that nobody knows where the next message begins.

    """
    if framing == "bare":
        yield Message(_read(source, MOST_BYTES))
        return
    length_of = _four_bytes if framing == "four bytes" else _varint
    while (length := length_of(source)) is not None:
        if isinstance(length, Message):
            yield length
            return
        if length > MOST_BYTES:
            raise WireError(f"expected a message of at most {MOST_BYTES} bytes, got {length}")
        data = _read(source, length)
        yield Message(data) if len(data) == length else _cut(data, length)


def _cut(data: bytes, expected_bytes: int) -> Message:
    message = Message(data)
    message.expected_bytes = expected_bytes
    return message


def _four_bytes(source: Source) -> int | Message | None:
    """Return the next length, or what there is of it; `None` at the end of the file."""
    head = source.read(_FOUR)
    if not head:
        return None
    return int.from_bytes(head, "big") if len(head) == _FOUR else _cut(head, _FOUR)


def _varint(source: Source) -> int | Message | None:
    head = source.read(1)
    if not head:
        return None
    while head[-1] >= _MORE and len(head) <= _LONGEST:
        following = source.read(1)
        if not following:
            return _cut(head, len(head) + 1)
        head += following
    return number_at(head, 0)[0]


def _read(source: Source, size: int) -> bytes:
    """Read in pieces: where a length is wrong, memory for all of it is never asked for."""
    parts: list[bytes] = []
    left = size
    while left and (part := source.read(min(left, _AT_ONCE))):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _places(begin: bytes, framing: Framing, count: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the first messages that are not empty."""
    at = found = 0
    while at < len(begin) and found < count:
        try:
            if framing == "varint":
                length, at = number_at(begin, at)
            else:
                length, at = int.from_bytes(begin[at : at + _FOUR], "big"), at + _FOUR
        except (IndexError, WireError):
            return
        if length > MOST_BYTES:
            return
        if length:
            yield at, at + length
            found += 1
        at += length


def _is_request(begin: bytes, start: int, end: int) -> bool:
    """Say whether what lies there has the outline of a request, as far as it can be seen."""
    resources_seen = False
    if begin[start : start + 1] != bytes([_RESOURCES]):
        return False
    try:
        for tag, inner, stop in _seen(begin, start, end, _IN_REQUEST):
            if tag == _RESOURCES and any(True for _ in _seen(begin, inner, stop, _IN_RESOURCE)):
                resources_seen = True
    except WireError:
        return False
    return resources_seen


def _seen(begin: bytes, start: int, end: int, tags: frozenset[int]) -> Iterator[Field]:
    """Yield the fields from `start` to before `end`, as far as `begin` goes; each has a length."""
    at = start
    while at < min(end, len(begin)):
        tag = begin[at]
        try:
            length, inner = number_at(begin, at + 1)
        except IndexError:
            return
        if tag not in tags or inner + length > end:
            raise WireError("expected the fields of a request, got others")
        yield tag, inner, inner + length
        at = inner + length

"""The wire format of protobuf: a message's bytes -> its fields, none of them understood yet."""

from __future__ import annotations

import struct
from typing import TypeAlias

from otel_loopguard.replay.errors import ReplayError

Field: TypeAlias = "tuple[int, int, int]"
"""Tag (number and wire type), then begin and end of its bytes. In place of the begin, a field that
is a number has that number, without its sign."""

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
"""Wire types: what follows a tag."""

MOST_BYTES = (1 << 31) - 1
"""No message of protobuf may be longer."""

_SIXTY_FOUR_BITS = (1 << 64) - 1
_LONGEST_NUMBER = 10
_FIRST_TAG = 8
_eight_bytes = struct.Struct("<Q").unpack_from
_four_bytes = struct.Struct("<I").unpack_from


class WireError(ReplayError):
    """Bytes that are no message of protobuf."""


def tag_of(number: int, wire_type: int = LENGTH) -> int:
    """Return the tag of a field with this number."""
    return number << 3 | wire_type


def inside(data: bytes, field: Field, tag: int) -> list[Field]:
    """Return the fields with this tag of the message that is a field.

    Raises:
        WireError: there is no message.

    """
    return [inner for inner in fields_of(data, field[1], field[2]) if inner[0] == tag]


def fields_of(data: bytes, begin: int, end: int) -> list[Field]:
    """Return the fields of the message that lies in `data` from `begin` to before `end`.

    Raises:
        WireError: there is no message.

    """
    fields: list[Field] = []
    add = fields.append
    at = begin
    try:
        while at < end:
            # Tags and numbers of one byte are read here, without a call: most are.
            tag = data[at]
            at += 1
            if tag > 127:  # noqa: PLR2004 -- the largest number in one byte
                tag, at = number_at(data, at - 1)
            if tag < _FIRST_TAG:
                raise WireError(f"expected a field's number from 1 before byte {at}, got 0")
            wire_type = tag & 7
            if wire_type == 2:  # noqa: PLR2004 -- its length, then its bytes
                stop = data[at]
                at += 1
                if stop > 127:  # noqa: PLR2004
                    stop, at = number_at(data, at - 1)
                stop += at
                add((tag, at, stop))
                at = stop
            elif wire_type == 0:
                number, at = number_at(data, at)
                add((tag, number, at))
            else:
                number, at = _fixed_number(data, wire_type, at)
                add((tag, number, at))
    except (IndexError, struct.error):
        at = end + 1
    if at != end:
        raise WireError(f"expected a field that ends at byte {end}, as what it is in, got more")
    return fields


def _fixed_number(data: bytes, wire_type: int, at: int) -> tuple[int, int]:
    if wire_type == 1:
        number: int = _eight_bytes(data, at)[0]
        return number, at + 8
    if wire_type == 5:  # noqa: PLR2004
        number = _four_bytes(data, at)[0]
        return number, at + 4
    raise WireError(f"expected wire type 0, 1, 2 or 5 before byte {at}, got {wire_type}")


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length that begins at `at`, and where it ends.

    Raises:
        IndexError: `data` ends within it.
        WireError: it is longer than any number.

    """
    first = data[at]
    if first < 128:  # noqa: PLR2004 -- a number of one byte
        return first, at + 1
    second = data[at + 1]
    if second < 128:  # noqa: PLR2004 -- two bytes
        return first & 127 | second << 7, at + 2
    number = first & 127 | (second & 127) << 7
    for place in range(2, _LONGEST_NUMBER):
        byte = data[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128:  # noqa: PLR2004
            return number & _SIXTY_FOUR_BITS, at + place + 1
    message = f"expected a number of at most {_LONGEST_NUMBER} bytes at byte {at}, got a longer one"
    raise WireError(message)

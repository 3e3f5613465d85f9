"""Which signal a message of OTLP protobuf holds.

The requests of all signals have the same outline: resources, scopes in them, items in these. What
the items are is told by the numbers and wire types of their fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from otel_loopguard.replay.proto_wire import (
    EIGHT_BYTES,
    FOUR_BYTES,
    LENGTH,
    VARINT,
    Field,
    WireError,
    fields_of,
    inside,
    tag_of,
)

_IN_REQUEST: Final = tag_of(1)
_IN_RESOURCE: Final = tag_of(2)
_IN_SCOPE: Final = tag_of(2)
_TRACE_ID: Final = (tag_of(1), 16)
_SPAN_ID: Final = (tag_of(2), 8)


def _tags(**numbers: range | tuple[int, ...]) -> dict[int, int]:
    wire_types = {
        "varint": VARINT,
        "eight_bytes": EIGHT_BYTES,
        "length": LENGTH,
        "four_bytes": FOUR_BYTES,
    }
    return {number: wire_types[kind] for kind, group in numbers.items() for number in group}


_SPAN = _tags(
    length=(1, 2, 3, 4, 5, 9, 11, 13, 15),
    varint=(6, 10, 12, 14),
    eight_bytes=(7, 8),
    four_bytes=(16,),
)
_OTHERS = (
    # A metric, a log record, a profile.
    _tags(length=(1, 2, 3, 5, 7, 9, 10, 11, 12)),
    _tags(length=(3, 5, 6, 9, 10, 12), varint=(2, 7), eight_bytes=(1, 11), four_bytes=(8,)),
    _tags(length=(1, 2, 5, 7, 9, 10, 11), varint=(4, 6, 8), eight_bytes=(3,)),
)
"""The wire types of the fields of an item, by their numbers."""


def holds_spans(data: bytes) -> bool:
    """Say whether a message holds spans, or nothing that another signal would have.

    What cannot be read is taken for spans, so that whoever reads them says what is wrong.
    """
    has_ids = True
    try:
        for item in _items(data):
            fields = fields_of(data, item[1], item[2])
            is_span = _fits(fields, _SPAN)
            if is_span != any(_fits(fields, other) for other in _OTHERS):
                return is_span
            if not is_span:
                return True
            # It may be either: a span without times or a kind, which nobody writes, has ids.
            sizes = {(tag, end - begin) for tag, begin, end in fields}
            has_ids = has_ids and {_TRACE_ID, _SPAN_ID} <= sizes
    except WireError:
        return True
    return has_ids


def _items(data: bytes) -> Iterator[Field]:
    for resource in inside(data, (0, 0, len(data)), _IN_REQUEST):
        for scope in inside(data, resource, _IN_RESOURCE):
            yield from inside(data, scope, _IN_SCOPE)


def _fits(fields: list[Field], wire_types: dict[int, int]) -> bool:
    """Say whether no field has another wire type; fields that are not known may be newer."""
    return all(wire_types.get(tag >> 3, tag & 7) == tag & 7 for tag, _, _ in fields)

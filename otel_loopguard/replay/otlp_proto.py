"""OTLP protobuf -> `SpanRecord`: one ExportTraceServiceRequest a message.

The numbers are those of opentelemetry/proto/trace/v1/trace.proto (version 1.10). As protobuf wants
it, the last of several values counts, parts of one message are merged, and unknown fields are
passed over. In text that is no UTF-8, as the collector has where it cut a text, replacement
characters stand for the rest, as in what it writes as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from otel_loopguard.replay.errors import ReplayError, path_text
from otel_loopguard.replay.proto_signals import holds_spans
from otel_loopguard.replay.proto_values import mapping_of, text_of
from otel_loopguard.replay.proto_wire import (
    EIGHT_BYTES,
    FOUR_BYTES,
    VARINT,
    Field,
    WireError,
    fields_of,
    inside,
    tag_of,
)
from otel_loopguard.spans import SpanEventRecord, SpanRecord

_RESOURCE_SPANS: Final = tag_of(1)
_SCOPE_SPANS: Final = tag_of(2)
_SCOPE: Final = tag_of(1)
_SCOPE_NAME: Final = tag_of(1)
_SPANS: Final = tag_of(2)

_TRACE_ID: Final = tag_of(1)
_SPAN_ID: Final = tag_of(2)
_PARENT_SPAN_ID: Final = tag_of(4)
_NAME: Final = tag_of(5)
_STARTED: Final = tag_of(7, EIGHT_BYTES)
_ENDED: Final = tag_of(8, EIGHT_BYTES)
_ATTRIBUTES: Final = tag_of(9)
_EVENTS: Final = tag_of(11)
_STATUS: Final = tag_of(15)
_FLAGS: Final = tag_of(16, FOUR_BYTES)

_EVENT_NAME: Final = tag_of(2)
_EVENT_ATTRIBUTES: Final = tag_of(3)
_STATUS_MESSAGE: Final = tag_of(2)
_STATUS_CODE: Final = tag_of(3, VARINT)

_STATUS_ERROR = 2
_PARENT_IS_REMOTE = 0x300
"""OTLP span flags: bit 8 says that bit 9 is meant, bit 9 that the parent is remote."""


def read_message(data: bytes) -> list[SpanRecord]:
    """Return the spans of one message, in its order; none if it holds metrics, logs or profiles.

    Times are nanoseconds since the epoch. A span without an end time (or with 0) has not ended.

    Raises:
        ReplayError: `data` is no such message; the error names the place and what was expected.

    """
    records: list[SpanRecord] = []
    for r, (_, begin, end) in enumerate(inside(data, (0, 0, len(data)), _RESOURCE_SPANS)):
        for s, scope_spans in enumerate(inside(data, (0, begin, end), _SCOPE_SPANS)):
            fields = fields_of(data, scope_spans[1], scope_spans[2])
            scope = _text(data, _merged(data, fields, _SCOPE), _SCOPE_NAME)
            for n, span in enumerate(field for field in fields if field[0] == _SPANS):
                try:
                    inner = fields_of(data, span[1], span[2])
                    if not records and not _is_span(data, inner):
                        return []
                    records.append(_record(data, inner, scope))
                except ReplayError as error:
                    path = ("resourceSpans", r, "scopeSpans", s, "spans", n)
                    raise ReplayError(f"{path_text(path)}: {error}") from error
    return records


def _is_span(data: bytes, fields: list[Field]) -> bool:
    """Say whether a message holds spans, by the first of them; all but broken ones have a start."""
    return any(field[0] == _STARTED for field in fields) or holds_spans(data)


def _merged(data: bytes, fields: Iterable[Field], tag: int) -> dict[int, Field]:
    """Return the last field of each kind in a message that may come in parts."""
    return {
        inner[0]: inner
        for field in fields
        if field[0] == tag
        for inner in fields_of(data, field[1], field[2])
    }


def _record(data: bytes, fields: list[Field], scope: str) -> SpanRecord:
    last = {field[0]: field for field in fields}
    status = _merged(data, fields, _STATUS) if _STATUS in last else {}
    return SpanRecord(
        name=_text(data, last, _NAME),
        trace_id=_known(_id(data, last.get(_TRACE_ID), 16, "traceId"), "traceId"),
        span_id=_known(_id(data, last.get(_SPAN_ID), 8, "spanId"), "spanId"),
        parent_id=_id(data, last.get(_PARENT_SPAN_ID), 8, "parentSpanId") or None,
        parent_is_remote=_number(last, _FLAGS) & _PARENT_IS_REMOTE == _PARENT_IS_REMOTE,
        scope=scope,
        attributes=mapping_of(data, fields, _ATTRIBUTES),
        events=_events(data, fields) if _EVENTS in last else (),
        is_error=_number(status, _STATUS_CODE) == _STATUS_ERROR,
        status_message=_text(data, status, _STATUS_MESSAGE),
        started_ns=_number(last, _STARTED),
        ended_ns=_number(last, _ENDED) or None,
    )


def _events(data: bytes, fields: list[Field]) -> tuple[SpanEventRecord, ...]:
    events: list[SpanEventRecord] = []
    for tag, begin, end in fields:
        if tag == _EVENTS:
            inner = fields_of(data, begin, end)
            last = {field[0]: field for field in inner}
            name = _text(data, last, _EVENT_NAME)
            attributes = mapping_of(data, inner, _EVENT_ATTRIBUTES)
            events.append(SpanEventRecord(name=name, attributes=attributes))
    return tuple(events)


def _text(data: bytes, fields: Mapping[int, Field], tag: int) -> str:
    field = fields.get(tag)
    return "" if field is None else text_of(data, field[1], field[2])


def _number(fields: Mapping[int, Field], tag: int) -> int:
    """Return a number without a sign; 0 if it is not there."""
    field = fields.get(tag)
    return 0 if field is None else field[1]


def _id(data: bytes, field: Field | None, size: int, name: str) -> int:
    """Return an id of `size` bytes as a number; 0 if there is none."""
    if field is None or field[1] == field[2]:
        return 0
    _, begin, end = field
    if end - begin != size:
        raise WireError(f"{name}: expected {size} bytes, got {end - begin}")
    return int.from_bytes(data[begin:end], "big")


def _known(number: int, name: str) -> int:
    if not number:
        raise WireError(f"{name}: expected an id that is not zero, got none, or zero")
    return number

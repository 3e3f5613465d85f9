"""Spans as they were read -> plain data of an OTLP/JSON request, for what was no JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import cast

from otel_loopguard.spans import SpanRecord

_REMOTE_PARENT = 0x300
_ERROR = 2


def line_of(records: Iterable[SpanRecord]) -> dict[str, object]:
    """Return a request with these spans in their order: all that is read of a message."""
    scopes = [
        {"scope": {"name": name}, "spans": [_span(record) for record in group]}
        for name, group in groupby(records, lambda record: record.scope)
    ]
    return {"resourceSpans": [{"scopeSpans": scopes}]}


def _span(record: SpanRecord) -> dict[str, object]:
    found: dict[str, object] = {
        "traceId": f"{record.trace_id:032x}",
        "spanId": f"{record.span_id:016x}",
        "parentSpanId": "" if record.parent_id is None else f"{record.parent_id:016x}",
        "flags": _REMOTE_PARENT if record.parent_is_remote else 0,
        "name": record.name,
        "startTimeUnixNano": str(record.started_ns),
        "endTimeUnixNano": str(record.ended_ns or 0),
        "attributes": _attributes(record.attributes),
        "events": [
            {"name": event.name, "attributes": _attributes(event.attributes)}
            for event in record.events
        ],
    }
    if record.is_error or record.status_message:
        code = _ERROR if record.is_error else 0
        found["status"] = {"code": code, "message": record.status_message}
    return found


def _attributes(attributes: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _attributes(cast("Mapping[str, object]", value))}}
    if isinstance(value, (list, tuple)):
        items = cast("Iterable[object]", value)
        return {"arrayValue": {"values": [_value(item) for item in items]}}
    return _scalar(value)


def _scalar(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if value - value == 0 else _odd(value)}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    return {}


def _odd(value: float) -> str:
    """Return how the JSON mapping of protobuf writes what is no number in JSON."""
    if value != value:  # noqa: PLR0124 -- only NaN is not itself
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"

"""OTLP/JSON lines -> `SpanRecord`: one ExportTraceServiceRequest a line.

Read is what the collector's file exporter and the SDK's file exporter write, and what the protobuf
JSON mapping allows beside it: 64-bit numbers as strings or numbers, enumerations as numbers or
names, snake_case field names. Ids are hex (OTLP) or base64 (plain protobuf JSON). Fields that
nobody asks for are skipped by the decoder, which is where the speed comes from.
"""

from __future__ import annotations

import base64
import re
from typing import TypeAlias, cast

from otel_loopguard.replay.errors import FieldError, shown
from otel_loopguard.replay.json_text import Reader, convert, loads
from otel_loopguard.replay.otlp_messages import KeyValue, Number, Request, Span, Value
from otel_loopguard.spans import SpanEventRecord, SpanRecord

_STATUS_ERROR = frozenset({2, "STATUS_CODE_ERROR"})
_PARENT_IS_REMOTE = 0x300
"""OTLP span flags: bit 8 says that bit 9 is meant, bit 9 that the parent is remote."""
_MAX_PATH = 100
"""Paths may be this long: a value nested deeper than some 90 levels is refused."""
_MAX_DEPTH = 200
"""JSON in snake_case, which is rewritten here, may be nested this deep."""

_requests = Reader(Request)
_SNAKE_NAMES = re.compile(rb'^[^"]*"resource_spans"')
_Path: TypeAlias = tuple[str | int, ...]


def read_spans(line: bytes | str) -> list[SpanRecord]:
    """Return the spans of one OTLP/JSON ExportTraceServiceRequest, in the order of the line.

    Times are nanoseconds since the epoch. A span without an end time (or with 0) has not ended.

    Raises:
        ReplayError: `line` is no such request; the message names the field and what was expected.

    """
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    if _SNAKE_NAMES.match(data):
        request = convert(_camel_names(loads(data), 0), Request)
    else:
        request = _requests.read(data)
    records: list[SpanRecord] = []
    for r, resource_spans in enumerate(request.resource_spans):
        for s, scope_spans in enumerate(resource_spans.scope_spans):
            scope = scope_spans.scope.name if scope_spans.scope is not None else ""
            for n, span in enumerate(scope_spans.spans):
                path = ("resourceSpans", r, "scopeSpans", s, "spans", n)
                records.append(_record(span, scope, path))
    return records


def _record(span: Span, scope: str, path: _Path) -> SpanRecord:
    status = span.status
    return SpanRecord(
        name=span.name,
        trace_id=_known(_id(span.trace_id, 16, path, "traceId"), path, "traceId"),
        span_id=_known(_id(span.span_id, 8, path, "spanId"), path, "spanId"),
        parent_id=_id(span.parent_span_id, 8, path, "parentSpanId") or None,
        parent_is_remote=span.flags & _PARENT_IS_REMOTE == _PARENT_IS_REMOTE,
        scope=scope,
        attributes=_mapping(span.attributes, path),
        events=tuple(
            SpanEventRecord(name=event.name, attributes=_mapping(event.attributes, path))
            for event in span.events
        ),
        is_error=status is not None and status.code in _STATUS_ERROR,
        status_message=status.message if status is not None else "",
        started_ns=_integer(span.start_time_unix_nano, (*path, "startTimeUnixNano")),
        ended_ns=_integer(span.end_time_unix_nano, (*path, "endTimeUnixNano")) or None,
    )


def _mapping(pairs: list[KeyValue], path: _Path) -> dict[str, object]:
    """Return key-value pairs as a mapping; the last of equal keys counts."""
    # Nearly all values are strings: they are taken here, without a call.
    return {
        pair.key: value.string_value
        if (value := pair.value) is not None and value.string_value is not None
        else _plain(value, (*path, pair.key))
        for pair in pairs
    }


def _plain(value: Value | None, path: _Path) -> object:
    """Return an AnyValue as plain data; one without a value is `None`."""
    if len(path) > _MAX_PATH:
        raise FieldError(path[:8], f"values nested at most {_MAX_PATH} deep", "deeper ones")
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return _integer(value.int_value, (*path, "intValue"))
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return _double(value.double_value, (*path, "doubleValue"))
    return _composed(value, path)


def _composed(value: Value, path: _Path) -> object:
    if value.array_value is not None:
        return tuple(_plain(item, (*path, n)) for n, item in enumerate(value.array_value.values))
    if value.kvlist_value is not None:
        return _mapping(value.kvlist_value.values, path)
    if value.bytes_value is not None:
        return _bytes(value.bytes_value, (*path, "bytesValue"))
    return None


def _integer(value: Number, path: _Path) -> int:
    try:
        whole = not isinstance(value, float) or value.is_integer()
        number = int(value)
    except (ValueError, OverflowError):
        whole, number = False, 0
    if not whole:
        raise FieldError(path, "a whole number or the text of one", shown(value))
    return number


def _double(value: Number, path: _Path) -> float:
    """Return a double; the JSON mapping writes "NaN", "Infinity" and "-Infinity" as text."""
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise FieldError(path, "a number or the text of one", shown(value)) from error


def _bytes(text: str, path: _Path) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise FieldError(path, "base64", shown(text)) from error


def _id(text: str, size: int, path: _Path, field: str) -> int:
    """Return an id of `size` bytes as a number; 0 if there is none."""
    if not text:
        return 0
    try:
        data = bytes.fromhex(text) if len(text) == 2 * size else base64.b64decode(text)
    except ValueError:
        data = b""
    if len(data) != size:
        raise FieldError((*path, field), f"{2 * size} hex digits", shown(text))
    return int.from_bytes(data, "big")


def _known(number: int, path: _Path, field: str) -> int:
    if not number:
        raise FieldError((*path, field), "an id that is not zero", "none, or zero")
    return number


def _camel_names(data: object, depth: int) -> object:
    """Return plain JSON data with the names of fields (never those of attributes) in camelCase."""
    if depth > _MAX_DEPTH:
        raise FieldError((), f"values nested at most {_MAX_DEPTH} deep", "deeper ones")
    if isinstance(data, dict):
        mapping = cast("dict[str, object]", data)
        return {_camel(name): _camel_names(value, depth + 1) for name, value in mapping.items()}
    if isinstance(data, list):
        return [_camel_names(item, depth + 1) for item in cast("list[object]", data)]
    return data


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)

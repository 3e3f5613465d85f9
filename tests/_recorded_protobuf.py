"""Recordings in OTLP protobuf, written by the real `opentelemetry-proto`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, cast

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests._recordings import Recording

_IDS = ("traceId", "spanId", "parentSpanId")


def json_lines(recording: Recording) -> list[bytes]:
    """Return the trace requests of a recording, as OTLP/JSON."""
    return [line.rstrip() for line in recording.lines()]


def messages(recording: Recording) -> list[bytes]:
    """Return the same as protobuf."""
    return [request_of(line).SerializeToString() for line in json_lines(recording)]


def request_of(line: bytes) -> ExportTraceServiceRequest:
    """Return a line of OTLP/JSON, whose ids are hex, as protobuf has it."""
    return ParseDict(_with_base64(json.loads(line)), ExportTraceServiceRequest())


def _with_base64(data: Any) -> Any:
    if isinstance(data, list):
        return [_with_base64(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    mapping = cast("dict[str, Any]", data)
    return {
        name: base64.b64encode(bytes.fromhex(value)).decode()
        if name in _IDS and isinstance(value, str)
        else _with_base64(value)
        for name, value in mapping.items()
    }


def with_four_bytes(parts: Iterable[bytes]) -> bytes:
    """Write messages as the file exporter of the collector does."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def with_varints(parts: Iterable[bytes]) -> bytes:
    """Write messages as `writeDelimitedTo` does."""
    return b"".join(varint(len(part)) + part for part in parts)


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    written = bytearray()
    rest = number
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*written, rest])


def part(number: int, content: bytes) -> bytes:
    """Return a field that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def metrics(name: str = "http.server.requests") -> bytes:
    """Return a request with every kind of metric."""
    request = ExportMetricsServiceRequest()
    scope = request.resource_metrics.add().scope_metrics.add()
    for kind in ("gauge", "sum", "histogram", "exponential_histogram", "summary"):
        metric = scope.metrics.add(name=name, description="eight by", unit="1")
        getattr(metric, kind).data_points.add(time_unix_nano=5)
    return request.SerializeToString()


def logs() -> bytes:
    """Return a request with a log record of a span."""
    request = ExportLogsServiceRequest()
    record = (
        request.resource_logs.add()
        .scope_logs.add()
        .log_records.add(
            time_unix_nano=5, severity_number=9, severity_text="INFO", trace_id=bytes([1] * 16)
        )
    )
    record.body.string_value = "hello"
    record.attributes.add(key="a").value.string_value = "b"
    return request.SerializeToString()

"""OTLP messages as plain data: what the receiver's accessors give.

Ids are lower-case hex text, times are nanoseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    SummaryDataPoint,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

if TYPE_CHECKING:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

Attributes: TypeAlias = Mapping[str, object]
PointKind: TypeAlias = Literal["gauge", "sum", "histogram", "exponential_histogram", "summary"]

_STATUS: Mapping[int, str] = MappingProxyType(
    {Status.STATUS_CODE_OK: "OK", Status.STATUS_CODE_ERROR: "ERROR"}
)
_SpreadPoint: TypeAlias = HistogramDataPoint | ExponentialHistogramDataPoint | SummaryDataPoint


class ReceivedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a span."""

    name: str
    attributes: Attributes
    time_ns: int


class ReceivedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span, with the resource and the scope that it came under."""

    resource: Attributes
    scope: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str | None
    kind: str
    """`INTERNAL`, `SERVER`, `CLIENT`, `PRODUCER`, `CONSUMER` or `UNSPECIFIED`."""
    attributes: Attributes
    events: tuple[ReceivedEvent, ...]
    status: str
    """`UNSET`, `OK` or `ERROR`."""
    status_message: str
    started_ns: int
    ended_ns: int


class ReceivedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One point of one metric in one export."""

    resource: Attributes
    scope: str
    name: str
    unit: str
    kind: PointKind
    attributes: Attributes
    time_ns: int
    value: float | None = None
    """Of a gauge or a sum; `None` for the kinds that count observations."""
    sum: float | None = None
    """The total of the observations of a histogram or summary."""
    count: int | None = None
    """The number of the observations of a histogram or summary."""


class ReceivedLog(msgspec.Struct, frozen=True, kw_only=True):
    """A log record; ids are empty where it belongs to no span."""

    resource: Attributes
    scope: str
    event_name: str
    severity: str
    body: object
    attributes: Attributes
    trace_id: str
    span_id: str
    time_ns: int


def read_spans(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    """Read the spans of one export."""
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                yield _read_span(span, resource, scoped.scope.name)


def _read_span(span: Span, resource: Attributes, scope: str) -> ReceivedSpan:
    return ReceivedSpan(
        resource=resource,
        scope=scope,
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        attributes=_attributes(span.attributes),
        events=tuple(
            ReceivedEvent(
                name=event.name,
                attributes=_attributes(event.attributes),
                time_ns=event.time_unix_nano,
            )
            for event in span.events
        ),
        status=_STATUS.get(span.status.code, "UNSET"),
        status_message=span.status.message,
        started_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
    )


def read_points(request: ExportMetricsServiceRequest) -> Iterator[ReceivedPoint]:
    """Read the metric points of one export."""
    for group in request.resource_metrics:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_metrics:
            for metric in scoped.metrics:
                yield from _read_metric(metric, resource, scoped.scope.name)


def _read_metric(metric: Metric, resource: Attributes, scope: str) -> Iterator[ReceivedPoint]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    for point in _points(metric):
        value, total, count = _measures(point)
        yield ReceivedPoint(
            resource=resource,
            scope=scope,
            name=metric.name,
            unit=metric.unit,
            kind=kind,
            attributes=_attributes(point.attributes),
            time_ns=point.time_unix_nano,
            value=value,
            sum=total,
            count=count,
        )


def _points(metric: Metric) -> Iterable[NumberDataPoint | _SpreadPoint]:
    return (
        *metric.gauge.data_points,
        *metric.sum.data_points,
        *metric.histogram.data_points,
        *metric.exponential_histogram.data_points,
        *metric.summary.data_points,
    )


def _measures(
    point: NumberDataPoint | _SpreadPoint,
) -> tuple[float | None, float | None, int | None]:
    if not isinstance(point, NumberDataPoint):
        return None, point.sum, point.count
    number = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
    return number, None, None


def read_logs(request: ExportLogsServiceRequest) -> Iterator[ReceivedLog]:
    """Read the log records of one export."""
    for group in request.resource_logs:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_logs:
            for record in scoped.log_records:
                yield ReceivedLog(
                    resource=resource,
                    scope=scoped.scope.name,
                    event_name=record.event_name,
                    severity=record.severity_text,
                    body=_value(record.body),
                    attributes=_attributes(record.attributes),
                    trace_id=record.trace_id.hex(),
                    span_id=record.span_id.hex(),
                    time_ns=record.time_unix_nano,
                )


def _attributes(pairs: Iterable[KeyValue]) -> Attributes:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    plain: object = getattr(value, kind)
    return plain

"""The OTLP receiver as the real OTLP/HTTP exporters see it."""

from __future__ import annotations

import gzip
import http.client
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_loopguard.testing.otlp_receiver import OtlpReceiver, otlp_receiver

if TYPE_CHECKING:
    from otel_loopguard.testing.received import ReceivedPoint, ReceivedSpan

RESOURCE = Resource({"service.name": "agent"})

every_compression = pytest.mark.parametrize(
    "compression", [Compression.NoCompression, Compression.Gzip]
)


def send_spans(receiver: OtlpReceiver, compression: Compression) -> tuple[str, str, str]:
    """Send a failed child and its parent; returns the ids of trace, parent and child as text."""
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{receiver.url}/v1/traces", compression=compression)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("scope.of.spans")
    with tracer.start_as_current_span("parent", kind=trace.SpanKind.CLIENT) as parent:
        parent.set_status(trace.StatusCode.OK)
        child = tracer.start_span("child", attributes={"n": 1, "ok": True, "texts": ("a", "b")})
        child.add_event("loopguard.violation", {"loopguard.rule": "step_budget", "score": 0.5})
        child.set_status(trace.StatusCode.ERROR, "too many")
        child.end()
    provider.shutdown()
    ids = (parent.get_span_context().trace_id, parent.get_span_context().span_id)
    return (
        trace.format_trace_id(ids[0]),
        trace.format_span_id(ids[1]),
        trace.format_span_id(child.get_span_context().span_id),
    )


@every_compression
def test_spans_arrive_whole(compression: Compression) -> None:
    with otlp_receiver() as receiver:
        trace_id, parent_id, child_id = send_spans(receiver, compression)
        spans = {span.name: span for span in receiver.spans}
    assert list(spans) == ["child", "parent"]
    child, parent = spans["child"], spans["parent"]
    assert (child.trace_id, child.span_id, child.parent_id) == (trace_id, child_id, parent_id)
    assert (parent.trace_id, parent.span_id, parent.parent_id) == (trace_id, parent_id, None)
    assert child.attributes == {"n": 1, "ok": True, "texts": ["a", "b"]}
    assert child.attributes["ok"] is True
    assert [(event.name, event.attributes) for event in child.events] == [
        ("loopguard.violation", {"loopguard.rule": "step_budget", "score": 0.5})
    ]
    assert (child.status, child.status_message) == ("ERROR", "too many")
    assert (parent.status, parent.status_message) == ("OK", "")
    assert (child.kind, parent.kind) == ("INTERNAL", "CLIENT")
    assert {(span.scope, span.resource["service.name"]) for span in (child, parent)} == {
        ("scope.of.spans", "agent")
    }
    assert in_order(parent, child)
    assert len(receiver.trace_requests) == 2


def in_order(parent: ReceivedSpan, child: ReceivedSpan) -> bool:
    times = [parent.started_ns, child.started_ns, child.events[0].time_ns]
    return times == sorted(times) and child.events[0].time_ns <= child.ended_ns <= parent.ended_ns


@every_compression
def test_metrics_arrive_as_points(compression: Compression) -> None:
    with otlp_receiver() as receiver:
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(f"{receiver.url}/v1/metrics", compression=compression)
        )
        provider = MeterProvider(
            metric_readers=[reader],
            resource=RESOURCE,
            shutdown_on_exit=False,
            views=[
                View(
                    instrument_name="spread",
                    aggregation=ExponentialBucketHistogramAggregation(),
                )
            ],
        )
        meter = provider.get_meter("scope.of.metrics")
        counter = meter.create_counter("violations", unit="{violation}")
        counter.add(0, {"rule": "a"})
        counter.add(3, {"rule": "b"})
        meter.create_gauge("score").set(0.25)
        for name in ("duration", "spread"):
            histogram = meter.create_histogram(name, unit="s")
            histogram.record(1.5)
            histogram.record(2.5)
        provider.force_flush()
        counter.add(1, {"rule": "b"})
        provider.shutdown()
        points = receiver.metrics
    assert values(points, "violations") == [
        ({"rule": "a"}, "sum", "{violation}", 0),
        ({"rule": "b"}, "sum", "{violation}", 3),
        ({"rule": "a"}, "sum", "{violation}", 0),
        ({"rule": "b"}, "sum", "{violation}", 4),
    ]
    assert values(points, "score")[0] == ({}, "gauge", "", 0.25)
    counted = {(p.name, p.kind, p.value, p.sum, p.count) for p in points if p.unit == "s"}
    assert counted == {
        ("duration", "histogram", None, 4.0, 2),
        ("spread", "exponential_histogram", None, 4.0, 2),
    }
    assert {(p.scope, p.resource["service.name"]) for p in points} == {
        ("scope.of.metrics", "agent")
    }


def values(points: list[ReceivedPoint], name: str) -> list[tuple[object, str, str, float | None]]:
    return [(p.attributes, p.kind, p.unit, p.value) for p in points if p.name == name]


@every_compression
def test_logs_arrive_with_their_bodies(compression: Compression) -> None:
    with otlp_receiver() as receiver:
        provider = LoggerProvider(resource=RESOURCE, shutdown_on_exit=False)
        exporter = OTLPLogExporter(f"{receiver.url}/v1/logs", compression=compression)
        provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
        provider.get_logger("scope.of.logs").emit(
            event_name="loopguard.violation",
            severity_number=SeverityNumber.WARN,
            severity_text="WARN",
            timestamp=1_700_000_000_000_000_000,
            body={"steps": [1, 2], "note": None, "raw": b"\x00"},
            attributes={"loopguard.rule": "step_budget"},
        )
        provider.shutdown()
        (log,) = receiver.logs
    assert log.event_name == "loopguard.violation"
    assert (log.severity, log.time_ns) == ("WARN", 1_700_000_000_000_000_000)
    assert log.body == {"steps": [1, 2], "note": None, "raw": b"\x00"}
    assert log.attributes == {"loopguard.rule": "step_budget"}
    assert (log.scope, log.resource["service.name"]) == ("scope.of.logs", "agent")
    assert (log.trace_id, log.span_id) == ("", "")


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"\xff", {}, 400, "ExportTraceServiceRequest"),
        (b"no gzip", {"content-encoding": "gzip"}, 400, "ExportTraceServiceRequest"),
        (gzip.compress(b"")[:-1], {"content-encoding": "gzip"}, 400, "ExportTraceServiceRequest"),
        (b"", {"content-encoding": "br"}, 415, "'br'"),
        (b"{}", {"content-type": "application/json"}, 415, "'application/json'"),
    ],
    ids=["no message", "no gzip", "cut gzip", "unknown encoding", "JSON"],
)
def test_what_is_no_export_is_refused(
    body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    with otlp_receiver() as receiver:
        address = receiver.url.removeprefix("http://")
        with closing(http.client.HTTPConnection(address)) as connection:
            content_type = {"content-type": "application/x-protobuf"}
            connection.request("POST", "/v1/traces", body, {**content_type, **headers})
            answer = connection.getresponse()
            assert answer.status == status
            assert said in answer.read().decode()
    assert receiver.spans == []

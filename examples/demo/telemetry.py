"""The telemetry of one scene: OpenTelemetry's real SDK and exporter, with the guard or without.

`providers(...)` is what an application would do, and the marked line is all that the guard needs.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from otel_loopguard.processor import LoopGuardSpanProcessor

ENVIRONMENT = {
    # Without it the spans of OpenTelemetry's GenAI packages hold no arguments and no results, and
    # a guard that cannot see them has only its budgets.
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    # Whatever the surroundings say: the demo exports, traces its agents, and talks to loopback.
    "OPENAI_AGENTS_DISABLE_TRACING": "false",
    "OTEL_SDK_DISABLED": "false",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}
"""What the demo sets in its own process."""


class Providers(NamedTuple):
    """Where an instrumentation puts its spans and metrics."""

    tracer: TracerProvider
    meter: MeterProvider


@contextmanager
def providers(service: str, receiver_url: str, *, guarded: bool) -> Generator[Providers]:
    """Export under this service name until the block is left; then all of it has been sent."""
    resource = Resource({SERVICE_NAME: service})
    metric_exporter = OTLPMetricExporter(f"{receiver_url}/v1/metrics")
    meter = MeterProvider([PeriodicExportingMetricReader(metric_exporter)], resource)
    tracer = TracerProvider(ALWAYS_ON, resource)
    span_exporter = OTLPSpanExporter(f"{receiver_url}/v1/traces")
    tracer.add_span_processor(BatchSpanProcessor(span_exporter))
    if guarded:
        # This line is the guard.
        tracer.add_span_processor(LoopGuardSpanProcessor(mode="enforce", meter_provider=meter))
    try:
        yield Providers(tracer, meter)
    finally:
        tracer.shutdown()
        meter.shutdown()

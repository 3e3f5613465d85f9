"""Metrics for Prometheus to fetch, with the exemplars that lead from a violation to its span.

    from otel_loopguard.prometheus import OpenMetricsExporter

    provider = MeterProvider(metric_readers=[OpenMetricsExporter(port=9464)])

Needs the extra `prometheus`. OpenTelemetry's own exporter does the translation; it leaves exemplars
out, and they are put back here.
"""

from __future__ import annotations

try:
    import opentelemetry.exporter.prometheus  # noqa: F401 - missing without the extra
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "otel_loopguard.prometheus needs packages that are not installed: "
        f"pip install 'otel-loopguard[prometheus]' ({error})",
        name=error.name,
    ) from error

from otel_loopguard.prometheus.exporter import OpenMetricsExporter
from otel_loopguard.prometheus.reader import OpenMetricsReader

__all__ = ["OpenMetricsExporter", "OpenMetricsReader"]

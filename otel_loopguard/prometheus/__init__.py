"""Metrics for Prometheus to fetch, with the exemplars that lead from a violation to its span.

    from otel_loopguard.prometheus import OpenMetricsExporter

    provider = MeterProvider(metric_readers=[OpenMetricsExporter(port=9464)])

Needs the extra `prometheus`. OpenTelemetry's own exporter does the translation; it leaves exemplars
out, and they are put back here.
"""

from __future__ import annotations

try:
    from otel_loopguard.prometheus.exporter import OpenMetricsExporter
    from otel_loopguard.prometheus.reader import OpenMetricsReader
except ModuleNotFoundError as error:
    if "prometheus" not in (error.name or ""):
        raise
    raise ModuleNotFoundError(
        f"otel_loopguard.prometheus needs {error.name!r}; "
        "install it with: pip install 'otel-loopguard[prometheus]'",
        name=error.name,
    ) from error

__all__ = ["OpenMetricsExporter", "OpenMetricsReader"]

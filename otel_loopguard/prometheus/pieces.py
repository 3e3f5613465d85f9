"""Collected metrics in pieces of one point each.

Which samples the exporter makes of which point shows nowhere in what it answers, and its order has
changed from version to version. Given one point at a time, all that comes back is of that point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from opentelemetry.sdk.metrics.export import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)

Point: TypeAlias = "NumberDataPoint | HistogramDataPoint"


def pieces(data: MetricsData) -> Iterator[tuple[MetricsData, Point | None]]:
    """Yield metrics of one point each, and that point; `None` where the exporter knows none."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for single, point in _singles(metric):
                    within = ScopeMetrics(scope.scope, [single], scope.schema_url)
                    around = ResourceMetrics(resource.resource, [within], resource.schema_url)
                    yield MetricsData([around]), point


def _singles(metric: Metric) -> Iterator[tuple[Metric, Point | None]]:
    if not isinstance(metric.data, (Gauge, Histogram, Sum)):
        yield metric, None
        return
    found: Any = metric.data
    for point in found.data_points:
        single: Any = replace(found, data_points=[point])
        yield Metric(metric.name, metric.description, metric.unit, single), point

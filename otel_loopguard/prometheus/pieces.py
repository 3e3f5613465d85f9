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
    Sum,
)

Point: TypeAlias = "NumberDataPoint | HistogramDataPoint"


def pieces(data: MetricsData) -> Iterator[tuple[MetricsData, Point | None]]:
    """Yield metrics of one point each, and that point; `None` where the exporter knows none."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for single, point in _singles(metric):
                    alone = replace(scope, metrics=[single])
                    yield MetricsData([replace(resource, scope_metrics=[alone])]), point


def _singles(metric: Metric) -> Iterator[tuple[Metric, Point | None]]:
    found: Any = metric.data
    if not isinstance(found, (Gauge, Histogram, Sum)):
        yield metric, None
        return
    for point in found.data_points:
        yield replace(metric, data=replace(found, data_points=[point])), point

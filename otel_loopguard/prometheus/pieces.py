"""Collected metrics in pieces of one point each.

Which samples the exporter makes of which point shows nowhere in what it answers, and its order has
changed from version to version. Given one point at a time, all that comes back is of that point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

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


class Piece(NamedTuple):
    """One point of a metric."""

    metric: str
    data: MetricsData
    """Holds nothing but the point."""
    point: Point


def pieces(data: MetricsData) -> Iterator[Piece]:
    """Yield every point of sums, gauges and histograms with explicit bounds."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if is_translated(metric):
                    found: Any = metric.data
                    for point in found.data_points:
                        single: Any = replace(found, data_points=[point])
                        alone = Metric(metric.name, metric.description, metric.unit, single)
                        within = ScopeMetrics(scope.scope, [alone], scope.schema_url)
                        around = ResourceMetrics(resource.resource, [within], resource.schema_url)
                        yield Piece(metric.name, MetricsData([around]), point)


def others(data: MetricsData) -> Iterator[tuple[str, str]]:
    """Yield name and kind of the metrics that have no place in the text formats."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if not is_translated(metric):
                    yield metric.name, type(metric.data).__name__


def is_translated(metric: Metric) -> bool:
    """Say whether the stock exporter knows this kind; of others whole scrapes may fail in it."""
    return isinstance(metric.data, (Gauge, Histogram, Sum))

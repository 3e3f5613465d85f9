"""Exemplars: which one a sample gets, and for how long.

The SDK hands each exemplar out once, to the first that collects. A scrape that failed, a look with
a browser or a second Prometheus would take it from all others, so the latest one of a series stays
until there is a newer one, as it does in Prometheus's own client libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import TypeAlias

from opentelemetry import trace
from opentelemetry.sdk.metrics.export import HistogramDataPoint, NumberDataPoint
from prometheus_client.core import Exemplar, Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

Series: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""A sample's name and labels."""

Latest: TypeAlias = dict[Series, Exemplar]


def with_exemplars(
    family: Metric, point: NumberDataPoint | HistogramDataPoint, before: Latest, latest: Latest
) -> Iterator[Sample]:
    """Yield the samples of one point with their exemplars, and note these in `latest`.

    Args:
        family: what the exporter has made of the point.
        point: where the exemplars are.
        before: the exemplars of the collection before.
        latest: those of this one.

    """
    found = list(_readable(point))
    below = -inf
    for sample in family.samples:
        if family.type == "counter" and sample.name == f"{family.name}_total":
            limit, shown = inf, sample
        elif family.type == "histogram" and "le" in sample.labels:
            limit = float(sample.labels["le"])
            # OpenMetrics wants `5.0` where bounds that are whole numbers are written as `5`.
            shown = sample._replace(labels={**sample.labels, "le": floatToGoString(limit)})
        else:
            yield sample
            continue
        series = (shown.name, frozenset(shown.labels.items()))
        fitting = [each for each in found if below < each.value <= limit]
        if series in before:
            fitting.append(before[series])
        below = limit if family.type == "histogram" else below
        if fitting:
            latest[series] = max(fitting, key=_moment)
            shown = shown._replace(exemplar=latest[series])
        yield shown


def _readable(point: NumberDataPoint | HistogramDataPoint) -> Iterable[Exemplar]:
    """Yield the exemplars that name a span.

    Their labels are the two ids, 63 of the 128 characters that OpenMetrics allows. Attributes that
    a view has dropped from the series stay out: nobody has bounded their values.
    """
    for each in point.exemplars or ():
        if each.trace_id and each.span_id:
            labels = {
                "trace_id": trace.format_trace_id(each.trace_id),
                "span_id": trace.format_span_id(each.span_id),
            }
            yield Exemplar(labels, float(each.value), each.time_unix_nano / 1e9)


def _moment(exemplar: Exemplar) -> float:
    return float(exemplar.timestamp or 0)

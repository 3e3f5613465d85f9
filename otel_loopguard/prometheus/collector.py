"""What a registry of `prometheus_client` asks for metrics: the stock translation, with exemplars."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from opentelemetry.sdk.metrics.export import MetricsData
from prometheus_client.core import Metric

from otel_loopguard.forks import renew_in_children
from otel_loopguard.prometheus.exemplars import Latest, with_exemplars
from otel_loopguard.prometheus.pieces import pieces

_logger = logging.getLogger(__name__)


class Translator(Protocol):
    """What is used of the stock exporter's collector."""

    def add_metrics_data(self, metrics_data: MetricsData) -> None:
        """Take metrics to be translated."""

    def collect(self) -> Iterable[Metric]:
        """Return the translation of what was taken."""
        ...


class ExemplarCollector:
    """Collects metrics, has them translated point by point, and adds exemplars.

    Args:
        pull: has the metrics collected, in the calling thread, and returns them.
        translator: the stock exporter's collector, with nothing left to call.

    """

    def __init__(self, pull: Callable[[], MetricsData | None], translator: Translator) -> None:
        self._pull = pull
        self._translator = translator
        self._latest: Latest = {}
        self._clashing: set[str] = set()
        self._lock = threading.RLock()
        renew_in_children(self, "_lock")

    def describe(self) -> Iterable[Metric]:
        """Return nothing: a registry would collect to learn the names, and none are fixed."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return every family once, each with all its samples together."""
        data = self._pull()  # it asks the callbacks of gauges: not under the lock
        if data is None:
            return []
        with self._lock:
            return self._translated(data)

    def _translated(self, data: MetricsData) -> list[Metric]:
        families: dict[str, Metric] = {}
        latest: Latest = {}
        for piece, point in pieces(data):
            self._translator.add_metrics_data(piece)
            for made in self._translator.collect():
                family = self._family(families, made)
                if family is None or (made.type == "info" and family.samples):
                    continue  # each piece brings `target_info` along
                samples = made.samples
                if point is not None:
                    samples = list(with_exemplars(made, point, self._latest, latest))
                family.samples.extend(samples)
        self._latest = latest
        return list(families.values())

    def _family(self, families: dict[str, Metric], made: Metric) -> Metric | None:
        """Return the family that these samples belong to; `None` if it is of another type.

        Two scopes may describe a metric in two ways. A second head of a family, as the stock
        exporter writes then, is no OpenMetrics.
        """
        family = families.get(made.name)
        if family is None:
            family = Metric(made.name, made.documentation, made.type, made.unit)
            families[made.name] = family
        if family.type == made.type:
            return family
        if made.name not in self._clashing:
            self._clashing.add(made.name)
            _logger.warning(
                "The metric %r is a %s and, from another instrumentation scope, a %s: the second "
                "is left out, since Prometheus knows one type per name. Rename one by a View.",
                *(made.name, family.type, made.type),
            )
        return None

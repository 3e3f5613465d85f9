"""What a registry of `prometheus_client` asks for metrics: stock translation, and exemplars."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from opentelemetry.sdk.metrics.export import MetricsData
from prometheus_client.core import Metric

from otel_loopguard.forks import renew_in_children
from otel_loopguard.prometheus.exemplars import Latest, with_exemplars
from otel_loopguard.prometheus.pieces import Piece, others, pieces

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
        self._left_out: set[str] = set()
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
        for piece in pieces(data):
            for made in self._translation(piece):
                family = families.get(made.name)
                if family is None:
                    family = Metric(made.name, made.documentation, made.type, made.unit)
                    families[made.name] = family
                elif family.type != made.type:
                    # Two scopes, say. A second head of the family, as the stock exporter writes
                    # then, is no OpenMetrics.
                    self._leave_out(piece.metric, f"it is a {family.type} and a {made.type}")
                    continue
                if made.type != "info":
                    found = with_exemplars(made, piece.point, self._latest, latest)
                    family.samples.extend(found)
                elif not family.samples:  # each piece brings `target_info` along
                    family.samples.extend(made.samples)
        for name, kind in others(data):
            self._leave_out(name, f"there is no {kind} in the formats that are served")
        self._latest = latest
        return list(families.values())

    def _translation(self, piece: Piece) -> list[Metric]:
        try:
            self._translator.add_metrics_data(piece.data)
            return list(self._translator.collect())
        except Exception as error:  # noqa: BLE001 - one metric must not keep all others out
            self._leave_out(piece.metric, repr(error))
            return []

    def _leave_out(self, metric: str, reason: str) -> None:
        if metric not in self._left_out:
            self._left_out.add(metric)
            _logger.warning(
                "Prometheus does not get all of the metric %r: %s. Change it by a View.",
                *(metric, reason),
            )

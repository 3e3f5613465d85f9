"""A metric reader whose metrics stand in a registry of `prometheus_client`, exemplars and all.

What is used of the stock exporter beyond its public names is `_collector` of its reader, with
`add_metrics_data`, `collect` and `_callback`: the same from 0.51b0 to 0.66b2.
"""

from __future__ import annotations

import inspect
import logging
import threading
from contextlib import suppress
from typing import Any

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics.export import MetricsData
from prometheus_client import REGISTRY, CollectorRegistry

from otel_loopguard.prometheus.collector import ExemplarCollector

_logger = logging.getLogger(__name__)

_TAKES_REGISTRY = "registry" in inspect.signature(PrometheusMetricReader.__init__).parameters
"""Older versions know the global registry only."""


class OpenMetricsReader(PrometheusMetricReader):
    """The stock reader with exemplars, for an application that serves its metrics itself.

    Mount `prometheus_client.make_wsgi_app(reader.registry)` or `make_asgi_app`: OpenMetrics, which
    has exemplars, for those that ask for it, as Prometheus does; plain text for all others.

    Args:
        registry: where the metrics appear; the global one of `prometheus_client` by default. A
            second meter provider in one process needs a registry of its own.
        options: those of the stock reader in its installed version, such as `disable_target_info`,
            and `scope_info_enabled` from 0.64b0 on.

    """

    def __init__(self, *, registry: CollectorRegistry = REGISTRY, **options: Any) -> None:
        stock_registry = registry if _TAKES_REGISTRY else REGISTRY
        if _TAKES_REGISTRY:
            options = {**options, "registry": registry}
        super().__init__(**options)
        self.registry: CollectorRegistry = stock_registry
        """Where the metrics appear."""
        self._received = threading.local()
        self._with_exemplars = self._take_over()
        if self._with_exemplars is not None:
            stock_registry.unregister(self._collector)
            self.registry = registry
            registry.register(self._with_exemplars)

    def _take_over(self) -> ExemplarCollector | None:
        """Put a collector in the place of the stock one, if that is as it is known."""
        stock: Any = getattr(self, "_collector", None)
        known = all(hasattr(stock, name) for name in ("add_metrics_data", "collect", "_callback"))
        if not known:
            _logger.warning(
                "Metrics have no exemplars: this version of opentelemetry-exporter-prometheus is "
                "built in another way than those up to 0.66b2. Look for a newer otel-loopguard, or "
                "take an older exporter."
            )
            return None
        setattr(stock, "_callback", None)  # noqa: B010 - it has no public name; would collect anew
        return ExemplarCollector(self._pull, stock)

    def _pull(self) -> MetricsData | None:
        """Collect; the SDK hands over in this thread, so scrapes at one time keep theirs apart."""
        self._received.data = None
        self.collect()
        data: MetricsData | None = self._received.data
        self._received.data = None
        return data

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> None:
        if self._with_exemplars is None:
            stock: Any = super()
            stock._receive_metrics(metrics_data, timeout_millis, **kwargs)  # noqa: SLF001 - our own
        else:
            self._received.data = metrics_data

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Do nothing: who scrapes gets what there is. Exemplars are handed over once only."""
        return self._with_exemplars is not None or super().force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Take the metrics out of the registry."""
        if self._with_exemplars is None:
            stock: Any = super()
            stock.shutdown(timeout_millis, **kwargs)
        else:
            with suppress(KeyError):  # a second shutdown
                self.registry.unregister(self._with_exemplars)

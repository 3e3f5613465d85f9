"""The reader with a server of its own, as `OTEL_METRICS_EXPORTER=loopguard_prometheus` makes it."""

from __future__ import annotations

import logging
import os
from typing import Any

from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_PROMETHEUS_HOST,
    OTEL_EXPORTER_PROMETHEUS_PORT,
)
from prometheus_client import REGISTRY, CollectorRegistry

from otel_loopguard.prometheus.reader import OpenMetricsReader
from otel_loopguard.prometheus.server import PATH, MetricsServer

_logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
"""Not `localhost`, as OpenTelemetry has it: where that is `::1` first, 127.0.0.1 finds nobody."""

PORT = 9464
"""OpenTelemetry's default."""


class OpenMetricsExporter(OpenMetricsReader):
    """Serves metrics and their exemplars at `/metrics` for Prometheus to fetch.

    A port that is taken stops no application: one error in the log says so, and metrics go on.

    Args:
        host: where to listen; by default what `OTEL_EXPORTER_PROMETHEUS_HOST` says, or 127.0.0.1.
        port: 0 takes a free one; by default what `OTEL_EXPORTER_PROMETHEUS_PORT` says, or 9464.
        registry: as for `OpenMetricsReader`.
        options: likewise.

    """

    def __init__(
        self,
        *,
        host: str | None = None,
        port: int | None = None,
        registry: CollectorRegistry = REGISTRY,
        **options: Any,
    ) -> None:
        super().__init__(registry=registry, **options)
        self._server = _serving(
            self.registry,
            host or os.environ.get(OTEL_EXPORTER_PROMETHEUS_HOST, "").strip() or HOST,
            os.environ.get(OTEL_EXPORTER_PROMETHEUS_PORT, "").strip() or PORT
            if port is None
            else port,
        )

    @property
    def port(self) -> int | None:
        """The port that is listened on; `None` where there is none."""
        return None if self._server is None else self._server.port

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Free the port, and take the metrics out of the registry."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        super().shutdown(timeout_millis, **kwargs)


def _serving(registry: CollectorRegistry, host: str, port: int | str) -> MetricsServer | None:
    try:
        return MetricsServer(registry, host, int(port))
    except (OSError, OverflowError, ValueError) as error:
        _logger.error(  # noqa: TRY400 - one line: the place says nothing more
            "No metrics are served at http://%s:%s%s (%s: %s); they are recorded all the same. Name "
            "another port or host by `port`, `host`, %s or %s, or give each process its own.",
            *(host, port, PATH, type(error).__name__, error),
            *(OTEL_EXPORTER_PROMETHEUS_PORT, OTEL_EXPORTER_PROMETHEUS_HOST),
        )
        return None

"""A meter provider whose metrics are read as OpenMetrics, by `prometheus_client`'s own parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.view import View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition, parser
from prometheus_client.samples import Sample

from otel_loopguard.prometheus import OpenMetricsReader
from tests._tracing import FixedIds


class Exposed:
    """A reader on a registry of its own, a provider with it, and a tracer beside."""

    def __init__(
        self,
        sampler: Sampler = ALWAYS_ON,
        *,
        registry: CollectorRegistry | None = None,
        views: Sequence[View] = (),
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self.reader = OpenMetricsReader(registry=self.registry)
        self.meters = MeterProvider(
            [self.reader],
            Resource({"service.name": "agents"}),
            shutdown_on_exit=False,
            views=views,
        )
        self.meter = self.meters.get_meter("scope")
        self.traces = TracerProvider(
            sampler=sampler, id_generator=FixedIds(), shutdown_on_exit=False
        )
        self.tracer = self.traces.get_tracer("agents")

    def text(self) -> str:
        """What is served as OpenMetrics now, without the scope, which older readers do not name."""
        return without_scope(openmetrics(self.registry))

    def families(self) -> dict[str, Metric]:
        """What the strict parser reads in it, by name."""
        return parsed(self.text())

    def samples(self, family: str, suffix: str) -> list[Sample]:
        """The samples of a family that end so."""
        found = self.families()[family].samples
        return [each for each in found if each.name == family + suffix]

    def shutdown(self) -> None:
        self.meters.shutdown()
        self.traces.shutdown()


def openmetrics(registry: CollectorRegistry) -> str:
    """What a registry is served as to those who ask for OpenMetrics."""
    library: Any = exposition
    text: bytes = library.generate_latest(registry)
    return text.decode()


def without_scope(text: str) -> str:
    bare = re.sub(r',?otel_scope_\w+="[^"]*"', "", text)
    return bare.replace("{,", "{").replace("{}", "")


def parsed(text: str) -> dict[str, Metric]:
    library: Any = parser
    families: list[Metric] = list(library.text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a family has two heads"
    return {family.name: family for family in families}


def span_of(sample: Sample) -> str | None:
    """The span that a sample's exemplar names."""
    labels: Mapping[str, str] = sample.exemplar.labels if sample.exemplar else {}
    return labels.get("span_id")

"""The metric instruments, made of the registry's definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeAlias
from weakref import WeakKeyDictionary

from opentelemetry import metrics as api
from opentelemetry.metrics import (
    CallbackOptions,
    Histogram,
    Meter,
    MeterProvider,
    Observation,
    get_meter,
    get_meter_provider,
)
from opentelemetry.util.types import AttributeValue

from otel_loopguard.registry import metrics, names
from otel_loopguard.registry.metric import Metric
from otel_loopguard.version import VERSION

SCOPE = "otel_loopguard"
"""The instrumentation scope of all that the guard writes."""


class Stores(Protocol):
    """The bounded stores of one guard."""

    def evicted(self) -> Mapping[str, int]:
        """Return how much was forgotten because a store was full, by store."""
        ...


Information: TypeAlias = Mapping[str, AttributeValue]
"""The attributes of a guard at work."""

Callback: TypeAlias = Callable[[CallbackOptions], list[Observation]]

_AT_WORK: WeakKeyDictionary[Stores, tuple[MeterProvider | None, Information]] = WeakKeyDictionary()
"""The guards at work, each with where its metrics go and its attributes. A meter asks the callback
that came first for all of them, and keeps it for ever: it must keep no guard."""


class Instruments:
    """The instruments of one guard.

    Args:
        provider: makes the meter; the global one if `None`.
        info: attributes of the guard at work.
        stores: those of the guard.

    """

    def __init__(self, provider: MeterProvider | None, info: Information, stores: Stores) -> None:
        meter = get_meter(SCOPE, VERSION, provider)
        self.violations = _counter(meter, metrics.VIOLATIONS)
        self.by_tool = _counter(meter, metrics.VIOLATIONS_BY_TOOL)
        self.runs = _counter(meter, metrics.RUNS)
        self.aborts = _counter(meter, metrics.ABORTS)
        self.abort_requests = _counter(meter, metrics.ABORT_REQUESTS)
        self.steps_after_trip = _counter(meter, metrics.RUN_STEPS_AFTER_TRIP)
        self.hints = _counter(meter, metrics.HINTS)
        self.errors = _counter(meter, metrics.ERRORS)
        self.gaps = _counter(meter, metrics.GAPS)
        self.reloads = _counter(meter, metrics.POLICY_RELOADS)
        self.active = meter.create_up_down_counter(*_described(metrics.RUN_ACTIVE))
        self.steps = _histogram(meter, metrics.RUN_STEPS)
        self.duration = _histogram(meter, metrics.RUN_DURATION)
        self.after_trip = _histogram(meter, metrics.RUN_DURATION_AFTER_TRIP)
        self.tokens = _histogram(meter, metrics.RUN_TOKEN_USAGE)
        self.time_to_stop = _histogram(meter, metrics.ABORT_DURATION)
        self._stores = stores
        _AT_WORK[stores] = (provider, info)

        def at_work(_: CallbackOptions) -> list[Observation]:
            return [Observation(1, each) for _, each in _at_work(provider)]

        def evicted(_: CallbackOptions) -> list[Observation]:
            counts: Counter[str] = Counter()
            for each, _info in _at_work(provider):
                counts.update(each.evicted())
            return [Observation(n, {names.STORE: store}) for store, n in counts.items()]

        _observe(meter, metrics.INFO, at_work)
        _observe(meter, metrics.EVICTIONS, evicted)

    def leave(self) -> None:
        """Take the guard out of those at work."""
        _AT_WORK.pop(self._stores, None)


def _described(metric: Metric) -> tuple[str, str, str]:
    return metric.name, metric.unit, metric.description


def _counter(meter: Meter, metric: Metric) -> api.Counter:
    return meter.create_counter(*_described(metric))


def _histogram(meter: Meter, metric: Metric) -> Histogram:
    return meter.create_histogram(
        *_described(metric), explicit_bucket_boundaries_advisory=metric.buckets
    )


def _observe(meter: Meter, metric: Metric, callback: Callback) -> None:
    """Make an instrument that is asked when metrics are collected."""
    make = {
        "counter": meter.create_observable_counter,
        "updowncounter": meter.create_observable_up_down_counter,
        "gauge": meter.create_observable_gauge,
    }[metric.kind]
    make(metric.name, [callback], metric.unit, metric.description)


def _at_work(
    provider: MeterProvider | None,
) -> Iterator[tuple[Stores, Information]]:
    """Yield the guards whose metrics go to a provider."""
    one_for_all = get_meter_provider()
    for stores, (given, info) in list(_AT_WORK.items()):
        if (given or one_for_all) is (provider or one_for_all):
            yield stores, info

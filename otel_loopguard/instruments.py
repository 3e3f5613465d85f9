"""The metric instruments, made of the registry's definitions."""

from __future__ import annotations

from opentelemetry import metrics as api
from opentelemetry.metrics import Histogram, Meter, MeterProvider, get_meter

from otel_loopguard import observations
from otel_loopguard.observations import Callback, Information, Watched
from otel_loopguard.registry import metrics
from otel_loopguard.registry.metric import Metric
from otel_loopguard.version import VERSION

SCOPE = "otel_loopguard"
"""The instrumentation scope of all that the guard writes."""


class Instruments:
    """The instruments of one guard.

    Args:
        provider: makes the meter; the global one if `None`.
        info: attributes of the guard at work.
        watched: its runs.

    """

    def __init__(self, provider: MeterProvider | None, info: Information, watched: Watched) -> None:
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
        self.steps = _histogram(meter, metrics.RUN_STEPS)
        self.duration = _histogram(meter, metrics.RUN_DURATION)
        self.after_trip = _histogram(meter, metrics.RUN_DURATION_AFTER_TRIP)
        self.tokens = _histogram(meter, metrics.RUN_TOKEN_USAGE)
        self.cost = _histogram(meter, metrics.RUN_COST)
        self.guard_duration = _histogram(meter, metrics.GUARD_DURATION)
        self.time_to_stop = _histogram(meter, metrics.ABORT_DURATION)
        self._watched = watched
        observations.begin(watched, provider, info)
        for metric, callback in observations.callbacks(provider).items():
            _observe(meter, metric, callback)

    def leave(self) -> None:
        """Take the guard out of those at work."""
        observations.leave(self._watched)


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

"""The metric instruments: one line each, named and described in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakMethod

from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.util.types import AttributeValue

from otel_loopguard import semconv

_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600)
_SECONDS_TO_STOP = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30)
_TOKENS = (100, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000)


class Instruments:
    """The instruments of one guard.

    Args:
        meter: makes them.
        info: attributes of the guard at work.
        evictions: a method of the guard's that says how much was forgotten, by store, because
            the store was full. Nothing is told of a guard that is there no more.

    """

    def __init__(
        self,
        meter: Meter,
        info: Mapping[str, AttributeValue],
        evictions: Callable[[], Mapping[str, int]],
    ) -> None:
        counter, histogram = meter.create_counter, meter.create_histogram
        self.violations = counter(
            semconv.METRIC_VIOLATIONS, "{violation}", "Broken rules, once per level and run"
        )
        self.by_tool = counter(
            semconv.METRIC_VIOLATIONS_BY_TOOL, "{violation}", "Rules broken by tool calls"
        )
        self.runs = counter(semconv.METRIC_RUNS, "{run}", "Runs that ended")
        self.aborts = counter(semconv.METRIC_ABORTS, "{abort}", "What became of stopping runs")
        self.abort_requests = counter(
            semconv.METRIC_ABORT_REQUESTS, "{request}", "What was asked to stop runs"
        )
        self.steps_after_trip = counter(
            semconv.STEPS_AFTER_TRIP, "{step}", "Steps that started after the trip and happened"
        )
        self.errors = counter(semconv.METRIC_ERRORS, "{error}", "Faults inside the guard")
        self.gaps = counter(
            semconv.METRIC_GAPS, "{gap}", "What rules look at and steps did not show"
        )
        self.active = meter.create_up_down_counter(
            semconv.METRIC_RUN_ACTIVE, "{run}", "Runs that go on"
        )
        self.steps = histogram(
            semconv.RUN_STEPS,
            "{step}",
            "Steps of a run",
            explicit_bucket_boundaries_advisory=_STEPS,
        )
        self.duration = histogram(
            semconv.METRIC_RUN_DURATION,
            "s",
            "Duration of a run",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.after_trip = histogram(
            semconv.METRIC_AFTER_TRIP,
            "s",
            "Time from the trip of a run to its end",
            explicit_bucket_boundaries_advisory=_SECONDS_TO_STOP,
        )
        self.tokens = histogram(
            semconv.METRIC_RUN_TOKEN_USAGE,
            "{token}",
            "Tokens of a run",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self.time_to_stop = histogram(
            semconv.METRIC_ABORT_DURATION,
            "s",
            "Time from a trip to the stop",
            explicit_bucket_boundaries_advisory=_SECONDS_TO_STOP,
        )
        # The meter keeps what it asks for ever; it must not keep the guard as well.
        of_guard = WeakMethod(evictions)

        def at_work(_: CallbackOptions) -> list[Observation]:
            return [] if of_guard() is None else [Observation(1, info)]

        def evicted(_: CallbackOptions) -> list[Observation]:
            ask = of_guard()
            counts = {} if ask is None else ask()
            return [Observation(n, {semconv.STORE: store}) for store, n in counts.items()]

        meter.create_observable_gauge(semconv.METRIC_INFO, [at_work], "1", "The guard at work")
        meter.create_observable_counter(
            semconv.METRIC_EVICTIONS,
            [evicted],
            "{eviction}",
            "What was forgotten because a store was full",
        )

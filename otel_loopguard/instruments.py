"""The metric instruments: one line each, named and described in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias
from weakref import WeakKeyDictionary

from opentelemetry.metrics import (
    CallbackOptions,
    MeterProvider,
    Observation,
    get_meter,
    get_meter_provider,
)
from opentelemetry.util.types import AttributeValue

from otel_loopguard import semconv
from otel_loopguard.version import VERSION

_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600)
_SECONDS_TO_STOP = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30)
_TOKENS = (100, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000)


SCOPE = "otel_loopguard"
"""The instrumentation scope of all that the guard writes."""


class Stores(Protocol):
    """The bounded stores of one guard."""

    def evicted(self) -> Mapping[str, int]:
        """Return how much was forgotten because a store was full, by store."""
        ...


Information: TypeAlias = Mapping[str, AttributeValue]
"""The attributes of a guard at work."""

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
        self.hints = counter(
            semconv.METRIC_HINTS, "{hint}", "Hints that models were given before it was too late"
        )
        self.errors = counter(semconv.METRIC_ERRORS, "{error}", "Faults inside the guard")
        self.gaps = counter(
            semconv.METRIC_GAPS, "{gap}", "What rules look at and steps did not show"
        )
        self.reloads = counter(
            semconv.METRIC_RELOADS, "{reload}", "What became of policy files that have changed"
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
        self._stores = stores
        _AT_WORK[stores] = (provider, info)

        def at_work(_: CallbackOptions) -> list[Observation]:
            return [Observation(1, each) for _, each in _at_work(provider)]

        def evicted(_: CallbackOptions) -> list[Observation]:
            counts: Counter[str] = Counter()
            for each, _info in _at_work(provider):
                counts.update(each.evicted())
            return [Observation(n, {semconv.STORE: store}) for store, n in counts.items()]

        meter.create_observable_gauge(semconv.METRIC_INFO, [at_work], "1", "The guard at work")
        meter.create_observable_counter(
            semconv.METRIC_EVICTIONS,
            [evicted],
            "{eviction}",
            "What was forgotten because a store was full",
        )

    def leave(self) -> None:
        """Take the guard out of those at work."""
        _AT_WORK.pop(self._stores, None)


def _at_work(
    provider: MeterProvider | None,
) -> Iterator[tuple[Stores, Information]]:
    """Yield the guards whose metrics go to a provider."""
    one_for_all = get_meter_provider()
    for stores, (given, info) in list(_AT_WORK.items()):
        if (given or one_for_all) is (provider or one_for_all):
            yield stores, info

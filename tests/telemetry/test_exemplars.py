"""Which span an exemplar names, with the filter that the SDK has unless it is told otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, StaticSampler

from otel_loopguard import AbortRequest
from otel_loopguard.registry.metrics import METRICS
from tests._tracing import ONE_RULE, Traced, traced

OF_THE_RUN = (
    "loopguard.runs",
    "loopguard.run.steps",
    "loopguard.run.duration",
    "loopguard.run.token.usage",
)
OF_THE_TRIP = (
    "loopguard.violations",
    "loopguard.violations.by_tool",
    "loopguard.run.duration_after_trip",
    "loopguard.abort.requests",
    "loopguard.aborts",
    "loopguard.abort.duration",
)
READ = tuple(metric.name for metric in METRICS if metric.observed)

RECORDED = StaticSampler(Decision.RECORD_ONLY)


def hook(_request: AbortRequest) -> None:
    """Be delivered."""


def loop(process: Traced) -> None:
    """Let an agent loop in the span of a web request, which is not the run's."""
    process.guard(ONE_RULE, abort_hooks=[hook], abort=(), mode="enforce")
    with process.tracer.start_as_current_span("web request"), process.agent():
        process.work(6)


def named(process: Traced, *metrics: str) -> Mapping[str, set[str]]:
    """Return the spans that exemplars point to, by metric: the how manieth of which name."""
    seen: Counter[str] = Counter()
    spans: dict[tuple[int, int], str] = {}
    for span in process.spans:
        if span.context is not None:
            seen[span.name] += 1
            spans[span.context.trace_id, span.context.span_id] = f"{span.name} {seen[span.name]}"
    data = process.reader.get_metrics_data()
    found = {
        each.name: {
            spans.get((exemplar.trace_id, exemplar.span_id), "one that goes on")
            for point in each.data.data_points
            for exemplar in getattr(point, "exemplars", ())
            if exemplar.span_id
        }
        for resource in (() if data is None else data.resource_metrics)
        for scope in resource.scope_metrics
        for each in scope.metrics
    }
    return {name: found[name] for name in metrics}


def test_what_a_run_has_taken_names_its_topmost_span(process: Traced) -> None:
    loop(process)

    expected = {metric: {"invoke_agent scout 1"} for metric in OF_THE_RUN}
    assert named(process, *OF_THE_RUN) == expected


def test_what_became_of_stopping_it_names_the_span_that_tripped_it(process: Traced) -> None:
    loop(process)

    expected = {metric: {"execute_tool search 5"} for metric in OF_THE_TRIP}
    both = {"execute_tool search 3", "execute_tool search 5"}  # it was told of as a warning first
    told = dict.fromkeys(("loopguard.violations", "loopguard.violations.by_tool"), both)
    assert named(process, *OF_THE_TRIP, *told) == expected | told


def test_what_stands_at_zero_names_nothing(process: Traced) -> None:
    """Of two that a series is offered chance takes one: zeros must not offer the web request's."""
    loop(process)

    assert named(process, "loopguard.gaps") == {"loopguard.gaps": set()}


def test_what_is_read_when_metrics_are_collected_names_nothing(process: Traced) -> None:
    """Who collects may be traced itself: a request for the metrics is no span of an agent."""
    loop(process)
    with process.tracer.start_as_current_span("GET /metrics"):
        found = named(process, *READ)

    assert found == {metric: set() for metric in READ}


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, RECORDED], ids=["dropped", "recorded-only"])
def test_what_is_not_exported_is_named_by_no_exemplar(sampler: Sampler) -> None:
    with traced(sampler) as process:
        loop(process)
        data = process.reader.get_metrics_data()

    assert data is not None
    assert [
        exemplar
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        for exemplar in getattr(point, "exemplars", ())
    ] == []

"""What is registered is what is written: over runs that trip everything, all of it and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard import RunAborted, guarded_run, open_runs
from otel_loopguard.observations import callbacks
from otel_loopguard.registry import names
from otel_loopguard.registry.metric import Metric
from otel_loopguard.registry.metrics import METRICS
from scripts.telemetry_registry import Group, read
from tests._tracing import Traced
from tests.telemetry.test_logs import EVENTS_EXIST

POLICY = """
steer = true

[limits]
max_llm_calls = 4

[rules]
repeated_result = {{warn = 2, abort = {abort}}}

[usage.price]
input_per_m_usd = 1.0
output_per_m_usd = 1.0
"""


def hook(_request: object) -> None:
    """Be delivered."""


@pytest.fixture
def told(process: Traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traced:
    """Let everything happen that is told of."""
    monkeypatch.setattr(open_runs, "RUNS", 2)
    file = tmp_path / "loopguard.toml"
    file.write_text(POLICY.format(abort=3))
    guard = process.guard(file, mode="enforce", abort_hooks=[hook])
    for _ in range(12):  # spans that are nobody's step: the guard takes time for these too
        with process.tracer.start_as_current_span("GET"):
            pass
    with pytest.raises(RunAborted), guarded_run(), process.agent():
        process.work(2)
        guard.checkpoints.hint()
        process.work(1)
        while True:
            process.turn()
    with guarded_run(), process.agent():  # what is vetoed says so on its span
        process.work(3)
        with pytest.raises(RunAborted):
            veto(process)
    with guarded_run(), process.agent(), guarded_run(), process.agent(), guarded_run():
        process.work(1)  # too many runs: one is evicted
    guard._fault(ZeroDivisionError())  # pyright: ignore[reportPrivateUsage]
    return process


def veto(process: Traced) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        names.VETOABLE: True,
    }
    with process.tracer.start_as_current_span("execute_tool search", attributes=attributes):
        raise AssertionError("the call was made")


def collected(process: Traced) -> Mapping[str, Any]:
    data = process.reader.get_metrics_data()
    return {
        metric.name: metric
        for resource in (() if data is None else data.resource_metrics)
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def kind_of(written: Any) -> str:
    kind = type(written.data).__name__
    if kind == "Sum":
        return "counter" if written.data.is_monotonic else "updowncounter"
    return kind.lower()


def as_registered(metric: Metric) -> tuple[object, ...]:
    return metric.kind, metric.unit, metric.description, set(metric.attributes), metric.buckets


def as_written(metric: Any) -> tuple[object, ...]:
    points = metric.data.data_points
    return (
        kind_of(metric),
        metric.unit,
        metric.description,
        {key for point in points for key in point.attributes},
        next((tuple(p.explicit_bounds) for p in points if hasattr(p, "explicit_bounds")), ()),
    )


def test_metrics_are_those_that_are_registered(told: Traced) -> None:
    written = collected(told)

    assert {name: as_written(metric) for name, metric in written.items()} == {
        metric.name: as_registered(metric) for metric in METRICS
    }


def test_what_is_read_when_metrics_are_collected_is_registered_so() -> None:
    assert {metric for metric in METRICS if metric.observed} == set(callbacks(None))


def test_values_are_those_that_are_registered(told: Traced) -> None:
    known = {name: set(each.values) for name, each in read().attributes.items() if each.values}
    written = [
        (key, value)
        for metric in collected(told).values()
        for point in metric.data.data_points
        for key, value in point.attributes.items()
    ]
    written += [pair for span in told.spans for pair in (span.attributes or {}).items()]
    written += [pair for _, _, event in told.events() for pair in event.items()]

    assert {(k, v) for k, v in written if k in known and v not in known[k]} == set()


def keys(group: Group) -> set[str]:
    return {each.ref for each in group.attributes}


def ours(found: Iterable[str]) -> set[str]:
    return {key for key in found if key.startswith("loopguard.")}


def test_the_event_and_the_log_event_are_as_registered(told: Traced) -> None:
    (registered,) = read().of_type("event")
    on_spans = [event for _, name, event in told.events() if name == registered.name]

    assert {key for event in on_spans for key in event} == keys(registered)
    assert {name for _, name, _ in told.events() if name.startswith("loopguard.")} == {
        registered.name
    }
    required = {e.ref for e in registered.attributes if e.requirement_level == "required"}
    assert [event for event in on_spans if not required <= set(event)] == []
    logged = [dict(record.attributes) for record in told.sink.records if record.event_name]
    assert logged == (on_spans if EVENTS_EXIST else [])


def test_attributes_of_spans_are_as_registered(told: Traced) -> None:
    registry = read()
    written = [span.attributes or {} for span in told.spans]
    tops = [each for each in written if names.TRIPPED in each]
    vetoed = [each for each in written if names.STEP_PREVENTED in each]

    assert ours(key for each in tops for key in each) == keys(registry.group("loopguard.run.span"))
    prevented = ours(key for each in vetoed for key in each) - {names.VETOABLE}
    assert prevented == ours(keys(registry.group("loopguard.prevented.span")))
    given = {e.id for e in registry.group("registry.loopguard.given").attributes}
    everywhere = ours(key for each in written for key in each)
    assert everywhere <= keys(registry.group("loopguard.run.span")) | prevented | given

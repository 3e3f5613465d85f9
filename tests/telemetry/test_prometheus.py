"""Metrics as Prometheus reads them, with the exemplars that lead to the offending span."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from prometheus_client import REGISTRY
from prometheus_client import generate_latest as plain_text

from otel_loopguard.prometheus import OpenMetricsReader
from tests._openmetrics import Exposed, parsed, span_of
from tests._tracing import ONE_RULE, Traced


@pytest.fixture
def exposed() -> Generator[Exposed]:
    each = Exposed()
    yield each
    each.shutdown()


def span_id(number: int) -> str:
    return f"{number:016x}"


SHOWN = """\
# HELP target Target metadata
# TYPE target info
target_info{service_name="agents"} 1.0
# HELP loopguard_violations Broken rules
# TYPE loopguard_violations counter
loopguard_violations_total{loopguard_rule="sweep",loopguard_tripped="true"} 1.0 \
# {span_id="0000000000000001",trace_id="00000000000000000000000000000001"} 1.0 WHEN
loopguard_violations_total{loopguard_rule="sweep",loopguard_tripped="false"} 0.0
# HELP loopguard_run_duration_seconds Duration of a run
# TYPE loopguard_run_duration_seconds histogram
# UNIT loopguard_run_duration_seconds seconds
loopguard_run_duration_seconds_bucket{le="0.5"} 0.0
loopguard_run_duration_seconds_bucket{le="5.0"} 1.0 \
# {span_id="0000000000000001",trace_id="00000000000000000000000000000001"} 2.5 WHEN
loopguard_run_duration_seconds_bucket{le="+Inf"} 1.0
loopguard_run_duration_seconds_count 1.0
loopguard_run_duration_seconds_sum 2.5
# HELP loopguard_run_active Runs that go on
# TYPE loopguard_run_active gauge
loopguard_run_active 2.0
# HELP loopguard_info The guard at work
# TYPE loopguard_info gauge
loopguard_info{loopguard_mode="observe"} 1.0
# EOF
"""


def test_each_kind_of_metric_is_written_as_openmetrics(exposed: Exposed) -> None:
    def at_work(_: CallbackOptions) -> list[Observation]:
        return [Observation(1, {"loopguard.mode": "observe"})]

    meter = exposed.meter
    violations = meter.create_counter("loopguard.violations", "{violation}", "Broken rules")
    duration = meter.create_histogram(
        "loopguard.run.duration",
        "s",
        "Duration of a run",
        explicit_bucket_boundaries_advisory=(0.5, 5),
    )
    active = meter.create_up_down_counter("loopguard.run.active", "{run}", "Runs that go on")
    meter.create_observable_gauge("loopguard.info", [at_work], "{guard}", "The guard at work")
    with exposed.tracer.start_as_current_span("execute_tool search"):
        violations.add(1, {"loopguard.rule": "sweep", "loopguard.tripped": True})
        duration.record(2.5)
    violations.add(0, {"loopguard.rule": "sweep", "loopguard.tripped": False})
    active.add(2)

    text = exposed.text()

    assert re.sub(r" 1[0-9]{9}\.[0-9]+$", " WHEN", text, flags=re.MULTILINE).splitlines() == (
        SHOWN.splitlines()
    )
    families = parsed(text)
    assert {name: (each.type, each.unit) for name, each in families.items()} == {
        "target": ("info", ""),
        "loopguard_violations": ("counter", ""),
        "loopguard_run_duration_seconds": ("histogram", "seconds"),
        "loopguard_run_active": ("gauge", ""),
        "loopguard_info": ("gauge", ""),
    }


def test_a_violation_leads_to_the_span_of_the_offending_step() -> None:
    process, exposed = Traced(), Exposed()
    process.guard(ONE_RULE, meter_provider=exposed.meters)
    with process.agent():
        process.work(6)
    told = {
        attributes["loopguard.action"]: (
            attributes["loopguard.step.trace_id"],
            attributes["loopguard.step.span_id"],
        )
        for _, name, attributes in process.events()
        if name == "loopguard.violation"
    }

    found = [
        (each.labels["loopguard_action"], each.exemplar.labels)
        for name in ("loopguard_violations", "loopguard_violations_by_tool")
        for each in exposed.samples(name, "_total")
        if each.exemplar is not None
    ]

    expected = [(action, {"trace_id": ids[0], "span_id": ids[1]}) for action, ids in told.items()]
    assert len(expected) == 2
    assert sorted(found, key=str) == sorted([*expected, *expected], key=str)
    assert len(exposed.families()) > 10, "the strict parser reads all the guard writes"


def test_the_latest_exemplar_of_a_bucket_counts(exposed: Exposed) -> None:
    steps = exposed.meter.create_histogram("steps", explicit_bucket_boundaries_advisory=(1, 10))
    for value in (3, 4, 30, 10):
        with exposed.tracer.start_as_current_span("agent"):
            steps.record(value)

    buckets = exposed.samples("steps", "_bucket")

    assert [(each.labels["le"], each.value, span_of(each)) for each in buckets] == [
        ("1.0", 0, None),
        ("10.0", 3, span_id(4)),
        ("+Inf", 4, span_id(3)),
    ]


def test_an_exemplar_stays_until_there_is_a_newer_one(exposed: Exposed) -> None:
    # The SDK gives each away once: whoever looked at the page would take it from Prometheus.
    trips = exposed.meter.create_counter("trips")
    for number in (1, 2):
        with exposed.tracer.start_as_current_span("agent"):
            trips.add(1, {"agent": "scout"})
        trips.add(1, {"agent": "other"})
        plain_text(exposed.registry)
        for _ in range(2):
            by_agent = {
                each.labels["agent"]: span_of(each) for each in exposed.samples("trips", "_total")
            }
            assert by_agent == {"scout": span_id(number), "other": None}


def test_a_flush_keeps_exemplars_for_the_next_scrape(exposed: Exposed) -> None:
    trips = exposed.meter.create_counter("trips")
    with exposed.tracer.start_as_current_span("agent"):
        trips.add(1)

    assert exposed.meters.force_flush()
    assert [span_of(each) for each in exposed.samples("trips", "_total")] == [span_id(1)]


def test_a_span_that_is_not_sampled_is_no_exemplar() -> None:
    exposed = Exposed(ALWAYS_OFF)
    trips = exposed.meter.create_counter("trips")
    with exposed.tracer.start_as_current_span("agent"):
        trips.add(1)

    assert [(each.value, each.exemplar) for each in exposed.samples("trips", "_total")] == [
        (1, None)
    ]


def test_plain_text_has_all_but_exemplars(exposed: Exposed) -> None:
    trips = exposed.meter.create_counter("trips")
    with exposed.tracer.start_as_current_span("agent"):
        trips.add(1)

    text = plain_text(exposed.registry).decode()

    assert "# TYPE trips_total counter\ntrips_total" in text
    assert "trace_id" not in text


def test_scopes_that_describe_a_metric_in_two_ways_share_one_head(exposed: Exposed) -> None:
    for scope in ("one", "two"):
        meter = exposed.meters.get_meter(scope)
        meter.create_counter("calls", description=f"by {scope}").add(1, {"of": scope})

    [family] = [each for name, each in exposed.families().items() if name == "calls"]

    assert family.documentation == "by one"
    assert [each.labels["of"] for each in family.samples] == ["one", "two"]


def test_series_may_have_different_labels(exposed: Exposed) -> None:
    # 0.51b0 of the stock exporter gives all series the labels of the last.
    calls = exposed.meter.create_counter("calls")
    calls.add(1, {"rule": "sweep"})
    calls.add(2, {"rule": "sweep", "agent": "scout"})
    calls.add(3, {"tool": "search"})

    found = [
        ({name: value for name, value in each.labels.items() if value}, each.value)
        for each in exposed.samples("calls", "_total")
    ]

    assert found == [
        ({"rule": "sweep"}, 1),
        ({"rule": "sweep", "agent": "scout"}, 2),
        ({"tool": "search"}, 3),
    ]


def test_two_providers_have_a_registry_each() -> None:
    one, two = Exposed(), Exposed()
    one.meter.create_counter("calls").add(1)
    two.meter.create_counter("calls").add(2)

    assert [each.samples("calls", "_total")[0].value for each in (one, two)] == [1, 2]


def test_by_default_metrics_stand_beside_those_of_the_application() -> None:
    reader = OpenMetricsReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)
    meters.get_meter("scope").create_counter("calls").add(1)

    both = {"calls", "python"} & {family.name.split("_")[0] for family in REGISTRY.collect()}
    meters.shutdown()
    reader.shutdown()
    left = {"calls", "python"} & {family.name.split("_")[0] for family in REGISTRY.collect()}

    assert (both, left) == ({"calls", "python"}, {"python"})


def test_after_shutdown_nothing_is_left_in_the_registry(exposed: Exposed) -> None:
    exposed.meter.create_counter("calls").add(1)
    exposed.meters.shutdown()

    assert exposed.text() == "# EOF\n"


def test_of_two_scrapes_at_one_moment_each_gets_everything_once(
    exposed: Exposed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stock exporter may give one of them everything twice, and the other nothing.
    exposed.meter.create_counter("calls").add(1)
    both_have_collected = threading.Barrier(2, timeout=30)
    collect = exposed.reader.collect

    def collect_together() -> None:
        collect()
        both_have_collected.wait()

    monkeypatch.setattr(exposed.reader, "collect", collect_together)
    with ThreadPoolExecutor(2) as pool:
        texts = [each.result() for each in [pool.submit(exposed.text) for _ in range(2)]]

    assert [len(parsed(text)["calls"].samples) for text in texts] == [1, 1]


def test_scrapes_while_metrics_are_recorded_are_whole(exposed: Exposed) -> None:
    workers, additions, scrapes = 2, 300, 10
    calls = exposed.meter.create_counter("calls")
    calls.add(0)
    texts: list[str] = []

    def record() -> None:
        for _ in range(additions):
            with exposed.tracer.start_as_current_span("agent"):
                calls.add(1)

    def scrape() -> None:
        texts.extend(exposed.text() for _ in range(scrapes))

    threads = [threading.Thread(target=each) for each in (record, scrape) * workers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    values = [parsed(text)["calls"].samples for text in texts]
    assert [len(samples) for samples in values] == [1] * workers * scrapes
    assert exposed.samples("calls", "_total")[0].value == workers * additions

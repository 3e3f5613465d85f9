"""What the exporter does where a metric, the stock exporter or a package is not as it should be."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest
from opentelemetry.exporter import prometheus as stock
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from prometheus_client import generate_latest as plain_text

from tests._openmetrics import Exposed


@pytest.fixture
def exposed() -> Generator[Exposed]:
    each = Exposed()
    yield each
    each.shutdown()


def test_a_name_has_one_type(exposed: Exposed, caplog: pytest.LogCaptureFixture) -> None:
    exposed.meters.get_meter("one").create_counter("calls").add(1)
    exposed.meters.get_meter("two").create_up_down_counter("calls").add(5)

    for _ in range(2):
        assert [each.value for each in exposed.families()["calls"].samples] == [1]

    [record] = caplog.records
    assert "'calls': it is a counter and a gauge." in record.getMessage()


def test_a_kind_without_a_text_form_is_left_out_alone(caplog: pytest.LogCaptureFixture) -> None:
    # 0.66b2 of the stock exporter fails in it, and with it the whole scrape.
    exponential = View(instrument_name="sizes", aggregation=ExponentialBucketHistogramAggregation())
    exposed = Exposed(views=[exponential])
    exposed.meter.create_histogram("sizes").record(1)
    exposed.meter.create_counter("calls").add(1)

    for _ in range(2):
        assert {"calls", "sizes"} & set(exposed.families()) == {"calls"}
    [record] = caplog.records
    assert record.getMessage() == (
        "Prometheus does not get all of the metric 'sizes': there is no ExponentialHistogram in "
        "the formats that are served. Change it by a View."
    )


def test_a_metric_in_which_the_translation_fails_is_left_out_alone(
    monkeypatch: pytest.MonkeyPatch, exposed: Exposed, caplog: pytest.LogCaptureFixture
) -> None:
    collector: Any = stock._CustomCollector  # pyright: ignore[reportPrivateUsage]
    translate = collector._translate_to_prometheus

    def fail_in_one(self: object, data: Any, families: object) -> None:
        if data.resource_metrics[0].scope_metrics[0].metrics[0].name == "broken":
            raise ValueError("such a name")
        translate(self, data, families)

    monkeypatch.setattr(collector, "_translate_to_prometheus", fail_in_one)
    for name in ("broken", "calls"):
        exposed.meter.create_counter(name).add(1)

    assert {"calls", "broken"} & set(exposed.families()) == {"calls"}
    assert ["ValueError('such a name')" in each.getMessage() for each in caplog.records] == [True]


def test_a_stock_exporter_that_is_built_in_another_way_serves_without_exemplars(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # As a future version may be: the method has another name there.
    def receive(reader: Any, data: object, *_: object, **__: object) -> None:
        reader._collector.take(data)

    collector: Any = stock._CustomCollector  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(collector, "take", collector.add_metrics_data, raising=False)
    monkeypatch.delattr(collector, "add_metrics_data")
    monkeypatch.setattr(stock.PrometheusMetricReader, "_receive_metrics", receive)

    exposed = Exposed()
    trips = exposed.meter.create_counter("trips")
    with exposed.tracer.start_as_current_span("agent"):
        trips.add(1)
    text = plain_text(exposed.reader.registry).decode()
    exposed.shutdown()

    assert "trips_total" in text
    [record] = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "otel_loopguard.prometheus.reader")
    assert record.getMessage().startswith("Metrics have no exemplars: this version of")
    assert "trips_total" not in plain_text(exposed.reader.registry).decode()


@pytest.mark.parametrize("missing", ["prometheus_client", "opentelemetry.exporter.prometheus"])
def test_without_the_extra_the_error_names_it(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import otel_loopguard.prometheus"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: otel_loopguard.prometheus needs {missing!r}; "
        "install it with: pip install 'otel-loopguard[prometheus]'"
    )

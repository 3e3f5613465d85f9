"""The endpoint that Prometheus fetches metrics from, over real HTTP on loopback."""

from __future__ import annotations

import gzip
import http.client
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from importlib.metadata import entry_points
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

from otel_loopguard.prometheus import OpenMetricsExporter
from tests._openmetrics import parsed, span_of, without_scope
from tests._tracing import FixedIds

# As Prometheus 2.42 and 3 ask.
OPENMETRICS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
HOST_VARIABLE, PORT_VARIABLE = "OTEL_EXPORTER_PROMETHEUS_HOST", "OTEL_EXPORTER_PROMETHEUS_PORT"
SERVER_LOGGER = "otel_loopguard.prometheus.exporter"

Exporters = Callable[..., OpenMetricsExporter]


@pytest.fixture
def exporters() -> Generator[Exporters]:
    """Make exporters, each with a provider, a registry of its own and one violation."""
    providers: list[MeterProvider] = []

    def make(**options: Any) -> OpenMetricsExporter:
        exporter = OpenMetricsExporter(registry=CollectorRegistry(), **options)
        providers.append(MeterProvider([exporter], shutdown_on_exit=False))
        traces = TracerProvider(id_generator=FixedIds(), shutdown_on_exit=False)
        with traces.get_tracer("agents").start_as_current_span("agent"):
            providers[-1].get_meter("scope").create_counter("trips").add(1)
        return exporter

    yield make
    for each in providers:
        each.shutdown()


def ask(
    exporter: OpenMetricsExporter, method: str = "GET", path: str = "/metrics", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    assert exporter.port is not None
    with closing(http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=30)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        answer = connection.getresponse()
        return answer, answer.read()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number: int = taken.getsockname()[1]
        return number


def test_prometheus_gets_openmetrics_and_others_text(exporters: Exporters) -> None:
    exporter = exporters(port=0)
    answer, body = ask(exporter, accept=OPENMETRICS)
    plain, text = ask(exporter)

    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=")
    [sample] = parsed(without_scope(body.decode()))["trips"].samples
    assert (sample.name, span_of(sample)) == ("trips_total", f"{1:016x}")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"# TYPE trips_total counter" in text
    assert b"trace_id" not in text


def test_gzip_is_sent_to_those_who_take_it(exporters: Exporters) -> None:
    answer, body = ask(exporters(port=0), accept=OPENMETRICS, accept_encoding="gzip")

    assert answer.headers["Content-Encoding"] == "gzip"
    assert "trips" in parsed(without_scope(gzip.decompress(body).decode()))


def test_head_is_get_without_the_body(exporters: Exporters) -> None:
    exporter = exporters(port=0)
    got, body = ask(exporter)
    answer, nothing = ask(exporter, "HEAD")

    assert (answer.status, nothing) == (200, b"")
    assert answer.headers["Content-Type"] == got.headers["Content-Type"]
    # Some versions of the SDK measure collections themselves, in digits that vary.
    assert abs(int(answer.headers["Content-Length"]) - len(body)) < 100 < len(body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/metrics?x=1", 200),
        ("OPTIONS", "/metrics", 200),
        ("POST", "/metrics", 405),
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("HEAD", "/other", 404),
    ],
    ids=["query", "options", "post", "root", "below", "head-elsewhere"],
)
def test_what_else_is_asked(exporters: Exporters, method: str, path: str, status: int) -> None:
    answer, body = ask(exporters(port=0), method, path)

    assert answer.status == status
    if status == 404 and method == "GET":
        assert body == b"Metrics are at /metrics\n"


def test_a_collection_that_fails_is_an_answer_and_one_log_record(
    exporters: Exporters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = exporters(port=0)

    def fail(*_: object, **__: object) -> None:
        raise TimeoutError("a callback took too long")

    monkeypatch.setattr(exporter, "collect", fail)
    answer, body = ask(exporter)

    assert (answer.status, body.startswith(b"Metrics could not be collected")) == (500, True)
    assert [each.name for each in caplog.records] == ["otel_loopguard.prometheus.server"]


def test_it_listens_on_loopback_and_the_usual_port_by_default(
    monkeypatch: pytest.MonkeyPatch, exporters: Exporters, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[tuple[str, int]] = []

    def bind(_: socket.socket, address: tuple[str, int]) -> None:
        asked.append(address)
        raise OSError("not in this test")

    # Only here: somebody may have the port, and a test that listens on it stands in others' way.
    monkeypatch.setattr(socket.socket, "bind", bind)
    exporters()

    assert asked == [("127.0.0.1", 9464)]
    assert "http://127.0.0.1:9464/metrics (OSError: not in this test)" in caplog.text


def test_variables_say_where_and_arguments_say_more(
    monkeypatch: pytest.MonkeyPatch, exporters: Exporters
) -> None:
    port = free_port()
    monkeypatch.setenv(HOST_VARIABLE, "localhost")
    monkeypatch.setenv(PORT_VARIABLE, str(port))
    assert exporters().port == port
    assert exporters(host="127.0.0.1", port=0).port != port


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("", "ninety", "http://127.0.0.1:ninety/metrics (ValueError"),
        ("", "70000", "http://127.0.0.1:70000/metrics (OverflowError"),
        ("203.0.113.7", "0", "http://203.0.113.7:0/metrics (OSError"),
        ("no host", "0", "http://no host:0/metrics (gaierror"),
    ],
    ids=["no-number", "no-port", "not-this-machine", "no-host"],
)
def test_a_place_that_is_none_is_said_and_metrics_go_on(
    monkeypatch: pytest.MonkeyPatch,
    exporters: Exporters,
    caplog: pytest.LogCaptureFixture,
    host: str,
    port: str,
    said: str,
) -> None:
    monkeypatch.setenv(HOST_VARIABLE, host)
    monkeypatch.setenv(PORT_VARIABLE, port)
    exporter = exporters()

    assert exporter.port is None
    assert "trips" in {family.name for family in exporter.registry.collect()}
    [record] = caplog.records
    assert (record.name, record.levelname) == (SERVER_LOGGER, "ERROR")
    assert f"No metrics are served at {said}" in record.getMessage()
    assert f"{PORT_VARIABLE} or {HOST_VARIABLE}" in record.getMessage()


def test_a_port_that_is_taken_is_said_and_free_again_after_shutdown(
    exporters: Exporters, caplog: pytest.LogCaptureFixture
) -> None:
    first = exporters(port=0)
    port = first.port
    second = exporters(port=port)

    assert second.port is None
    [record] = caplog.records
    assert f"http://127.0.0.1:{port}/metrics (OSError: " in record.getMessage()
    assert "\n" not in record.getMessage()

    first.shutdown()
    assert first.port is None
    third = exporters(port=port)
    assert third.port == port
    assert ask(third)[0].status == 200


FORKING = """
import os, socket, sys
from opentelemetry.sdk.metrics import MeterProvider
from otel_loopguard.prometheus import OpenMetricsExporter

exporter = OpenMetricsExporter(port=0)
provider = MeterProvider([exporter])
port = exporter.port
told, tell = os.pipe()
child = os.fork()
if not child:
    os.close(tell)
    os.read(told, 1)  # until the parent has shut down
    sys.exit(0)       # with the handlers of a normal exit, which shut down too
os.close(told)
provider.shutdown()
with socket.socket() as again:
    again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    again.bind(("127.0.0.1", port))
    again.listen()
os.close(tell)
print("free, child", os.waitpid(child, 0)[1])
"""


def test_a_forked_child_neither_keeps_the_port_nor_hangs_at_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.stdout, done.stderr) == ("free, child 0\n", "")


def test_the_sdk_finds_it_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    [found] = entry_points(group="opentelemetry_metrics_exporter", name="loopguard_prometheus")
    kind = found.load()
    assert kind is OpenMetricsExporter
    assert issubclass(kind, MetricReader), "so the SDK gives it no periodic reader"

    monkeypatch.setenv(PORT_VARIABLE, "0")
    made = kind()
    assert made.port
    made.shutdown()

"""Violations in Prometheus: counted from span events of any language, each with its trace."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import format_trace_id

from otel_loopguard import LoopGuardSpanProcessor, Policy
from scripts.debian_packages import programs
from tests._collector import (
    Collector,
    any_value,
    attributes,
    eventually,
    free_ports,
    get,
    running,
    span,
    spans_of,
    to_file,
)

COUNTER = "loopguard_traces_events_total"
RESOURCE = Resource(
    {"service.name": "assistant", "service.namespace": "shop", "service.instance.id": "pod-1"}
)


class Stack(NamedTuple):
    """A gateway, the Prometheus that it writes to, and the traces that it lets through."""

    gateway: Collector
    port: int
    file: Path

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._ask("/api/v1/query", query=expression)["result"]

    def at(self, expression: str, value: int) -> list[dict[str, Any]]:
        """Return the series that have a value now."""
        return [each for each in self.query(expression) if each["value"][1] == str(value)]

    def exemplars(self, series: str) -> dict[str, dict[str, str]]:
        """Return the exemplars of series, by trace id, each with the labels of its series."""
        found = self._ask("/api/v1/query_exemplars", query=series, start="0", end="9999999999")
        return {
            exemplar["labels"]["trace_id"]: each["seriesLabels"]
            for each in found
            for exemplar in each["exemplars"]
        }

    def _ask(self, path: str, **parameters: str) -> Any:
        answer = get(self.port, f"{path}?{urlencode(parameters)}")
        assert answer, (path, parameters)
        return json.loads(answer)["data"]


@contextmanager
def prometheus(folder: Path) -> Generator[int]:
    """Run Debian's Prometheus, which takes remote writes with exemplars; gives its port."""
    [port] = free_ports(1)
    (folder / "prometheus.yml").write_text("{}")
    process = subprocess.Popen(
        [
            programs("prometheus")["prometheus"],
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
            "--enable-feature=exemplar-storage",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: is_ready(port), "Prometheus", lambda: "it does not answer")
        yield port
    finally:
        process.terminate()
        process.wait(30)


def is_ready(port: int) -> bool:
    try:
        return bool(get(port, "/-/ready"))
    except OSError:
        return False


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    file = folder / "spans.jsonl"
    overlay = to_file(file, "traces/agents", "traces/others")
    with prometheus(folder) as port:
        variables = {
            "REMOTE_WRITE_ENDPOINT": f"http://127.0.0.1:{port}/api/v1/write",
            "FLUSH_INTERVAL": "500ms",
        }
        with running(folder, "gateway.yaml", overlay, variables) as gateway:
            yield Stack(gateway, port, file)


def violation(rule: str, action: str = "abort") -> dict[str, Any]:
    values = {"loopguard.rule": rule, "loopguard.action": action, "gen_ai.tool.name": "search"}
    return {"name": "loopguard.violation", "attributes": attributes(values), "timeUnixNano": "1"}


def test_a_violation_of_the_guard_is_counted_and_leads_to_its_trace(stack: Stack):
    """A real guard, on spans of the SDK, sent by OTLP."""
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    policy = Policy.none().with_limits(max_same_tool_calls=2)
    provider.add_span_processor(LoopGuardSpanProcessor(policy, mode="observe"))
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{stack.gateway.http_port}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "researcher"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with tracer.start_as_current_span("run", attributes=agent) as run:
        for _ in range(3):
            with tracer.start_as_current_span("execute_tool search", attributes=tool):
                pass
    provider.shutdown()
    trace_id = format_trace_id(run.get_span_context().trace_id)
    series = f'{COUNTER}{{loopguard_rule="same_tool"}}'
    # The exporter writes a 0 before the first value, so that Prometheus sees it rise.
    [found] = eventually(lambda: stack.at(series, 1), "the violation", stack.gateway.said)
    labels = found["metric"]
    assert labels["job"] == "shop/assistant"
    assert labels["loopguard_action"] == "abort"
    assert labels["gen_ai_agent_name"] == "researcher"
    assert labels["gen_ai_tool_name"] == "search"
    # A process that comes and goes makes no series of its own.
    assert "instance" not in labels
    exemplars = eventually(lambda: stack.exemplars(series), "its exemplar", stack.gateway.said)
    assert set(exemplars) == {trace_id}
    exported = eventually(lambda: spans_of(stack.file), "the trace", stack.gateway.said)
    tripped = [each for each in exported if each["attributes"].get("loopguard.tripped")]
    assert {each["traceId"] for each in tripped} == {trace_id}


def test_each_trace_that_violates_is_an_exemplar_whoever_wrote_it(stack: Stack):
    """What an agent in another language, or a guard at a server, writes: the event is enough."""
    series = f'{COUNTER}{{loopguard_rule="repeated_result"}}'
    traces = (0xA1, 0xA2, 0xA3)
    for total, each in enumerate(traces, 1):
        stack.gateway.send([span(each, events=[violation("repeated_result")])])
        wait_for(stack, series, total)
    assert set(stack.exemplars(series)) == {f"{each:032x}" for each in traces}


def test_of_violations_at_once_one_is_an_exemplar(stack: Stack):
    """They have one time, and of exemplars with one time Prometheus takes the first."""
    series = f'{COUNTER}{{loopguard_rule="no_novelty"}}'
    traces = range(0xD1, 0xD4)
    stack.gateway.send([span(each, events=[violation("no_novelty")]) for each in traces])
    wait_for(stack, series, len(traces))
    assert set(stack.exemplars(series)) & {f"{each:032x}" for each in traces}


def wait_for(stack: Stack, series: str, total: int) -> None:
    eventually(lambda: stack.at(series, total), f"{series} at {total}", stack.gateway.said)


def test_other_events_and_spans_make_no_series(stack: Stack):
    other = {"name": "exception", "attributes": attributes({"exception.type": "ValueError"})}
    stack.gateway.send([span(0xB1, events=[other], name="secret name"), span(0xB2)])
    stack.gateway.send([span(0xB3, events=[violation("cyclic_calls", "warn")])])
    eventually(
        lambda: stack.query(f'{COUNTER}{{loopguard_rule="cyclic_calls"}}'), "it", stack.gateway.said
    )
    assert not stack.query('{__name__=~"loopguard_traces.*", loopguard_rule=""}')
    assert not stack.query('{__name__=~"loopguard_traces_(calls|duration).*"}')
    assert not stack.query('{span_name!=""}')


def test_the_guards_own_metrics_arrive_under_their_names(stack: Stack):
    """By OTLP and remote write: suffixes, job and instance; a unit in braces leaves no trace."""
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(f"http://127.0.0.1:{stack.gateway.http_port}/v1/metrics")
    )
    provider = MeterProvider([reader], resource=RESOURCE, shutdown_on_exit=False)
    meter = provider.get_meter("otel_loopguard")
    meter.create_counter("loopguard.violations", unit="{violation}").add(2)
    meter.create_histogram("loopguard.run.duration", unit="s").record(1.5)
    meter.create_gauge("loopguard.info", unit="{guard}").set(1)
    meter.create_gauge("loopguard.run.cost.max", unit="{USD}").set(0.5)
    provider.shutdown()
    names = (
        "loopguard_violations_total",
        "loopguard_run_duration_seconds_count",
        "loopguard_info",
        "loopguard_run_cost_max",
    )
    for name in names:
        [found] = eventually(lambda: stack.query(name), name, stack.gateway.said)  # noqa: B023
        assert found["metric"]["job"] == "shop/assistant"
        assert found["metric"]["instance"] == "pod-1"


def test_differences_become_running_totals(stack: Stack):
    """As an SDK sends them that is set to `delta`."""
    began = time.time_ns() - 10 * 10**9
    for second in (1, 2, 3):
        point = {
            "asInt": "2",
            "startTimeUnixNano": str(began + second * 10**9),
            "timeUnixNano": str(began + (second + 1) * 10**9),
        }
        metric = {
            "name": "differences",
            "sum": {"aggregationTemporality": 1, "isMonotonic": True, "dataPoints": [point]},
        }
        stack.gateway.post(
            json.dumps(
                {
                    "resourceMetrics": [
                        {
                            "resource": {
                                "attributes": [{"key": "service.name", "value": any_value("x")}]
                            },
                            "scopeMetrics": [{"metrics": [metric]}],
                        }
                    ]
                }
            ),
            "/v1/metrics",
        )
    wait_for(stack, "differences_total", 6)

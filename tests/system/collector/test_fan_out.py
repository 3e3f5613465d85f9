"""Fan-out over two collectors: what belongs together arrives in one place."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests._collector import (
    Collector,
    attributes,
    eventually,
    mapping,
    running,
    span,
    spans_of,
    to_file,
)

TRACES = 100
SPANS = 4
SIGNALS = ("traces", "metrics", "logs")
SERVICES = [f"service {number}" for number in range(30)]


class Both(NamedTuple):
    """The one that divides, and the files of the two behind it."""

    balancer: Collector
    files: tuple[Path, Path]

    def spans(self) -> list[list[dict[str, Any]]]:
        return [spans_of(file) for file in self.files]

    def send(self, spans: list[dict[str, Any]]) -> None:
        """Send spans of all traces in turn, so that each trace comes in several requests."""
        for number in range(SPANS):
            self.balancer.send(spans[number::SPANS])
        eventually(
            lambda: sum(map(len, self.spans())) == len(spans), "all spans", self.balancer.said
        )


@contextmanager
def both(folder: Path, name: str) -> Generator[Both]:
    files = (folder / "first.jsonl", folder / "second.jsonl")
    with (
        running(folder / "first", "agent.yaml", to_file(files[0], *SIGNALS)) as first,
        running(folder / "second", "agent.yaml", to_file(files[1], *SIGNALS)) as second,
        running(
            folder / "balancer",
            name,
            variables={
                "FIRST_ENDPOINT": f"127.0.0.1:{first.grpc_port}",
                "SECOND_ENDPOINT": f"127.0.0.1:{second.grpc_port}",
            },
        ) as balancer,
    ):
        yield Both(balancer, files)


def test_by_trace_each_trace_is_in_one_place(tmp_path: Path):
    spans = [
        span(trace, number) for trace in range(1, TRACES + 1) for number in range(1, SPANS + 1)
    ]
    with both(tmp_path, "fan-out-by-trace.yaml") as pair:
        pair.send(spans)
        traces = [{each["traceId"] for each in found} for found in pair.spans()]
    assert not traces[0] & traces[1]
    assert all(len(each) > TRACES / 5 for each in traces)


def test_by_conversation_each_conversation_is_in_one_place(tmp_path: Path):
    """Each has four traces: by trace id they would be in both."""
    conversations = TRACES // SPANS
    spans = [
        span(trace, number, attributes={"gen_ai.conversation.id": f"talk {trace % conversations}"})
        for trace in range(1, TRACES + 1)
        for number in range(1, SPANS + 1)
    ]
    with both(tmp_path, "fan-out-by-conversation.yaml") as pair:
        pair.send(spans)
        found = [
            {each["attributes"]["gen_ai.conversation.id"] for each in spans}
            for spans in pair.spans()
        ]
    assert not found[0] & found[1]
    assert len(found[0] | found[1]) == conversations
    assert all(len(each) > conversations / 5 for each in found)


def of_each_service(number: int, key: str) -> dict[str, Any]:
    """Return a request with one difference of a counter, or one log event, of each service."""
    point = {"asInt": "1", "startTimeUnixNano": str(number), "timeUnixNano": str(number + 1)}
    total = {"dataPoints": [point], "aggregationTemporality": 1, "isMonotonic": True}
    said = {
        "resourceMetrics": {
            "scopeMetrics": [{"metrics": [{"name": "loopguard.runs", "sum": total}]}]
        },
        "resourceLogs": {"scopeLogs": [{"logRecords": [{"eventName": "loopguard.violation"}]}]},
    }[key]
    resources = [{"attributes": attributes({"service.name": each})} for each in SERVICES]
    return {key: [{"resource": each, **said} for each in resources]}


def services_in(file: Path, key: str) -> list[str]:
    """Return the service of each part of a signal that has come, in their order."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [
        mapping(each["resource"]["attributes"])["service.name"]
        for line in lines
        if line.endswith("}")
        for each in json.loads(line).get(key, ())
    ]


@pytest.mark.parametrize("name", ["fan-out-by-trace.yaml", "fan-out-by-conversation.yaml"])
def test_what_a_sidecar_sends_arrives_all_of_it_and_a_service_s_in_one_place(
    name: str, tmp_path: Path
):
    """Differences of a counter that came to two gateways would add up at neither."""
    paths = {"resourceMetrics": "/v1/metrics", "resourceLogs": "/v1/logs"}
    with both(tmp_path, name) as pair:
        gateway = {"GATEWAY_ENDPOINT": f"127.0.0.1:{pair.balancer.grpc_port}"}

        def places() -> list[list[str]]:
            return [services_in(file, key) for key in paths for file in pair.files]

        with running(tmp_path / "sidecar", "agent.yaml", variables=gateway) as sidecar:
            sidecar.send([span(1)])
            for number in (1, 2):
                for key, path in paths.items():
                    sidecar.post(of_each_service(number, key), path)
            wanted = 2 * len(SERVICES) * len(paths)
            eventually(
                lambda: sum(map(len, places())) == wanted, "metrics and logs", sidecar.said, 20
            )
            eventually(lambda: sum(map(len, pair.spans())) == 1, "the span", sidecar.said)
        found = places()
    assert all(found)
    assert all(set(Counter(place).values()) == {2} for place in found)

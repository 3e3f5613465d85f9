"""The sidecar: what an agent has handed over survives a gateway that is away, and a restart."""

from __future__ import annotations

from pathlib import Path

from tests._collector import eventually, free_ports, running, span, spans_of, to_file

SPANS = 50


def test_spans_wait_on_disk_until_the_gateway_is_there(tmp_path: Path):
    [port] = free_ports(1)
    sidecar = {"GATEWAY_ENDPOINT": f"127.0.0.1:{port}"}
    with running(tmp_path / "sidecar", "agent.yaml", variables=sidecar) as started:
        started.send([span(each) for each in range(1, SPANS + 1)])
        assert started.stop() == 0  # with nobody to send to
    file = tmp_path / "spans.jsonl"
    with running(
        tmp_path / "gateway",
        "agent.yaml",
        to_file(file, "traces"),
        {"OTLP_GRPC_ENDPOINT": f"127.0.0.1:{port}"},
    ):
        assert not spans_of(file)
        with running(tmp_path / "sidecar", "agent.yaml", variables=sidecar) as again:
            eventually(lambda: len(spans_of(file)) >= SPANS, "the spans", again.said)
    assert len({each["traceId"] for each in spans_of(file)}) == SPANS

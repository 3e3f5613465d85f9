"""The built collector with a file of `collector-config`, as a process on loopback."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from scripts.collector_binary import collector_binary

CONFIGURATIONS = Path(__file__).parents[1] / "collector-config"
HASH_KEY = "a key for tests, of 32 characters or more"
KEYED = {"LOOPGUARD_HASH_KEY": HASH_KEY}
BATCH = 500

T = TypeVar("T")
Spans = Iterable[Mapping[str, Any]]


class Collector(NamedTuple):
    """A collector that runs, and how to reach it."""

    http_port: int
    grpc_port: int
    own_metrics_port: int
    process: subprocess.Popen[bytes]
    log: Path

    def send(self, spans: Spans, service: str = "agent") -> None:
        """Send spans of OTLP/JSON of one service, some hundred at a time."""
        listed = list(spans)
        for first in range(0, len(listed), BATCH):
            self.post(
                {
                    "resourceSpans": [
                        {
                            "resource": {"attributes": attributes({"service.name": service})},
                            "scopeSpans": [{"spans": listed[first : first + BATCH]}],
                        }
                    ]
                }
            )

    def post(self, request: Mapping[str, Any] | str, path: str = "/v1/traces") -> None:
        """Send one request of OTLP/JSON; it must be taken whole."""
        body = request if isinstance(request, str) else json.dumps(request)
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=30)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, (said, self.said())
        assert not json.loads(said).get("partialSuccess"), said

    def own_metrics(self) -> dict[str, float]:
        """Return the collector's counters, each summed over its series."""
        totals: dict[str, float] = {}
        for line in get(self.own_metrics_port, "/metrics").splitlines():
            if line and not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                name = series.partition("{")[0]
                totals[name] = totals.get(name, 0.0) + float(value)
        return totals

    def said(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> int:
        """Let it write what it holds and end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(30)


@contextmanager
def running(
    folder: Path,
    name: str,
    overlay: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Generator[Collector]:
    """Run the file `name` until the block is left; `overlay` is merged over it."""
    http_port, grpc_port, health_port, own_port = free_ports(4)
    folder.mkdir(parents=True, exist_ok=True)
    files = [CONFIGURATIONS / name]
    if overlay:
        files.append(folder / "overlay.json")  # JSON is YAML
        files[-1].write_text(json.dumps(overlay))
    log = folder / "collector.log"
    addresses = {
        "OTLP_HTTP_ENDPOINT": f"127.0.0.1:{http_port}",
        "OTLP_GRPC_ENDPOINT": f"127.0.0.1:{grpc_port}",
        "HEALTH_ENDPOINT": f"127.0.0.1:{health_port}",
        "OWN_METRICS_PORT": str(own_port),
        "QUEUE_DIRECTORY": str(folder / "queue"),
    }
    with ExitStack() as stack:
        process = subprocess.Popen(
            [collector_binary(), *(f"--config={file}" for file in files)],
            cwd=folder,
            env={**os.environ, **KEYED, **addresses, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=stack.enter_context(log.open("ab")),
            stderr=subprocess.STDOUT,
        )
        started = Collector(http_port, grpc_port, own_port, process, log)
        stack.callback(started.stop)
        eventually(lambda: is_up(started, health_port), f"a start of {name}", started.said)
        yield started


def is_up(started: Collector, health_port: int) -> bool:
    assert started.process.poll() is None, started.said()
    try:
        return bool(get(health_port, "/"))
    except OSError:
        return False


def to_file(path: Path, *pipelines: str) -> dict[str, Any]:
    """Return an overlay that makes pipelines write to a file, as JSON lines."""
    return {
        "exporters": {"file": {"path": str(path), "flush_interval": "100ms"}},
        "service": {"pipelines": {each: {"exporters": ["file"]} for each in pipelines}},
    }


def spans_of(written: Path | bytes) -> list[dict[str, Any]]:
    """Return the spans of a file or of a line, each with its attributes as a mapping."""
    found: list[dict[str, Any]] = []
    if isinstance(written, Path):
        written = written.read_bytes() if written.exists() else b""
    for line in written.splitlines():
        with suppress(json.JSONDecodeError):  # a line that is being written
            for resource in json.loads(line).get("resourceSpans", ()):
                for scope in resource["scopeSpans"]:
                    found += [
                        {**each, "attributes": mapping(each.get("attributes", ()))}
                        for each in scope["spans"]
                    ]
    return found


def span(trace_id: int, number: int = 1, **values: Any) -> dict[str, Any]:
    """Return a span of OTLP/JSON that lasts a millisecond; `attributes` may be a mapping."""
    now = time.time_ns()
    return {
        "traceId": f"{trace_id:032x}",
        "spanId": f"{number:016x}",
        "name": "work",
        "kind": 1,
        "startTimeUnixNano": str(now - 1_000_000),
        "endTimeUnixNano": str(now),
        **values,
        "attributes": attributes(values.get("attributes", {})),
    }


def attributes(values: Mapping[str, object]) -> list[dict[str, Any]]:
    return [{"key": name, "value": any_value(value)} for name, value in values.items()]


def any_value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes(cast("Mapping[str, object]", value))}}
    return {"stringValue": str(value)}


def mapping(pairs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values()), None) for each in pairs}


def eventually(ask: Callable[[], T], what: str, said: Callable[[], str], within_s: float = 60) -> T:
    """Return the first answer that holds."""
    ends = time.monotonic() + within_s
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < ends, f"{what} was not seen within {within_s:g} s:\n{said()}"
        time.sleep(0.05)


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        said = answer.read().decode()
    finally:
        connection.close()
    return said if answer.status == 200 else ""


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on just now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]

"""The collector of the stack: the built one, with `collector-config/gateway.yaml`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from scripts.collector_binary import collector_binary
from scripts.stack.programs import Program, free_ports, running

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "collector-config" / "gateway.yaml"


class Gateway:
    """A collector that runs."""

    def __init__(self, otlp: str, telemetry: str, exported: Path, program: Program) -> None:
        self.otlp = otlp
        """The address of its OTLP over HTTP."""
        self.telemetry = telemetry
        """Host and port of its own metrics."""
        self.exported = exported
        """The file with the traces that it lets through, as JSON lines."""
        self.program = program


@contextmanager
def gateway(folder: Path, *, prometheus: str) -> Generator[Gateway]:
    """Run the collector until the block is left; `prometheus` is the address that it writes to."""
    otlp, grpc, health, telemetry = free_ports(4)
    exported = folder / "traces.jsonl"
    instead = folder / "gateway-exporters.json"
    instead.write_text(json.dumps(exporters(exported, folder / "logs.jsonl"), indent=1))
    command: list[str | Path] = [
        collector_binary(),
        f"--config={CONFIGURATION}",
        f"--config={instead}",
    ]
    variables = {
        "OTLP_HTTP_ENDPOINT": f"127.0.0.1:{otlp}",
        "OTLP_GRPC_ENDPOINT": f"127.0.0.1:{grpc}",
        "HEALTH_ENDPOINT": f"127.0.0.1:{health}",
        "OWN_METRICS_PORT": str(telemetry),
        "REMOTE_WRITE_ENDPOINT": f"{prometheus}/api/v1/write",
        "FLUSH_INTERVAL": "1s",
        "DECISION_WAIT": "5s",
        "LOOPGUARD_HASH_KEY": secrets.token_hex(32),
    }
    ready = f"http://127.0.0.1:{health}/"
    with running("collector", command, folder, variables, ready=ready) as program:
        address = f"http://127.0.0.1:{otlp}"
        yield Gateway(address, f"127.0.0.1:{telemetry}", exported, program)


def exporters(traces: Path, logs: Path) -> object:
    """What takes the place of the gateway's exporters of traces and logs: files.

    Of two configurations the collector takes the later one's lists, and puts the rest together.
    """
    return {
        "exporters": {
            "file/traces": {"path": str(traces), "flush_interval": "200ms"},
            "file/logs": {"path": str(logs), "flush_interval": "200ms"},
        },
        "service": {
            "telemetry": {"logs": {"level": "warn"}},
            "pipelines": {
                "traces/agents": {"exporters": ["file/traces"]},
                "traces/others": {"exporters": ["file/traces"]},
                "logs": {"exporters": ["file/logs"]},
            },
        },
    }

"""A gateway that keeps all spans, what it has let through, by trace, and a replay of that."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from otel_loopguard import Policy
from otel_loopguard.replay import ReplayedRun, replay_file
from tests._collector import Collector, eventually, running, span, spans_of, to_file

TRACE_ID = re.compile(rb'"traceId":"([0-9a-f]{32})"')


class Lines:
    """The lines of a file that is being written, each read once, by the traces in them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._of_trace: dict[str, list[bytes]] = {}

    def of(self, trace_id: str) -> list[bytes]:
        """Return the lines with spans of a trace."""
        with suppress(FileNotFoundError), self._file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if line.endswith(b"\n"):
                    self._read += len(line)
                    for each in {found.decode() for found in TRACE_ID.findall(line)}:
                        self._of_trace.setdefault(each, []).append(line)
        return self._of_trace.get(trace_id, [])

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        spans = [span for line in self.of(trace_id) for span in spans_of(line)]
        return [each for each in spans if each["traceId"] == trace_id]


class Gateway(NamedTuple):
    """A gateway that keeps all spans, and the files that it writes."""

    collector: Collector
    file: Path
    logs: Path
    metrics: Path
    lines: Lines

    def spans(self, trace_id: int, count: int = 1) -> list[dict[str, Any]]:
        """Return the spans of a trace when as many as expected have come, in their order."""
        wanted = f"{trace_id:032x}"

        def found() -> list[dict[str, Any]]:
            spans = self.lines.spans(wanted)
            return sorted(spans, key=number) if len(spans) >= count else []

        return eventually(found, f"{count} spans of {wanted}", self.collector.said)

    def hashes(self, trace_id: int, *values: object, name: str = "arguments") -> list[str | None]:
        """Send tool calls with these arguments (or results); returns what stands for them."""
        key = f"gen_ai.tool.call.{name}"
        self.collector.send(
            span(trace_id, at, attributes={"gen_ai.operation.name": "execute_tool", key: value})
            for at, value in enumerate(values, 1)
        )
        spans = self.spans(trace_id, len(values))
        assert not [each for each in spans if key in each["attributes"]]
        return [each["attributes"].get(f"loopguard.{name}.hash") for each in spans]


def number(found: dict[str, Any]) -> str:
    return found["spanId"]


@contextmanager
def redacting(folder: Path) -> Generator[Gateway]:
    """Run gateway.yaml, with everything kept, until the block is left."""
    file = folder / "spans.jsonl"
    overlay = to_file(file, "traces/agents", "traces/others")
    others = {"logs": folder / "logs.jsonl", "metrics/in": folder / "metrics.jsonl"}
    for pipeline, path in others.items():
        exporter = f"file/{path.stem}"
        overlay["exporters"][exporter] = {"path": str(path), "flush_interval": "100ms"}
        overlay["service"]["pipelines"][pipeline] = {"exporters": [exporter]}
    policies = [{"name": "all", "type": "always_sample"}]
    overlay["processors"] = {"tail_sampling": {"policies": policies}}
    with running(folder, "gateway.yaml", overlay, {"DECISION_WAIT": "1s"}) as collector:
        yield Gateway(collector, file, others["logs"], others["metrics/in"], Lines(file))


def replayed(text: bytes, folder: Path) -> list[ReplayedRun]:
    """Return the runs in lines of OTLP/JSON, as the default policy judges them."""
    file = folder / "spans.jsonl"
    file.write_bytes(text)
    found = [*replay_file(str(file), Policy())]
    return [each for each in found if isinstance(each, ReplayedRun)]


def first_trip(run: ReplayedRun) -> tuple[str, int | None] | None:
    """Return the rule that would have stopped a run first, and at which step."""
    trips = [(each.rule, each.step) for each in run.violations if each.action == "abort"]
    return trips[0] if trips else None

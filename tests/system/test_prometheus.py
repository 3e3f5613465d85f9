"""A real Prometheus fetches the metrics of a real agent loop, and leads from a trip to its span."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from otel_loopguard.agent_loop.telemetry import CONTENT
from scripts.debian_packages import programs
from scripts.stack.programs import running
from scripts.stack.prometheus import Prometheus, prometheus
from scripts.stack.waiting import eventually

HERE = Path(__file__).parent
WITHIN_S = 60
T = TypeVar("T")


class Told(msgspec.Struct, frozen=True):
    """What the agent tells of itself."""

    port: int
    ending: str
    offending: dict[str, tuple[str, str]]
    """The trace id and the span id, by action."""
    exported: list[str]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class Stage(msgspec.Struct, frozen=True):
    """An agent's process that has looped, what it told, and a Prometheus that fetches from it."""

    told: Told
    prometheus: Prometheus

    def shows(self, what: str, ask: Callable[[], T]) -> T:
        return eventually(what, ask, within_s=WITHIN_S, unless=self.prometheus.program.fault)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    folder = tmp_path_factory.mktemp("prometheus")
    file = folder / "told.json"
    command = [sys.executable, HERE / "_looping_agent.py", file]
    with running("agent", command, folder, {CONTENT: "SPAN_ONLY"}) as agent:
        eventually("what the agent tells", file.exists, within_s=WITHIN_S, unless=agent.fault)
        told = msgspec.json.decode(file.read_bytes(), type=Told)
        with prometheus(folder, agents=[told.address]) as found:
            stage = Stage(told, found)
            stage.shows("the agent's metrics", lambda: found.query("up == 1"))
            yield stage


def test_the_loop_was_stopped_and_the_trip_is_counted(stage: Stage) -> None:
    assert stage.told.ending == "repeated_call"
    expression = 'loopguard_violations_total{loopguard_action="abort"} > 0'
    [found] = stage.shows("the trip", lambda: stage.prometheus.query(expression))

    assert found.number == 1
    labels = {name: each for name, each in found.metric.items() if "otel_scope" not in name}
    assert labels == {
        "__name__": "loopguard_violations_total",
        "gen_ai_agent_name": "scout",
        "instance": stage.told.address,
        "job": "agents",
        "loopguard_action": "abort",
        "loopguard_rule": "repeated_result",
    }


def test_its_exemplar_is_the_span_of_the_offending_step(stage: Stage) -> None:
    trace_id, span_id = stage.told.offending["abort"]
    expression = 'loopguard_violations_total{loopguard_action="abort"}'
    [found] = stage.shows("its exemplar", lambda: stage.prometheus.exemplars(expression))

    assert found.series_labels["gen_ai_agent_name"] == "scout"
    assert found.exemplars[-1].labels == {"trace_id": trace_id, "span_id": span_id}
    assert span_id in stage.told.exported


def test_buckets_of_the_application_have_exemplars_too(stage: Stage) -> None:
    name = "agent_turn_duration_seconds_bucket"
    [found] = stage.shows("exemplars of turns", lambda: stage.prometheus.exemplars(name))

    assert found.series_labels["le"] == "1.0"
    assert found.exemplars[-1].trace_id == stage.told.offending["abort"][0]


def test_promtool_finds_nothing_wrong_with_the_text(stage: Stage) -> None:
    with urllib.request.urlopen(f"http://{stage.told.address}/metrics", timeout=30) as answer:
        text = answer.read()
    done = subprocess.run(
        [programs("promtool")["promtool"], "check", "metrics"],
        input=text,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr.decode(), done.stdout.decode()) == (0, "", "")

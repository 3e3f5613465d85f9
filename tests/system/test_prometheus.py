"""A real Prometheus fetches the metrics of a real agent loop, and leads from a trip to its span."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.error import URLError
from urllib.parse import urlencode

import pytest

from otel_loopguard.agent_loop.telemetry import CONTENT
from scripts.debian_packages import programs

HERE = Path(__file__).parent
WITHIN_S = 60
CONFIGURATION = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: agents
    static_configs:
      - targets: ["{target}"]
"""
T = TypeVar("T")


class Stage(NamedTuple):
    """An agent's process that has looped, what it told, and a Prometheus that fetches from it."""

    told: dict[str, Any]
    url: str

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.told['port']}"

    def ask(self, path: str, **parameters: str) -> Any:
        address = f"{self.url}/api/v1/{path}?{urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - our own server
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        found = self.ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def exemplars(self, expression: str) -> list[tuple[dict[str, str], dict[str, str]]]:
        """The labels of each series, and those of its latest exemplar."""
        now = time.time()
        found = self.ask(
            "query_exemplars", query=expression, start=f"{now - 600}", end=f"{now + 60}"
        )
        return [(each["seriesLabels"], each["exemplars"][-1]["labels"]) for each in found]


def eventually(answer: Callable[[], T]) -> T:
    ends = time.monotonic() + WITHIN_S
    while not (found := answer()):
        assert time.monotonic() < ends, f"not within {WITHIN_S} s; the last answer was {found!r}"
        time.sleep(0.1)
    return found


@contextmanager
def running(*command: str | Path, **options: Any) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen([*map(str, command)], text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    folder = tmp_path_factory.mktemp("prometheus")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    shown = {**os.environ, CONTENT: "SPAN_ONLY"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with running(sys.executable, HERE / "_looping_agent.py", env=shown, **pipes) as agent:
        assert agent.stdout is not None
        told = json.loads(agent.stdout.readline())
        configuration = folder / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(target=f"127.0.0.1:{told['port']}"))
        log = folder / "log"
        with (
            log.open("w") as file,
            running(
                programs("prometheus")["prometheus"],
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={url.removeprefix('http://')}",
                "--enable-feature=exemplar-storage",
                stderr=file,
            ) as prometheus,
        ):
            found = Stage(told, url)

            def scraped() -> bool:
                assert prometheus.poll() is None, log.read_text()
                try:
                    return bool(found.query("up == 1"))
                except URLError:
                    return False

            eventually(scraped)
            yield found


def test_the_loop_was_stopped_and_the_trip_is_counted(stage: Stage) -> None:
    assert stage.told["ending"] == "repeated_call"
    expression = 'loopguard_violations_total{loopguard_action="abort"} > 0'
    [(labels, value)] = eventually(lambda: stage.query(expression))

    assert value == 1
    assert {name: labels[name] for name in labels if not name.startswith("otel_scope_")} == {
        "__name__": "loopguard_violations_total",
        "gen_ai_agent_name": "scout",
        "instance": stage.target,
        "job": "agents",
        "loopguard_action": "abort",
        "loopguard_rule": "repeated_result",
    }


def test_its_exemplar_is_the_span_of_the_offending_step(stage: Stage) -> None:
    trace_id, span_id = stage.told["offending"]["abort"]
    expression = 'loopguard_violations_total{loopguard_action="abort"}'
    [(labels, exemplar)] = eventually(lambda: stage.exemplars(expression))

    assert labels["gen_ai_agent_name"] == "scout"
    assert exemplar == {"trace_id": trace_id, "span_id": span_id}
    assert span_id in stage.told["exported"]


def test_buckets_of_the_application_have_exemplars_too(stage: Stage) -> None:
    found = eventually(lambda: stage.exemplars("agent_turn_duration_seconds_bucket"))

    assert [labels["le"] for labels, _ in found] == ["1.0"]
    assert found[0][1]["trace_id"] == stage.told["offending"]["abort"][0]


def test_promtool_finds_nothing_wrong_with_the_text(stage: Stage) -> None:
    with urllib.request.urlopen(f"http://{stage.target}/metrics", timeout=30) as answer:
        text = answer.read()
    done = subprocess.run(
        [programs("promtool")["promtool"], "check", "metrics"],
        input=text,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr.decode(), done.stdout.decode()) == (0, "", "")

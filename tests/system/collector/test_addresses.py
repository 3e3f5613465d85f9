"""Who sends to whom by default in `collector-config`: nothing goes round, no two want one port."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
import yaml

from tests._collector import CONFIGURATIONS

FILES = sorted(path.name for path in CONFIGURATIONS.glob("*.yaml"))
TEXTS = {name: (CONFIGURATIONS / name).read_text() for name in FILES}
SETTINGS: dict[str, dict[str, Any]] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
PAGE = (CONFIGURATIONS.parent / "docs" / "collector.md").read_text()
SDK_PORTS = {"4317", "4318"}
"""Where SDKs send to by default: of the gateway, or of a sidecar on another machine than it."""
FAN_OUTS = [name for name in FILES if name.startswith("fan-out-")]
FAMILIES = {
    "all": FILES,
    "gateway": ["gateway.yaml"],
    "agent": ["agent.yaml"],
    "fan-out": FAN_OUTS,
    "Kafka": ["kafka-in.yaml", "kafka-out.yaml"],
    "`kafka-in.yaml`": ["kafka-in.yaml"],
    "all that take OTLP by HTTP": ["agent.yaml", *FAN_OUTS, "gateway.yaml"],
    "all that take OTLP": ["agent.yaml", *FAN_OUTS, "gateway.yaml", "kafka-out.yaml"],
    "gateway, `kafka-in.yaml`": ["gateway.yaml", "kafka-in.yaml"],
}
"""What the page calls files that read a variable."""


def ports(settings: object) -> Iterator[str]:
    """Yield the ports of the loopback addresses in a part of a file."""
    if isinstance(settings, Mapping):
        for value in cast("Mapping[str, object]", settings).values():
            yield from ports(value)
    elif isinstance(settings, list):
        for value in cast("list[object]", settings):
            yield from ports(value)
    elif isinstance(settings, str):
        yield from re.findall(r"127\.0\.0\.1:(\d+)", settings)


def takes(name: str) -> set[str]:
    """Return where a file takes spans from: ports, and topics of Kafka."""
    found = {*ports(SETTINGS[name]["receivers"])} - {
        *ports(SETTINGS[name]["receivers"].get("kafka"))
    }
    if "kafka" in SETTINGS[name]["receivers"]:
        found |= {*SETTINGS[name]["receivers"]["kafka"]["traces"]["topics"]}
    if name == "gateway.yaml":  # the further ones, behind a fan-out
        found |= {port for each in FAN_OUTS for port in sends_to(each)}
    return found


def sends_to(name: str) -> set[str]:
    exporters = SETTINGS[name]["exporters"]
    found = {port for kind, each in exporters.items() if kind != "kafka" for port in ports(each)}
    if "kafka" in exporters:
        found.add(exporters["kafka"]["traces"]["topic"])
    return found


def behind(name: str) -> set[str]:
    """Return the files that what `name` sends goes through by default."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        targets = sends_to(waiting.pop())
        reached = {each for each in FILES if targets & takes(each)} - found
        found |= reached
        waiting += reached
    return found


@pytest.mark.parametrize("name", FILES)
def test_nothing_comes_back_to_where_it_was(name: str):
    assert name not in behind(name)


def test_ways_are_followed():
    """Else the test above would hold of anything."""
    assert behind("agent.yaml") == {"fan-out-by-trace.yaml", "gateway.yaml"}
    assert behind("kafka-out.yaml") == {"kafka-in.yaml"}


def test_no_two_files_listen_on_one_port():
    listened: Counter[str] = Counter()
    for name, settings in SETTINGS.items():
        [own] = re.findall(r"OWN_METRICS_PORT:-(\d+)", TEXTS[name])
        receivers = {kind: each for kind, each in settings["receivers"].items() if kind != "kafka"}
        listened.update({own, *ports(receivers), *ports(settings["extensions"])})
    assert {port for port, files in listened.items() if files > 1} == SDK_PORTS


@pytest.mark.parametrize("name", FILES)
def test_its_own_metrics_are_where_the_variables_say(name: str):
    [reader] = SETTINGS[name]["service"]["telemetry"]["metrics"]["readers"]
    own = reader["pull"]["exporter"]["prometheus"]
    assert own["host"] == "${env:OWN_METRICS_HOST:-127.0.0.1}"
    assert own["port"].startswith("${env:OWN_METRICS_PORT:-")


def test_the_page_says_which_files_read_a_variable():
    said = {
        variable: sorted(FAMILIES[of])
        for variables, of in re.findall(r"^\| (`[A-Z].*?) \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
        for variable in re.findall(r"`(\w+)`", variables)
    }
    read = {
        variable: [name for name in FILES if f"${{env:{variable}" in TEXTS[name]]
        for text in TEXTS.values()
        for variable in re.findall(r"\$\{env:(\w+)", text)
    }
    assert said == read


@pytest.mark.parametrize("name", FILES)
def test_the_page_says_which_ports_a_file_has(name: str):
    [row] = re.findall(rf"^\| `{re.escape(name)}` \|(.*\d{{4,}}.*)\|$", PAGE, re.MULTILINE)
    listening = {*ports(SETTINGS[name]["extensions"])} | {*ports(SETTINGS[name]["receivers"])}
    own = re.findall(r"OWN_METRICS_PORT:-(\d+)", TEXTS[name])
    targets = {port for each in SETTINGS[name]["exporters"].values() for port in ports(each)}
    assert set(re.findall(r"\d{4,5}", row)) == {*own, *listening, *targets}

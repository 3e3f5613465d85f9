"""Every file of `collector-config`: a real collector takes it, or its keys are the known ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from scripts.collector_binary import collector_binary
from tests._collector import CONFIGURATIONS, KEYED

FILES = sorted(path.name for path in CONFIGURATIONS.glob("*.yaml"))
PAGE = CONFIGURATIONS.parent / "docs" / "collector.md"
NOT_RUN = {name for name in FILES if name.startswith("kafka-")}
"""Those with components whose Go modules are not served at the collector's release."""
SECRETS = {"LOOPGUARD_HASH_KEY"}
"""Variables without a default: none would be secret."""

KAFKA_KEYS = {
    "exporters": {
        *("auth", "brokers", "client_id", "partition_traces_by_id", "producer", "protocol_version"),
        *("retry_on_failure", "sending_queue", "timeout", "tls", "traces"),
    },
    "receivers": {
        *("auth", "brokers", "client_id", "group_id", "initial_offset", "message_marking"),
        *("protocol_version", "session_timeout", "tls", "traces"),
    },
}
KAFKA_PARTS = {
    ("exporters", "traces"): {"topic", "encoding"},
    ("exporters", "producer"): {"compression", "max_message_bytes", "required_acks"},
    ("receivers", "traces"): {"topics", "encoding", "exclude_topics"},
    ("receivers", "message_marking"): {"after", "on_error", "on_permanent_error"},
}
"""Names and keys of the two Kafka components in 0.161, as far as they are of use here."""

every_file = pytest.mark.parametrize("name", FILES)


def validate(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    file = folder / "collector.yaml"
    file.write_text(text)
    return subprocess.run(
        [collector_binary(), "validate", f"--config={file}"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", sorted({*FILES} - NOT_RUN))
def test_a_collector_takes_it(name: str, tmp_path: Path):
    checked = validate((CONFIGURATIONS / name).read_text(), tmp_path, **KEYED)
    assert checked.returncode == 0, checked.stderr
    # An old name of a component still works, and is warned of.
    assert "deprecated" not in checked.stderr.lower()


@pytest.mark.parametrize("name", sorted({*FILES} - NOT_RUN))
def test_a_collector_refuses_it_with_a_key_that_it_does_not_know(name: str, tmp_path: Path):
    text = (CONFIGURATIONS / name).read_text()
    wrong = text.replace("check_interval: 1s", "check_interval: 1s\n    no_such_key: 1", 1)
    checked = validate(wrong, tmp_path, **KEYED)
    assert checked.returncode != 0
    assert "no_such_key" in checked.stderr


def test_the_gateway_does_not_start_without_a_key_for_hashes(tmp_path: Path):
    text = (CONFIGURATIONS / "gateway.yaml").read_text()
    for key in ("", "short"):
        checked = validate(text, tmp_path, LOOPGUARD_HASH_KEY=key)
        assert checked.returncode != 0
        assert "hmac_key must" in checked.stderr


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_what_is_not_run_has_known_keys_and_says_so(name: str):
    text = (CONFIGURATIONS / name).read_text()
    assert text.startswith("# NOT RUN: ")
    assert re.search(rf"`{name}`[^\n]*not run", PAGE.read_text())
    found = cast("dict[str, dict[str, Any]]", yaml.safe_load(text))
    kafka = [(kind, found[kind]["kafka"]) for kind in KAFKA_KEYS if "kafka" in found.get(kind, {})]
    assert len(kafka) == 1
    kind, settings = kafka[0]
    assert set(settings) <= KAFKA_KEYS[kind]
    for key, value in settings.items():
        if (kind, key) in KAFKA_PARTS:
            assert set(value) <= KAFKA_PARTS[kind, key]


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_the_rest_of_what_is_not_run_is_taken(name: str, tmp_path: Path):
    """With another component in the place of Kafka's, a collector takes the file."""
    text = (CONFIGURATIONS / name).read_text()
    found = yaml.safe_load(text)
    if "kafka" in found["receivers"]:
        found["receivers"] = {"otlp": {"protocols": {"grpc": {}}}}
        found["service"]["pipelines"]["traces"]["receivers"] = ["otlp"]
    else:
        found["exporters"] = {"debug": {}}
        found["service"]["pipelines"]["traces"]["exporters"] = ["debug"]
    checked = validate(json.dumps(found), tmp_path)  # JSON is YAML
    assert checked.returncode == 0, checked.stderr


@every_file
def test_everything_that_is_declared_is_used(name: str):
    found = yaml.safe_load((CONFIGURATIONS / name).read_text())
    pipelines = found["service"]["pipelines"].values()
    for kind in ("receivers", "processors", "exporters"):
        used = {each for pipeline in pipelines for each in pipeline.get(kind, ())}
        assert set(found.get(kind, {})) <= used
    connected = {each for pipeline in pipelines for each in pipeline["receivers"]}
    assert set(found.get("connectors", {})) <= connected
    assert set(found["extensions"]) == set(found["service"]["extensions"])


@every_file
def test_each_pipeline_that_takes_from_outside_limits_memory_first(name: str):
    found = yaml.safe_load((CONFIGURATIONS / name).read_text())
    outside = set(found["receivers"])
    for pipeline in found["service"]["pipelines"].values():
        if outside & set(pipeline["receivers"]):
            assert pipeline["processors"][0] == "memory_limiter"


@every_file
def test_it_listens_on_loopback_by_default_and_has_no_secret(name: str):
    text = (CONFIGURATIONS / name).read_text()
    variables = re.findall(r"\$\{env:(\w+)(:-[^}]*)?\}", text)
    assert {variable for variable, default in variables if not default} <= SECRETS
    listening = [
        value
        for kind in ("receivers", "extensions")
        for key, value in leaves(yaml.safe_load(text)[kind])
        if key == "endpoint"
    ]
    assert listening
    for endpoint in listening:
        assert re.fullmatch(r"\$\{env:\w+:-127\.0\.0\.1:\d+\}", endpoint)


@every_file
def test_it_says_how_to_run_it_and_on_what(name: str):
    text = (CONFIGURATIONS / name).read_text()
    assert f"--config {name}\n" in text
    assert re.search(r"Needs opentelemetry-collector-contrib 0\.\d+ or later", text)


def leaves(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from leaves(cast("dict[str, Any]", value))
        else:
            yield key, value

"""The collector that is built: what is in it, and what is said where it cannot be built."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from scripts import collector_binary
from tests._collector import CONFIGURATIONS

KINDS = ("receivers", "processors", "exporters", "connectors", "extensions")


def test_it_has_what_the_configurations_name():
    """But Kafka, whose modules are not served at this release."""
    said = subprocess.run(
        [collector_binary.collector_binary(), "components"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    built = yaml.safe_load(said)
    named = {
        (kind, each.partition("/")[0])
        for file in CONFIGURATIONS.glob("*.yaml")
        for kind in KINDS
        for each in yaml.safe_load(file.read_text()).get(kind, {})
    }
    has = {(kind, each["name"]) for kind in KINDS for each in built[kind]}
    assert named - has == {("receivers", "kafka"), ("exporters", "kafka")}
    assert built["buildinfo"]["version"] == "0.161.0"


def test_all_modules_of_the_collector_are_of_one_release():
    text = (collector_binary.SOURCES / "go.mod").read_text()
    direct = [line for line in text.splitlines() if "// indirect" not in line]
    found = re.findall(
        r"open-telemetry/\S+ v(\S+)|opentelemetry.io/collector\S* v(\S+)", "\n".join(direct)
    )
    assert {max(each) for each in found} == {"0.161.0", "1.67.0"}


def test_without_go_it_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(collector_binary, "LIKELY", ())
    with pytest.raises(collector_binary.CollectorBuildError, match=r"Go 1\.26 or later is needed"):
        collector_binary.find_go()
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    with pytest.raises(collector_binary.CollectorBuildError, match=r"go is 'go1\.19\.8'"):
        collector_binary.find_go()


def test_another_go_makes_another_binary():
    assert collector_binary.key("go1.26.1") != collector_binary.key("go1.26.2")


def test_a_build_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "go.mod").write_text("module broken\n\ngo 1.26\n")
    (tmp_path / "go.sum").write_text("")
    (tmp_path / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    monkeypatch.setattr(collector_binary, "SOURCES", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(collector_binary.CollectorBuildError, match="undefined: nonsense"):
        collector_binary.collector_binary()
    assert not [*(tmp_path / "cache").rglob("loopguard-collector")]

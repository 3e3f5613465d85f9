"""The compose file of examples/stack: what it names is there, and no port is open to others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parents[2] / "examples" / "stack"
COMPOSE: dict[str, Any] = yaml.safe_load((HERE / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
FILES = sorted(path.name for path in HERE.glob("*.yaml"))

every_service = pytest.mark.parametrize("name", sorted(SERVICES))


def ports_of(name: str) -> set[int]:
    """The ports that a service is reached at by the others, or from this machine."""
    said = [*SERVICES[name].get("ports", ()), *map(str, SERVICES[name].get("expose", ()))]
    return {int(each.rpartition(":")[2]) for each in said} | INSIDE.get(name, set())


INSIDE = {"collector": {8888}, "tempo": {4317}}
"""Ports that services use among themselves: of the collector's own metrics, and for traces."""


@every_service
def test_images_have_a_version_and_no_registry(name: str) -> None:
    assert re.fullmatch(r"[a-z-]+/[a-z-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


@every_service
def test_what_is_mounted_is_there(name: str) -> None:
    for mounted in SERVICES[name]["volumes"]:
        source, target, *options = mounted.split(":")
        if source.startswith("."):
            assert (HERE / source).resolve().exists(), mounted
            assert options == ["ro"], mounted
        else:
            assert source in COMPOSE["volumes"], mounted
        assert target.startswith("/"), mounted


@every_service
def test_ports_are_those_of_this_machine_alone(name: str) -> None:
    for port in SERVICES[name]["ports"]:
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), port


@every_service
def test_it_waits_for_services_that_exist(name: str) -> None:
    assert set(SERVICES[name].get("depends_on", ())) <= SERVICES.keys()


@every_service
def test_configurations_that_it_is_told_of_are_mounted(name: str) -> None:
    mounted = [each.split(":")[1] for each in SERVICES[name]["volumes"]]
    for word in SERVICES[name].get("command", ()):
        path = word.partition("=")[2]
        if path.startswith("/") and "." in path:
            assert path in mounted, word


@pytest.mark.parametrize("file", FILES)
def test_addresses_in_it_are_those_of_services(file: str) -> None:
    named = re.findall(r"\b([a-z]+):(\d{4,5})\b", (HERE / file).read_text())
    for name, port in named:
        if name != "localhost":
            assert name in SERVICES, f"{name}:{port}"
            assert int(port) in ports_of(name), f"{name}:{port}"


def test_the_collector_is_told_only_what_its_configuration_asks_for() -> None:
    gateway = (HERE / "../../collector-config/gateway.yaml").read_text()
    asked = set(re.findall(r"\$\{env:([A-Z_]+)", gateway))
    assert SERVICES["collector"]["environment"].keys() <= asked


def test_the_overlay_names_pipelines_that_there_are() -> None:
    gateway = yaml.safe_load((HERE / "../../collector-config/gateway.yaml").read_text())
    overlay = yaml.safe_load((HERE / "collector.yaml").read_text())
    assert overlay["service"]["pipelines"].keys() <= gateway["service"]["pipelines"].keys()


def test_docker_compose_reads_it_where_it_is_installed() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], check=False).returncode:
        return  # what is above has to do
    key = {"LOOPGUARD_HASH_KEY": "made-up"}
    command = [docker, "compose", "--file", HERE / "compose.yaml", "config", "--quiet"]
    read = subprocess.run(command, check=False, env={**os.environ, **key}, capture_output=True)
    assert read.returncode == 0, read.stderr


def test_no_secret_stands_in_it() -> None:
    said = (HERE / "compose.yaml").read_text()
    assert "PASSWORD" not in said
    assert "${LOOPGUARD_HASH_KEY:?" in said

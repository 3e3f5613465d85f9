"""What holds for the tree as a whole, and the script that makes its environments."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from scripts import environment

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("otel_loopguard/**/*.py"))
PINNED = re.compile(r"[a-z0-9][a-z0-9._-]*==[0-9a-z.]+( ; [a-z_]+ .+)?")


@pytest.mark.parametrize("name", environment.ENVIRONMENTS)
def test_a_constraint_file_has_nothing_but_versions(name: str) -> None:
    lines = environment.constraints(name).read_text().splitlines()

    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line) or "://" in line] == []


def test_no_source_file_is_longer_than_three_hundred_lines() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in SOURCES}

    assert lengths
    assert {path: length for path, length in lengths.items() if length > 300} == {}


def test_every_floor_of_the_core_is_held_to_full_coverage() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    omitted = set(
        re.findall(r'^  "otel_loopguard/([a-z_]+)(?:\.py|/\*)",$', settings, re.MULTILINE)
    )
    core = {"canonical", "detectors", "dialects", "endings", "guard", "policy", "spans", "steps"}

    assert "processor" in omitted
    assert omitted & core == set()


def test_an_interpreter_that_runs_is_found(tmp_path: Path) -> None:
    # sys.executable is an environment's: the interpreter it was made from is what counts.
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"

    assert environment.probe(base) == environment.Python(sys.version_info[:3], base)
    assert environment.probe(Path(sys.executable)) is None, "an environment is no base for another"
    assert environment.probe(tmp_path / "python3") is None


def test_a_shim_that_fails_is_passed_over(tmp_path: Path) -> None:
    shim = tmp_path / "python3"
    shim.write_text("#!/bin/sh\necho 'python3: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)

    assert environment.probe(shim) is None


def test_an_environment_is_made_anew_when_what_it_is_made_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    pins = tmp_path / "requirements" / "test.txt"
    pins.write_text("rich==15.0.0\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    python = environment.Python((3, 12, 1), Path("/usr/bin/python3"))
    before = environment.key("test", python)

    assert environment.key("test", python) == before
    assert environment.key("test", python._replace(path=Path("/opt/python3"))) != before
    pins.write_text("rich==15.0.1\n")
    assert environment.key("test", python) != before

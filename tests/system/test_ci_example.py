"""The example project of `examples/ci`, as a user has it: green with its guard, red without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests._command import ROOT

pytestmark = pytest.mark.timeout(900)

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "_otel_loopguard_pytest", "-W", "ignore")
LOOPGUARD = (sys.executable, "-m", "otel_loopguard.cli")


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        text=True,
        timeout=800,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the project."""
    return shutil.copytree(
        ROOT / "examples" / "ci", tmp_path / "ci", ignore=shutil.ignore_patterns("__pycache__")
    )


def test_its_tests_are_green_and_say_so(project: Path):
    evidence = "--loopguard-evidence=build/evidence.json"
    result = run(*PYTEST, evidence, cwd=project)
    assert result.returncode == 0, result.stdout
    assert "6 passed" in result.stdout
    assert "2 runs stopped (1 repeated_result, 1 llm_call_budget), 2 completed" in result.stdout
    assert (project / "build" / "evidence.json").is_file()


def test_its_recordings_are_judged_by_its_policy(project: Path):
    judged = ("--policy", "loopguard.toml", "--labels", "recordings/labels.json")
    files = ("recordings/healthy.jsonl", "recordings/runaway.jsonl")
    result = run(*LOOPGUARD, "backtest", *judged, "--fail-on-false-trips", "0", *files, cwd=project)
    assert result.returncode == 0, result.stderr
    assert "1 of 1 (100 %" in result.stdout


def test_without_its_guard_they_are_red(project: Path):
    agent = project / "support_agent.py"
    asked = agent.read_text("utf-8")
    assert asked.count("if not decision.allowed:") == 1
    agent.write_text(asked.replace("if not decision.allowed:", "if False:"), "utf-8")
    result = run(*PYTEST, "tests/test_guard.py", cwd=project)
    assert result.returncode == 1
    assert "2 failed, 2 passed" in result.stdout


def test_every_change_of_its_guard_is_noticed(project: Path):
    result = run(*LOOPGUARD, "mutation-check", "--", *PYTEST, "tests/test_guard.py", cwd=project)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert "8 changes, all noticed." in result.stdout

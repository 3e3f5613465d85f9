"""The examples of tests in a project of their own: only the package, its extra and pytest."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "testing"
GUARDS = re.compile(
    r"^ +if not guard\.check.*\n +return\n|^otel_loopguard\.install.*\n", re.MULTILINE
)


def run(*command: object, directory: Path, code: int = 0) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that the built package is installed in."""
    made = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made, directory=ROOT)
    (wheel,) = made.glob("*.whl")
    run(sys.executable, "-m", "venv", made / "environment", directory=made)
    python = made / "environment" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[testing]", "pytest", directory=made)
    return python


def test_the_examples_pass(python: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)

    said = run(python, "-W", "error", "-m", "pytest", "-q", directory=tmp_path)

    assert "\n2 passed in " in said
    stopped = "2 runs stopped (1 tool_call_budget, 1 repeated_result)"
    assert f"\nloopguard: {stopped}, 0 completed, 0 guards missing\n" in said


def test_without_their_guards_they_fail_and_say_why(python: Path, tmp_path: Path) -> None:
    for example in EXAMPLES.glob("*.py"):
        without, guards = GUARDS.subn("", example.read_text())
        assert guards == 1
        (tmp_path / example.name).write_text(without)

    said = run(python, "-W", "error", "-m", "pytest", "-q", directory=tmp_path, code=1)

    assert "\n2 failed in " in said
    assert said.count("E       AssertionError: the run was still going after 2 s") == 2
    assert "\nE       ├─ tool lookup: " in said
    assert "\nE       └─ agent shop: " in said
    assert " more like these 2\n" in said
    assert said.count("\nE       check: no guard is installed: ") == 2
    assert "\nloopguard: 0 runs stopped, 0 completed, 2 guards missing\n" in said

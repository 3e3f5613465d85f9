"""What is said where an extra is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


SERVER = "from otel_loopguard.testing import model_server"
RECEIVER = "import otel_loopguard.testing.otlp_receiver"


def without(missing: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run Python where a package that fails to import stands in for one that is not installed."""
    (folder / f"{missing}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{missing}'\", name='{missing}')\n"
    )
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        timeout=240,
    )


@pytest.mark.parametrize(
    ("missing", "statement"),
    [("uvicorn", SERVER), ("uvicorn", RECEIVER), ("starlette", RECEIVER)],
    ids=["a server", "a receiver", "a receiver's application"],
)
def test_testing_without_its_extra_says_how_to_install_it(
    tmp_path: Path, missing: str, statement: str
):
    result = without(missing, tmp_path, "-c", statement)
    assert result.returncode == 1
    assert result.stderr.decode().splitlines()[-1] == (
        f"ModuleNotFoundError: otel_loopguard.testing needs {missing!r}; "
        "install it with: pip install 'otel-loopguard[testing]'"
    )


def test_a_fake_model_without_the_extra_says_how_to_install_it(tmp_path: Path):
    result = without("uvicorn", tmp_path, "-m", "otel_loopguard.cli", "fake-model")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode() == (
        "fake-model needs 'uvicorn', which is not installed; "
        "install it with: pip install 'otel-loopguard[testing]'\n"
    )


def test_the_other_commands_and_the_list_of_scripts_need_no_server(tmp_path: Path):
    result = without("uvicorn", tmp_path, "-m", "otel_loopguard.cli", "--help")
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"fake-model" in result.stdout
    listed = without("uvicorn", tmp_path, "-m", "otel_loopguard.cli", "fake-model", "--list")
    assert (listed.returncode, listed.stderr) == (0, b"")
    assert b"endless" in listed.stdout

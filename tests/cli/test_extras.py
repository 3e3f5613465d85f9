"""What is said where an extra is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_testing_without_its_extra_says_how_to_install_it(tmp_path: Path, missing: str):
    # A package that fails to import stands in for the missing one, as an uninstalled one does.
    (tmp_path / f"{missing}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{missing}'\", name='{missing}')\n"
    )
    for module in ("otel_loopguard.testing", "otel_loopguard.testing.otlp_receiver"):
        result = subprocess.run(
            [sys.executable, "-c", f"import {module}"],
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            timeout=60,
        )
        assert result.returncode == 1
        assert result.stderr.decode().splitlines()[-1] == (
            f"ModuleNotFoundError: otel_loopguard.testing needs {missing!r}; "
            "install it with: pip install 'otel-loopguard[testing]'"
        )

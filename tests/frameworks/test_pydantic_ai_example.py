"""The agent of `docs/getting-started.md`, run as a newcomer runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.frameworks.test_pydantic_ai import FRAMEWORK

ROOT = Path(__file__).parents[2]


def test_the_agent_of_getting_started_is_stopped():
    result = subprocess.run(
        [sys.executable, "examples/stopped_agent.py"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=50,
    )
    said = "stopped by repeated_result after 5 model calls\n"
    assert (result.stdout, result.stderr, result.returncode) == (said, "", 0)
    assert said in (ROOT / "docs" / "getting-started.md").read_text("utf-8")


__all__ = ["FRAMEWORK"]

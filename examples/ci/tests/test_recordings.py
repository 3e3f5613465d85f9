"""What the policy makes of recorded runs. They were sanitised: see the README."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
STOPPED = 3


def replay(name: str) -> int:
    policy = str(PROJECT / "loopguard.toml")
    recording = str(PROJECT / "recordings" / name)
    command = [sys.executable, "-m", "otel_loopguard.cli", "replay", "--fail-on-trip"]
    return subprocess.run([*command, "--policy", policy, recording], check=False).returncode


def test_a_healthy_run_of_last_week_would_not_have_been_stopped():
    assert replay("healthy.jsonl") == 0


def test_the_runaway_of_last_week_would_have_been_stopped():
    assert replay("runaway.jsonl") == STOPPED

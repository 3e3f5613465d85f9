"""`python -m scripts.stack`, as `make stack` runs it: what it has started ends with it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.stack.http_client import is_ready

ROOT = Path(__file__).parents[2]
STOPS_S = 60
SLEEP = "import time; time.sleep(600)"
EXIT_CODES = {signal.SIGINT: 0, signal.SIGTERM: 128 + signal.SIGTERM}


@contextmanager
def ended(process: subprocess.Popen[str]) -> Generator[None]:
    """End a process when the block is left, whatever has failed in it: `Popen` would wait on."""
    try:
        yield
    finally:
        process.terminate()  # it ends what it has started
        try:
            process.wait(STOPS_S)
        except subprocess.TimeoutExpired:
            process.kill()


def test_a_failure_ends_what_was_started() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", SLEEP], text=True) as sleeping,
        pytest.raises(AssertionError, match="as expected"),
        ended(sleeping),
    ):
        raise AssertionError("as expected")
    assert sleeping.returncode == -signal.SIGTERM


@pytest.mark.parametrize("number", sorted(EXIT_CODES), ids=["Ctrl-C", "terminated"])
def test_all_that_was_started_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-m", "scripts.stack"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        ) as stack,
        ended(stack),
    ):
        assert stack.stdout is not None
        told = ""
        for line in stack.stdout:
            told += line
            if line.startswith("Ctrl-C ends it all"):
                break
        addresses = re.findall(r"http://127\.0\.0\.1:\d+", told)
        assert len(addresses) == 4, told
        assert is_ready(f"{addresses[0]}/-/ready")
        stack.send_signal(number)
        rest = stack.stdout.read()
        assert stack.wait(STOPS_S) == EXIT_CODES[number], told + rest
    assert not any(is_ready(address) for address in addresses)
    assert list(tmp_path.iterdir()) == []

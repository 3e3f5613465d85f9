"""The agent of examples/stack with a guard that asks somebody else to stop its runs.

STOP_URL is who is asked; with LATE there is another one besides, who does not answer in time.
Nothing built in stops a run here: while nobody does, it goes on.
"""

from __future__ import annotations

import os
import runpy
import time
from pathlib import Path

from otel_loopguard import AbortRequest, install, webhook

AGENT = Path(__file__).resolve().parents[2] / "examples" / "stack" / "agent.py"

TIMEOUT_S = 1.0


def ask_operator(_: AbortRequest) -> None:
    """Wait for an operator who is out for lunch."""
    time.sleep(2 * TIMEOUT_S)


if __name__ == "__main__":
    late = [ask_operator] if os.environ.get("LATE") else []
    # The guard of `opentelemetry-instrument` is taken off by this one.
    install(
        mode="enforce",
        abort=(),
        integrations=(),
        abort_hooks=[webhook(os.environ["STOP_URL"]), *late],
        hook_timeout_s=TIMEOUT_S,
    )
    runpy.run_path(str(AGENT), run_name="__main__")

"""The agent of examples/stack with a guard that asks somebody else to stop its runs.

STOP_URL is who is asked. Nothing built in stops a run here: while nobody answers, it goes on.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path

from otel_loopguard import install, webhook

AGENT = Path(__file__).resolve().parents[2] / "examples" / "stack" / "agent.py"

if __name__ == "__main__":
    # The guard of `opentelemetry-instrument` is taken off by this one.
    install(
        mode="enforce",
        abort=(),
        integrations=(),
        abort_hooks=[webhook(os.environ["STOP_URL"])],
        hook_timeout_s=float(os.environ.get("STOP_TIMEOUT_S", "2")),
    )
    runpy.run_path(str(AGENT), run_name="__main__")

"""What stands in `examples` is what the documentation shows and says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_stopped_agent_is_the_one_that_getting_started_shows():
    # The block is marked `py`, not `python`: it needs a framework, and Sybil leaves it alone.
    page = (ROOT / "docs" / "getting-started.md").read_text("utf-8")
    shown = [block.split("```\n")[0] for block in page.split("```py\n")[1:]]
    assert shown == [(ROOT / "examples" / "stopped_agent.py").read_text("utf-8")]


def test_the_reference_loop_completes_and_is_stopped():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "run_agent.py"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )

    assert done.stdout.splitlines() == [
        "complete: 2 model calls, 1 tool calls, rule None, output 'I have found nothing.'",
        "repeated_call: 5 model calls, 5 tool calls, rule repeated_result, output None",
    ]
    assert done.stderr == ""


def test_prometheus_is_led_from_a_trip_to_its_span():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "prometheus.py"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )

    [abort] = [line for line in done.stdout.splitlines() if '"abort"' in line]
    assert abort.startswith('loopguard_violations_total{gen_ai_agent_name="agent",')
    assert re.search(r' 1.0 # {span_id="[0-9a-f]{16}",trace_id="[0-9a-f]{32}"} 1.0 [0-9.]+$', abort)
    assert done.stderr == ""

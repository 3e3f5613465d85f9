"""What stands in `examples` is what the documentation shows and says."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_stopped_agent_is_the_one_that_getting_started_shows():
    # The block is marked `py`, not `python`: it needs a framework, and Sybil leaves it alone.
    page = (ROOT / "docs" / "getting-started.md").read_text("utf-8")
    shown = [block.split("```\n")[0] for block in page.split("```py\n")[1:]]
    assert shown == [(ROOT / "examples" / "stopped_agent.py").read_text("utf-8")]

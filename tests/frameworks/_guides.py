"""The test that an integration's page shows, played as it stands, and without its guard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "integrations"

RUNAWAY = "test_a_runaway_is_stopped"

_HEADING = "\n## Test your guard\n"
_GUARD = "  # your guard\n"
_TRACING = "  # your tracing\n"
_TIMEOUT = re.compile(r"(?<=\btimeout=)\d+")
_BOUND_S = 30
"""Seconds in which a runaway has ended that nothing but the end of its time stops."""
_PATIENCE_S = 240
"""Seconds for both of them, on a machine that has other things to do."""

# One process, because what takes the time is the import of the framework.
_PROGRAM = f"""
import pytest
from otel_loopguard import uninstall

options = ["-q", "-p", "no:cacheprovider", "--color=no"]
guarded = pytest.main([*options, "test_guarded.py"])
uninstall()
print("= without the guard")
unguarded = pytest.main([*options, "test_unguarded.py::{RUNAWAY}"])
print(f"= {{guarded:d}} {{unguarded:d}}")
"""


class Guide(NamedTuple):
    """A test file of a page, and the same without the line that installs the guard."""

    guarded: str
    unguarded: str


class Played(NamedTuple):
    """What pytest said of a guide."""

    guarded: str
    """All that it printed of the test file as it stands."""
    unguarded: str
    """All that it printed of the runaway without the guard."""
    exit_codes: str
    """Those of both."""


def guide_of(integration: str) -> Guide:
    """Read the test file that the page of an integration ends with."""
    page = (PAGES / f"{integration}.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^```py\n(.*?)^```$", page.partition(_HEADING)[2], re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 1, f"{integration}.md shows one test file under{_HEADING}"
    lines = blocks[0].splitlines(keepends=True)
    others = [line for line in lines if not line.endswith(_GUARD)]
    assert len(lines) - len(others) == 1, f"one line of it ends in{_GUARD}"
    # Whoever waits for a guard that is not there need not wait for as long.
    hasty = _TIMEOUT.sub(lambda timeout: f"{int(timeout[0]) // 6}", "".join(others))
    return Guide(blocks[0], hasty)


def played(guide: Guide, folder: Path) -> Played:
    """Play both in a process of their own, as in a project of somebody else's."""
    (folder / "test_guarded.py").write_text(guide.guarded, encoding="utf-8")
    (folder / "test_unguarded.py").write_text(guide.unguarded, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
    guarded, _, rest = ran.stdout.partition("\n= without the guard\n")
    unguarded, _, exit_codes = rest.rpartition("\n= ")
    return Played(guarded, unguarded, exit_codes.partition("\n")[0])


def hold(integration: str, folder: Path) -> None:
    """See that the test of a page stands, and that it fails in time where nothing guards."""
    guide = guide_of(integration)
    said = played(guide, folder)
    shown = f"{said.guarded}\n{said.unguarded}"
    assert said.exit_codes == "0 1", shown
    assert "\n2 passed" in said.guarded, shown
    assert f"::{RUNAWAY} - AssertionError: the run was " in said.unguarded, shown
    took = re.search(r"^1 failed\b.* in ([\d.]+)s", said.unguarded, re.MULTILINE)
    assert took is not None, shown
    assert float(took[1]) < _BOUND_S, shown
    assert "check: no guard is installed" in said.unguarded, shown
    assert re.search(r"^E +came: .* after [1-9][\d,]* model call", said.unguarded, re.MULTILINE), (
        shown
    )
    assert _TRACING not in guide.guarded or "└─" in said.unguarded, f"no tree\n{shown}"

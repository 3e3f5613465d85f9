"""The shipped alert rules, at a pace that can be watched: a minute of theirs lasts a second.

Expressions, labels and annotations stay as they are; what changes is how long things take:

- windows and offsets in expressions, `[15m]`, `offset 10m`;
- `for`, `keep_firing_for`, `interval`, and how long Alertmanager waits;
- the thresholds on ages and on seconds that `THRESHOLDS` names, each with what takes its place.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "dashboards" / "alerting" / "rules"

SHORTER = 60
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_IN_EXPRESSIONS = re.compile(r"(?P<before>\[|\[\d+[smhdw]:|offset )(?P<n>\d+)(?P<unit>[smhdw])\b")
_OF_RULES = re.compile(
    r"(?P<before>^\s*(?:- )?"
    r"(?:for|keep_firing_for|interval|group_wait|group_interval|repeat_interval): )"
    r"(?P<n>\d+)(?P<unit>[smhdw])\b",
    re.MULTILINE,
)
SHORTEST_S = 1
"""Nothing is evaluated more often, and no window is shorter: Prometheus is told once a second."""

THRESHOLDS = (("loopguard_run_age_max_seconds) > 1800", "loopguard_run_age_max_seconds) > 30"),)
"""What stands in a rule, and what takes its place; each has to be there."""


def shipped() -> list[Path]:
    """The files of rules, as they are shipped.

    Raises:
        FileNotFoundError: there are none.

    """
    found = sorted(SHIPPED.glob("*.yaml"))
    if not found:
        raise FileNotFoundError(f"{SHIPPED}: expected files of rules, found none")
    return found


def hurried(folder: Path) -> list[Path]:
    """Write the shipped rules into a folder, at sixty times their pace; returns the files."""
    texts = {path.name: path.read_text() for path in shipped()}
    for old, _ in THRESHOLDS:
        if not any(old in text for text in texts.values()):
            raise ValueError(f"{old!r} stands in no rule under {SHIPPED}; see THRESHOLDS")
    folder.mkdir(exist_ok=True)
    return [written(folder / name, sooner(text, THRESHOLDS)) for name, text in texts.items()]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def sooner(text: str, thresholds: Sequence[tuple[str, str]] = ()) -> str:
    """The same rules, sixty times as fast."""
    lower = functools.reduce(lambda so_far, pair: so_far.replace(*pair), thresholds, text)
    return _OF_RULES.sub(_shorter, _IN_EXPRESSIONS.sub(_shorter, lower))


def _shorter(found: re.Match[str]) -> str:
    seconds = int(found["n"]) * _SECONDS[found["unit"]]
    shorter = max(round(seconds / SHORTER), SHORTEST_S) if seconds else 0
    return f"{found['before']}{shorter}s"

"""Where our counts of a recording are not the true ones, and why.

Each entry is held to be true: what counts right after all must be taken out of here.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias

from tests._recordings import Recording

What: TypeAlias = Literal["model requests", "tool executions", "tokens", "runs"]


class Exception_(NamedTuple):
    """A count that cannot be had from the spans of some recordings."""

    folder: str
    """A glob, as is `script`."""
    script: str
    what: frozenset[What]
    why: str


def _of(folder: str, script: str, what: str, why: str) -> Exception_:
    named: dict[str, What] = {
        "model": "model requests",
        "tools": "tool executions",
        "tokens": "tokens",
        "runs": "runs",
    }
    return Exception_(folder, script, frozenset(named[each] for each in what.split()), why)

"""Where our counts of a recording are not the true ones, and why.

Each entry is held to be true: what is right after all must be taken out of here.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias

from tests._recordings import Recording

What: TypeAlias = Literal[
    "model requests", "tool executions", "tokens", "runs", "live counts", "live decisions"
]


class Departure(NamedTuple):
    """A figure that cannot be had from the spans of some recordings."""

    folder: str
    """A glob, as is `script`."""
    script: str
    what: tuple[What, ...]
    why: str

    def is_about(self, recording: Recording) -> bool:
        """Say whether a recording is one of them."""
        folder, script, _ = recording
        return fnmatchcase(folder, self.folder) and fnmatchcase(script, self.script)


_NO_MODEL_SPANS = "no span shows a model call"
_NO_CONTENT = "the content is off and tools have no spans: nothing shows which calls there were"
_ATTEMPTS = (
    "the framework refused the arguments, so no tool ran; each attempt has a span and counts"
)
_NO_USAGE = "no span says what was used"

EXCEPTIONS: tuple[Departure, ...] = ()


def reason_of(recording: Recording, what: What) -> str | None:
    """Return why a figure of a recording is not the true one; `None` if it must be."""
    return next(
        (each.why for each in EXCEPTIONS if what in each.what and each.is_about(recording)), None
    )

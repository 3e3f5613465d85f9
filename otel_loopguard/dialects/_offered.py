"""Reads which tools a model could ask for. Each span of a run repeats their definitions.

They may be longer than all the rest that is read, so the texts read last are remembered. Equal
texts are compared much faster than read, or than looked up by a hash.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._tools import Definition, offered_names
from otel_loopguard.dialects._values import content, parsed

_LATEST = 8
"""Texts that are remembered: agents that run at a time take turns."""
_LONGEST = 65_536
"""Characters of a text up to which it is."""
_DEFINITIONS = msgspec.json.Decoder(list[Definition])

_Offered: TypeAlias = "frozenset[str] | Unknown"

_latest: tuple[tuple[str, _Offered], ...] = ()
"""Replaced as a whole: threads read it while others do so."""


def offered_in(definitions: object, limit: int | None) -> frozenset[str] | Unknown:
    """Return the names in `definitions`, JSON text or the structure; `UNKNOWN` if it has none."""
    shown = UNKNOWN if definitions is None else content(definitions, limit)
    if shown is UNKNOWN:
        return UNKNOWN
    if type(shown) is not str or len(shown) > _LONGEST:
        return _read(shown)
    for text, offered in _latest:
        if text == shown:
            return offered
    return _remembered(shown)


def _remembered(shown: str) -> _Offered:
    global _latest  # noqa: PLW0603 -- a store of pure results
    offered = _read(shown)
    _latest = ((shown, offered), *_latest[: _LATEST - 1])
    return offered


def _read(shown: object) -> _Offered:
    read = parsed(shown, _DEFINITIONS)
    return UNKNOWN if read is None else offered_names(read)

"""How much alike two texts are, by the pieces of four bytes that they are made of."""

from __future__ import annotations

import re

_DIGITS = re.compile(rb"[0-9]+")
_PIECE = 4


def pieces_of(text: bytes) -> frozenset[bytes]:
    """Return the pieces of a text; whatever digits it has, they count as one zero."""
    plain = _DIGITS.sub(b"0", text)
    return frozenset(plain[at : at + _PIECE] for at in range(max(1, len(plain) - _PIECE + 1)))


def likeness(one: frozenset[bytes], other: frozenset[bytes]) -> float:
    """Return the share of the pieces that both have, from 0 to 1 (Jaccard)."""
    both = len(one & other)
    return both / (len(one) + len(other) - both)

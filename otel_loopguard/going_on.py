"""What metrics tell of a run that goes on."""

from __future__ import annotations

from typing import NamedTuple


class GoingOn(NamedTuple):
    """A run that goes on, at one moment."""

    agent: str
    """What its agent is called among the bounded names."""
    tripped: bool
    age_s: float
    steps: int
    cost_usd: float
    """As far as it is known."""

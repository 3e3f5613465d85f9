"""How many examples a law is tried with: `conftest.py` sets the share, by the occasion."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> settings:
    """Return settings for the profile's share of `number`, of which `thorough` takes all."""
    return settings(max_examples=max(1, number * settings().max_examples // 100))

"""What one metric is: its name, kind, unit, attributes and buckets."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["counter", "updowncounter", "gauge", "histogram"]


class Metric(NamedTuple):
    """A metric as the registry defines it."""

    name: str
    kind: Kind
    unit: str
    description: str
    attributes: tuple[str, ...]
    buckets: tuple[float, ...] = ()
    """Upper bounds that are advised for a histogram."""
    observed: bool = False
    """Its values are read when metrics are collected."""

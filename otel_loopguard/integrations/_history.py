"""What the histories of hand-written loops have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

NOT_MADE = "The call was not made: the run was stopped."
"""The answer to a tool call that has none."""


def part_of(item: object, name: str) -> Any:
    """Return a part of a message, be it a mapping or a client's object; `None` if it has none."""
    if isinstance(item, Mapping):
        return cast("Mapping[str, Any]", item).get(name)
    return getattr(item, name, None)

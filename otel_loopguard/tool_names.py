"""When two names mean one tool."""

from __future__ import annotations

_BETWEEN = ("__", ".", "-", "/", ":", " ")
"""What stands between the name of a tool and that of the server or plugin it comes from."""


def same_tool(one: str, other: str) -> bool:
    """Say whether two names mean one tool: servers and plugins put theirs before it."""
    if len(one) == len(other):
        return one == other
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return bool(shorter) and any(longer.endswith(between + shorter) for between in _BETWEEN)

"""What a value from JSON or TOML is, in words that type checkers follow."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_table(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Say whether it has names and values."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Say whether it is a list."""
    return isinstance(value, list)

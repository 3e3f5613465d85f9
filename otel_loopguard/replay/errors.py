"""Errors of recorded input that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

_MAX_SHOWN = 60


class ReplayError(ValueError):
    """Recorded input that cannot be read: where in it, what was found, what was expected."""


class FieldError(ReplayError):
    """A field that cannot be read.

    `path` leads to it from the outermost object, `expected` says what should stand there, `found`
    what does (its text, shortened).
    """

    def __init__(self, path: tuple[str | int, ...], expected: str, found: str) -> None:
        """Keep the parts and make the message from them."""
        super().__init__(f"{path_text(path)}: expected {expected}, got {found}")
        self.path = path
        self.expected = expected
        self.found = found


def shown(value: object) -> str:
    """Return `value` for an error message, shortened."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def path_text(path: Sequence[str | int]) -> str:
    """Return `path` as one writes it: `spans[3].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the line"

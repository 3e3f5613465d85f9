"""Names that metrics tell apart: so many, and one for all others."""

from __future__ import annotations

NAMES = 200
"""Agent and tool names that metrics tell apart; every further one is `OTHER`."""

OTHER = "_OTHER"


class BoundedNames:
    """The names that came first. Names are never forgotten: their series are not either."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return what a name is called: itself, or `OTHER` if there are too many."""
        known = self._known.get(name)
        if known is not None:
            return known
        called = name if len(self._known) < NAMES else OTHER
        self._known[called] = called
        return called

    def all(self) -> tuple[str, ...]:
        """Return all that a name has been called so far."""
        return tuple(self._known)

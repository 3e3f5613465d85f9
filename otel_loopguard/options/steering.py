"""The hint that a model is given when a rule warns: on, off, or a text of one's own."""

from __future__ import annotations

from string import Formatter

from otel_loopguard.options.errors import wrong

HINT = (
    "A note from the loop guard: {subject} came up {count} times without bringing anything new "
    "({rule}). Do not do the same again. Try something else, or answer with what you have."
)
"""The text that stands for `true`."""

_PLACES = ("rule", "subject", "count")
_EXPECTED = (
    "true, false, or a text in which {rule}, {subject} and {count} may stand "
    "(write {{ and }} for braces)"
)


def steer_over(old: str, value: object, path: str) -> str:
    """Return the text of the hint; empty where there is to be none.

    Raises:
        PolicyError: the value is neither true nor false nor a text that can be filled in.

    """
    if value is None:
        return old
    if isinstance(value, bool):
        return HINT if value else ""
    if not isinstance(value, str) or not _can_be_filled_in(value):
        raise wrong(path, _EXPECTED, value)
    return value


def _can_be_filled_in(text: str) -> bool:
    """Say whether no more than the names stand in braces: no attribute, index or form of them."""
    try:
        places = [place for _, *place in Formatter().parse(text) if place[0] is not None]
    except ValueError:
        return False
    return all(name in _PLACES and not form and not turn for name, form, turn in places)

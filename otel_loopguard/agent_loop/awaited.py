"""What would have to be awaited, where nobody does that: it is refused, for it says nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def is_awaited(function: object) -> bool:
    """Whether a function is a coroutine function, or an object that is called like one."""
    own = getattr(function, "__call__", None)  # noqa: B004 -- an object's own
    return any(inspect.iscoroutinefunction(each) for each in (function, own))


def at_once(value: object, name: str) -> object:
    """Return what somebody has answered, which nobody awaits.

    Raises:
        TypeError: if it is to be awaited.

    """
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()  # else it complains that nobody has awaited it
    kind = type(value).__qualname__
    raise TypeError(
        f"{name} answered with a {kind}, which is not awaited here; expected a value: "
        "run_agent_async awaits models and tools, and nothing awaits a check"
    )


def accepts(check: Callable[[Any], object], value: object, name: str) -> bool:
    """Whether a check lets a value through; it may raise instead of answering False.

    Raises:
        TypeError: if what it answers is to be awaited.

    """
    return at_once(check(value), name) is not False

"""What forked children do before anything else.

A thread that held a lock did not come along, so it is made anew; what goes on in the parent is left
to the parent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

_Owner = TypeVar("_Owner")

_OWNERS: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def in_children(owner: _Owner, do: Callable[[_Owner], object]) -> None:
    """Do something with an object, a class or a module in each child; one thing with each.

    `do` must not hold on to the owner.
    """
    _OWNERS[owner] = do


def renew_in_children(
    owner: object, attribute: str, make: Callable[[], object] = threading.RLock
) -> None:
    """Make this attribute of its owner anew in each child: a reentrant lock by default."""
    in_children(owner, lambda each: setattr(each, attribute, make()))


def _renew() -> None:
    for owner, do in list(_OWNERS.items()):
        with suppress(Exception):  # the others have to be renewed too, or they hang
            do(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

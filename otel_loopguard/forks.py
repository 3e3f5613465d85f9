"""Locks in forked children: a thread that held one did not come along, so it is made anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

_OWNERS: WeakKeyDictionary[object, tuple[str, Callable[[], object]]] = WeakKeyDictionary()


def renew_in_children(
    owner: object, attribute: str, make: Callable[[], object] = threading.RLock
) -> None:
    """Make this attribute of an object or module anew in each child: a reentrant lock by default.

    An owner has one such attribute.
    """
    _OWNERS[owner] = (attribute, make)


def _renew() -> None:
    for owner, (attribute, make) in list(_OWNERS.items()):
        setattr(owner, attribute, make())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

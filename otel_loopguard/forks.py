"""Locks in forked children: a thread that held one did not come along, so it is made anew."""

from __future__ import annotations

import os
import threading
from weakref import WeakKeyDictionary

_OWNERS: WeakKeyDictionary[object, str] = WeakKeyDictionary()


def renew_in_children(owner: object, attribute: str) -> None:
    """Make the reentrant lock that is this attribute of an object or module anew in each child."""
    _OWNERS[owner] = attribute


def _renew() -> None:
    for owner, attribute in list(_OWNERS.items()):
        setattr(owner, attribute, threading.RLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

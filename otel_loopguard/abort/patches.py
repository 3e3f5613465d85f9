"""Wrappers around methods of other packages: put on when these are imported, taken off again."""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import wrapt

from otel_loopguard.forks import renew_in_children

Wrapped = Callable[..., Any]

LAYERS = 100
"""Wrappers around each other that are looked through."""

_logger = logging.getLogger(__name__)


class Method(Protocol):
    """A method of a class."""

    @property
    def owner(self) -> type:
        """The class that has it, not one that inherits it."""
        ...

    @property
    def name(self) -> str:
        """What it is called there."""
        ...


class Entry(NamedTuple):
    """A method, and what takes its calls."""

    owner: type
    name: str
    called: Wrapped
    """What its calls go to, as `wrapt.FunctionWrapper` has them."""


_Place = TypeVar("_Place", bound=Method)
_Keeper = TypeVar("_Keeper")


class _Patch(NamedTuple):
    owner: type
    name: str
    original: object
    wrapper: object

    @property
    def is_outermost(self) -> bool:
        """Whether nobody has patched over it since."""
        return vars(self.owner).get(self.name) is self.wrapper

    @property
    def is_lost(self) -> bool:
        """Whether somebody has put back what was there before, be it an original of long ago."""
        now = [*_layers(vars(self.owner).get(self.name))]
        # Who asked the class for ours has got one of wrapt's that binds it.
        bound = (getattr(layer, "_self_parent", None) for layer in now)
        if any(layer is self.wrapper for layer in (*now, *bound)):
            return False
        # Not every wrapper says what is below it. One that leads to nothing that was below ours may
        # lead to ours: with a second layer on top, that of theirs would be the one in between.
        before = [*_layers(self.original)]
        return any(layer is old for layer in now for old in before)

    def undo(self) -> None:
        """Put the original back."""
        setattr(self.owner, self.name, self.original)


class Patches(Generic[_Place, _Keeper]):
    """The wrappers of one kind, and those for whom they are there.

    Args:
        places: where they go, by the module that has the classes once it is imported.
        wrapper: makes the function that a method's calls go to; see `wrapt.FunctionWrapper`.
        failure: what is logged of a module that is built otherwise; its name goes where `%s` is.

    """

    def __init__(
        self,
        places: Mapping[str, Callable[[ModuleType], Iterable[_Place]]],
        wrapper: Callable[[_Place], Wrapped],
        failure: str,
    ) -> None:
        self._places = places
        self._wrapper = wrapper
        self._failure = failure
        # Never changed in place: whoever makes a request reads it without the lock.
        self._kept: tuple[weakref.ref[Any], ...] = ()
        self._patches: list[_Patch] = []
        self._complained: set[str] = set()
        self._hooked: set[str] = set()
        self._lock = threading.RLock()
        renew_in_children(self, "_lock")

    @property
    def keepers(self) -> tuple[_Keeper, ...]:
        """Those for whom the wrappers are there."""
        return tuple(keeper for each in self._kept if (keeper := each()) is not None)

    def keep(self, keeper: _Keeper) -> None:
        """Wrap what is imported, now and later, for this keeper too."""
        with self._lock:
            self._kept = (*self._without(keeper), weakref.ref(keeper))
            for name in self._places:
                module = sys.modules.get(name)
                if module is not None:  # `None` stands there for what must not be imported
                    self._imported(name, module)
                elif name not in self._hooked:
                    self._hooked.add(name)
                    wrapt.register_post_import_hook(partial(self._imported, name), name)

    def leave(self, keeper: _Keeper) -> None:
        """Forget this keeper; with the last one gone, put every module back as it was.

        What somebody else has patched since stays, and lets every call pass.
        """
        with self._lock:
            self._kept = self._without(keeper)
            if not self._kept:
                for patch in [patch for patch in reversed(self._patches) if patch.is_outermost]:
                    patch.undo()
                    self._patches.remove(patch)

    def _without(self, keeper: _Keeper) -> tuple[weakref.ref[Any], ...]:
        kept = ((each, each()) for each in self._kept)
        return tuple(each for each, one in kept if one is not None and one is not keeper)

    def _imported(self, name: str, module: ModuleType) -> None:
        # What a module calls itself may be another name: CrewAI copies globals between its own.
        with self._lock:
            if not self.keepers:
                return
            try:
                for place in self._places[name](module):
                    try:
                        self._patch(place)
                    except Exception as error:  # noqa: BLE001 -- the other places are there
                        self._complain(name, error)
            except Exception as error:  # noqa: BLE001 -- the module must still be importable
                self._complain(name, error)

    def _complain(self, name: str, error: Exception) -> None:
        """Say, once, that a module is built otherwise."""
        if name not in self._complained:
            self._complained.add(name)
            _logger.error(self._failure, name, exc_info=error)

    def _patch(self, place: _Place) -> None:
        owner, name = place.owner, place.name
        self._patches = [patch for patch in self._patches if not patch.is_lost]
        if any(patch.owner is owner and patch.name == name for patch in self._patches):
            return
        original = vars(owner)[name]
        wrapper = wrapt.FunctionWrapper(original, self._wrapper(place))
        self._patches.append(_Patch(owner, name, original, wrapper))
        setattr(owner, name, wrapper)


def _layers(function: object) -> Iterator[object]:
    """Yield a function, what it wraps, what that wraps, and so on."""
    layer = function
    for _ in range(LAYERS):
        if layer is None:
            return
        yield layer
        layer = getattr(layer, "__wrapped__", None)

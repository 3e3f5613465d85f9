"""Frameworks, each stopped in its own way: one module for each, named as what is imported.

    from otel_loopguard.integrations import crewai

    crewai.install(guard)

`otel_loopguard.install()`, and with it the way without code, attach each by themselves once its
framework is imported.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, cast
from weakref import WeakSet

import wrapt

from otel_loopguard.forks import renew_in_children
from otel_loopguard.options.frameworks import FRAMEWORKS

if TYPE_CHECKING:
    from otel_loopguard.processor import LoopGuardSpanProcessor

_logger = logging.getLogger(__name__)


class _Module(Protocol):
    def install(self, guard: LoopGuardSpanProcessor) -> None: ...


class Waiting:
    """The guards that wait for frameworks to be imported, by the name of the integration."""

    guards: Mapping[str, WeakSet[LoopGuardSpanProcessor]] = {}
    hooked: frozenset[str] = frozenset()
    lock = threading.RLock()


renew_in_children(Waiting, "lock")


def attach(guard: LoopGuardSpanProcessor, names: Iterable[str] | None = None) -> None:
    """Install the integrations of these names, all for `None`, now or once there is a framework.

    One that cannot be installed is told of in the log: the model gate stops its runs all the same.
    """
    for name in FRAMEWORKS if names is None else names:
        module = FRAMEWORKS[name]
        with Waiting.lock:
            waiting = Waiting.guards.get(name, WeakSet())
            waiting.add(guard)
            Waiting.guards = {**Waiting.guards, name: waiting}
            is_new = name not in Waiting.hooked
            Waiting.hooked |= {name}
        if sys.modules.get(module) is not None:
            _install(name, (guard,))
        elif is_new:
            wrapt.register_post_import_hook(partial(_imported, name), module)


def _imported(name: str, _module: ModuleType) -> None:
    with Waiting.lock:
        guards = tuple(Waiting.guards[name])
    _install(name, guards)


def _install(name: str, guards: Iterable[LoopGuardSpanProcessor]) -> None:
    try:
        integration = cast("_Module", import_module(f"{__name__}.{name}"))
        for guard in guards:
            if guard.checkpoints.is_open:
                integration.install(guard)
    except ImportError as error:  # it is too old; or another package, as many a project's `agents`
        message = "the loop guard's integration %r is left out, its other stops are there: %s"
        _logger.info(message, name, error)
    except Exception:  # the framework must be importable all the same
        message = "the loop guard's integration %r cannot be installed; its other stops are there"
        _logger.exception(message, name)

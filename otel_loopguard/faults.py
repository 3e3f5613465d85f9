"""Faults of the guard's own: they are counted and told of, and the application goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from otel_loopguard.aside import Aside

KINDS = 20
"""Kinds of faults that are logged, each once."""

_FAULT = "the loop guard failed on a span; the application goes on"

_logger = logging.getLogger(__name__)


class Faults:
    """Takes in what went wrong inside one guard, whatever else may be broken. Never raises.

    Args:
        count: adds one to the faults in the metrics.
        aside: entered while that is done.

    """

    __slots__ = ("_aside", "_count", "_kinds")

    def __init__(self, count: Callable[[Exception], object], aside: Aside) -> None:
        self._count = count
        self._aside = aside
        self._kinds: set[str] = set()

    def __call__(self, error: Exception) -> None:
        """Take in a fault."""
        with suppress(Exception), self._aside:  # counting and logging may be what is broken
            self._count(error)
        kind = type(error).__qualname__
        if kind not in self._kinds and len(self._kinds) < KINDS:
            self._kinds.add(kind)
            with suppress(Exception), self._aside:
                _logger.error(_FAULT, exc_info=error)

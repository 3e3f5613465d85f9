"""Dialects that other packages bring along, by entry point."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from otel_loopguard.dialects import BUILT_IN, Dialect, Dialects
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

GROUP = "otel_loopguard_dialect"
"""The group of entry points; each names a `Dialect`, or a function that reads a step."""

_logger = logging.getLogger(__name__)


@cache
def all_dialects() -> Dialects:
    """Return the dialects that are installed, by their names, and after them those built in."""
    installed = loaded(sorted(entry_points(group=GROUP), key=lambda each: each.name))
    return Dialects((*installed, *BUILT_IN))


def chosen(dialects: Iterable[Dialect] | None) -> Dialects:
    """Return the dialects that somebody has chosen; all there are if `None`."""
    if dialects is None:
        return all_dialects()
    return dialects if isinstance(dialects, Dialects) else Dialects(dialects)


def loaded(found: Iterable[EntryPoint]) -> list[Dialect]:
    """Load dialects. One that cannot be loaded is logged and left out."""
    dialects: list[Dialect] = []
    for entry_point in found:
        try:
            loaded_object: object = entry_point.load()
        except Exception as error:  # noqa: BLE001 -- a foreign package may do anything
            _logger.error("dialect %r (%s): %r", entry_point.name, entry_point.value, error)  # noqa: TRY400 -- the traceback is of foreign code
            continue
        if isinstance(loaded_object, Dialect):
            dialects.append(loaded_object)
        elif callable(loaded_object):
            read = cast("Callable[[SpanRecord], Step | None]", loaded_object)
            dialects.append(Dialect(name=entry_point.name, read=read))
        else:
            _logger.error(
                "dialect %r (%s): expected a Dialect or a function of a span, got %r",
                entry_point.name,
                entry_point.value,
                loaded_object,
            )
    return dialects

"""Scripted models and recording tools, as far as their counts go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import cast

_BAD_REQUEST = 400


def calls_of(model: object) -> int:
    """Return how often a model has answered, or failed of itself.

    Raises:
        TypeError: if it counts nothing.

    """
    requests: object = getattr(model, "requests", None)
    if isinstance(requests, Sequence):  # a server's: what it refuses has no answer
        answered = cast("Sequence[object]", requests)
        return sum(1 for each in answered if getattr(each, "status", None) != _BAD_REQUEST)
    calls: object = getattr(model, "calls", None)
    if isinstance(calls, int):
        return calls
    if isinstance(calls, Sized):
        return len(calls)
    raise TypeError(
        f"model={model!r} counts no calls; expected a `model_server`, an `EndlessModel` or "
        "`ScriptedModel`, or anything with a number `calls`"
    )


def executions_of(tool: object) -> int:
    """Return how often a tool has run.

    Raises:
        TypeError: if it counts nothing.

    """
    count: object = getattr(tool, "executions", None)
    if not isinstance(count, int):
        raise TypeError(
            f"tools: {tool!r} counts nothing; make it one with `recording_tool(function)`"
        )
    return count


def results_of(models: Iterable[object]) -> int | None:
    """Return how many tool results the servers among models were shown; `None` without any."""
    shown: list[object] = [getattr(model, "tool_results", None) for model in models]
    counts = [count for count in shown if isinstance(count, int)]
    return sum(counts) if counts else None


def refuse(models: Iterable[object], reason: str) -> bool:
    """Let models answer no more; say whether one of them could be told."""
    ways: list[object] = [getattr(model, "refuse", None) for model in models]
    able = [cast("Callable[[str], object]", way) for way in ways if callable(way)]
    for way in able:
        way(reason)
    return bool(able)


def named(model: object) -> str:
    """Return what a model is called in evidence."""
    return type(model).__name__

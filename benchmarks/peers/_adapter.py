"""What an adapter is: how one guard is asked about one tool call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Verdict: TypeAlias = Literal["go", "warn", "stop"]
"""`stop` is what keeps a call from happening: an exception, a refusal, an answer from a cache."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that was made, and what came out of it."""

    tool: str
    arguments: Mapping[str, object]
    result: str
    failed: bool = False
    turn: int | None = None
    """Number of the model's response that asked for it; `None` where turns are not known."""


def unchanged(call: Call) -> Call:
    return call


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One guard in one configuration: a row of the tables."""

    name: str
    options: str
    """How it is set up, for the reader of the table."""
    start: Callable[[], Callable[[Any], Verdict]]
    """Begins a run and returns what judges its calls, one after the other."""
    prepare: Callable[[Call], object] = unchanged
    """Makes the objects that the guard's framework would have made anyway; not timed."""
    timed: bool = True
    """Whether it is in the table of costs too, and not only in that of verdicts."""

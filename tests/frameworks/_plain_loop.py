"""What hand-written loops over a client have in common.

Nothing but the client's instrumentation says what happens in them: no agent's span, no tool's. What
holds the calls together is the application's own span around them, a `guarded_run` block, or what
their requests tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Any, NamedTuple

from tests._zero_code import Surroundings
from tests.frameworks._framework import Tool


class TooManyTurnsError(Exception):
    """What the loops do in place of a framework's limit."""


class Call(NamedTuple):
    """A tool call as a turn asks for it."""

    id: str
    name: str
    arguments: Mapping[str, Any]


def carried_out(calls: Sequence[Call], tools: Sequence[Tool]) -> list[Any]:
    """Run the tools that a turn asks for."""
    by_name = {tool.__name__: tool for tool in tools}
    return [by_name[call.name](**call.arguments) for call in calls]


async def awaited(calls: Sequence[Call], tools: Sequence[Tool]) -> list[str]:
    """Run the tools that a turn asks for, and wait for those that are asynchronous."""
    results = carried_out(calls, tools)
    return [await result if isawaitable(result) else result for result in results]


SURROUNDINGS: tuple[Surroundings, ...] = ("own-span", "guarded-run", "nothing")
"""What the loops are tried in."""

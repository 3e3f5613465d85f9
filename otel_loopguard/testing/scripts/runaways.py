"""Scripts that never finish: each is a loop of another kind."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from otel_loopguard.testing.scripts.calls import NO_TOOLS, different_call, turn_of
from otel_loopguard.testing.scripts.turns import OfferedTool, Play, Turn

HAND_OVERS = ("transfer", "handoff", "hand_off", "handover", "delegate")
"""How the names of tools begin by which agents hand over, in lower case."""


def endless(tools: Sequence[OfferedTool], _results: int) -> Turn:
    """Call the first tool with the same arguments for ever."""
    return turn_of(tools[0]) if tools else NO_TOOLS


def alternate(tools: Sequence[OfferedTool], results: int) -> Turn:
    """Call two tools in turn for ever; where one was offered, it with two arguments."""
    return cycle(2)(tools, results)


def varying(tools: Sequence[OfferedTool], results: int) -> Turn:
    """Call the first tool with other arguments each time, for ever."""
    return turn_of(tools[0], results) if tools else NO_TOOLS


def handoff(tools: Sequence[OfferedTool], results: int) -> Turn:
    """Hand over to another agent for ever: call the first tool that is called as such ones are."""
    passes_on = [tool for tool in tools if tool.name.lower().startswith(HAND_OVERS)]
    return endless(passes_on or tools, results)


def cycle(calls: int) -> Play:
    """Return a script that goes round a cycle of so many different calls for ever."""

    def play(tools: Sequence[OfferedTool], results: int) -> Turn:
        return different_call(tools, results % calls) if tools else NO_TOOLS

    return play


def parallel(calls: int) -> Play:
    """Return a script that calls the first tool so often at once, with the same arguments."""

    def play(tools: Sequence[OfferedTool], results: int) -> Turn:
        once = endless(tools, results)
        return msgspec.structs.replace(once, calls=once.calls * calls)

    return play


def slow(seconds: float) -> Play:
    """Return `endless` with each answer after so many seconds."""

    def play(tools: Sequence[OfferedTool], results: int) -> Turn:
        return msgspec.structs.replace(endless(tools, results), delay_s=seconds)

    return play

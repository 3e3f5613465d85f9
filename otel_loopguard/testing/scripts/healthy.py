"""Scripts that finish: what a guard has to let through."""

from __future__ import annotations

from collections.abc import Sequence

from otel_loopguard.testing.scripts.calls import FINAL_ANSWER, NO_TOOLS, different_call, turn_of
from otel_loopguard.testing.scripts.turns import OfferedTool, Play, Turn

POLLS = 12
"""How often `poll` asks: more often than any rule lets an equal call with an equal result pass."""
ASKS_FOR_A_STATE = ("status", "state", "progress", "poll", "check")
"""What stands in the names of tools that are asked again and again, in lower case."""


def finish3(tools: Sequence[OfferedTool], results: int) -> Turn:
    """Finish in three turns: call the first tool, then the second (or the first again), answer."""
    if not tools:
        return NO_TOOLS
    if results == 0:
        return turn_of(tools[0])
    if results == 1:
        return turn_of(tools[min(1, len(tools) - 1)])
    return FINAL_ANSWER


def finish(turns: int) -> Play:
    """Return a script that finishes in so many turns: all but the last make different calls."""

    def play(tools: Sequence[OfferedTool], results: int) -> Turn:
        if not tools:
            return NO_TOOLS
        return different_call(tools, results) if results < turns - 1 else FINAL_ANSWER

    return play


def poll(asks: int) -> Play:
    """Return a script that asks for a state so often, with the same arguments, and then answers."""

    def play(tools: Sequence[OfferedTool], results: int) -> Turn:
        if not tools:
            return NO_TOOLS
        asking = [
            tool for tool in tools if any(word in tool.name.lower() for word in ASKS_FOR_A_STATE)
        ]
        return turn_of((asking or tools)[0]) if results < asks else FINAL_ANSWER

    return play

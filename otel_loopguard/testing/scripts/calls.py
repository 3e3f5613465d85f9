"""What scripts have in common: calls of offered tools, and what is said where none are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from otel_loopguard.testing.samples import PLAIN, Sample, sample_arguments, variation
from otel_loopguard.testing.scripts.turns import OfferedTool, Play, ScriptedCall, Turn

NO_TOOLS = Turn(text="No tools were offered.")
FINAL_ANSWER = Turn(text="The final answer is 42.")


def call_of(tool: OfferedTool, sample: Sample = PLAIN) -> ScriptedCall:
    """Call the tool with arguments that its schema accepts, the same ones for the same sample."""
    return ScriptedCall(name=tool.name, arguments=sample_arguments(tool.parameters, sample))


def turn_of(tool: OfferedTool, number: int = 0) -> Turn:
    """Call the tool once, with the arguments of this number, from 0."""
    return Turn(calls=(call_of(tool, variation(number)),))


def different_call(tools: Sequence[OfferedTool], number: int) -> Turn:
    """Make the call of this number, from 0: tool after tool, then all with other arguments."""
    return turn_of(tools[number % len(tools)], number // len(tools))


def of_first_tool(make: Callable[[OfferedTool], Turn]) -> Play:
    """Return a script that makes the same turn of the first tool for ever."""

    def play(tools: Sequence[OfferedTool], _count: int) -> Turn:
        return make(tools[0]) if tools else NO_TOOLS

    return play

"""What a scripted model says next, as a pure function.

A script sees the tools that were offered and how many tool results came back, nothing else: a fake
that reacts to what it is told would be a second implementation of the thing under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from otel_loopguard.testing.samples import sample_arguments


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the caller offered to the model, with the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, object] = {}


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a script asks for; the wire format gives it an id."""

    name: str
    arguments: Mapping[str, object]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model: calls that are to be made at the same time, else a text."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()


Script: TypeAlias = Callable[[Sequence[OfferedTool], int], Turn]
"""From the offered tools and the number of results so far to the next turn."""

NO_TOOLS = Turn(text="No tools were offered.")
FINAL_ANSWER = Turn(text="The final answer is 42.")


def call_of(tool: OfferedTool) -> ScriptedCall:
    """Call the tool with arguments that its schema accepts, the same ones every time."""
    return ScriptedCall(name=tool.name, arguments=sample_arguments(tool.parameters))


def endless(tools: Sequence[OfferedTool], results: int) -> Turn:  # noqa: ARG001  a script's shape
    """Call the first tool with the same arguments for ever."""
    return Turn(calls=(call_of(tools[0]),)) if tools else NO_TOOLS


def finish3(tools: Sequence[OfferedTool], results: int) -> Turn:
    """Finish in three turns: call the first tool, then the second (or the first again), answer."""
    if not tools:
        return NO_TOOLS
    if results == 0:
        return Turn(calls=(call_of(tools[0]),))
    if results == 1:
        return Turn(calls=(call_of(tools[min(1, len(tools) - 1)]),))
    return FINAL_ANSWER


SCRIPTS: Mapping[str, Script] = MappingProxyType({"endless": endless, "finish3": finish3})
"""Every script by its name."""


def find_script(name: str) -> Script | None:
    """Return the script of this name, or `None` where there is none."""
    return SCRIPTS.get(name)


def script_named(name: str) -> Script:
    """Return the script of this name.

    Raises `ValueError`, with the names that exist, where there is none.
    """
    script = find_script(name)
    if script is None:
        known = ", ".join(repr(each) for each in SCRIPTS)
        raise ValueError(f"script {name!r} does not exist; expected one of {known}")
    return script

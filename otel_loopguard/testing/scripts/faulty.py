"""Scripts whose answers are wrong in one way each, for ever."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from otel_loopguard.testing.samples import MISSING
from otel_loopguard.testing.scripts.calls import FINAL_ANSWER, NO_TOOLS, call_of, of_first_tool
from otel_loopguard.testing.scripts.turns import (
    OfferedTool,
    Play,
    ScriptedCall,
    ScriptedError,
    Turn,
)

_MISFIT = {"unexpected": "alpha"}
_NO_JSON = '{"unexpected": alpha}'


def unknown_tool(tools: Sequence[OfferedTool], _results: int) -> Turn:
    """Call a tool that was not offered, for ever."""
    if not tools:
        return NO_TOOLS
    name, offered = "no_such_tool", {tool.name for tool in tools}
    while name in offered:
        name += "_"
    return Turn(calls=(ScriptedCall(name=name),))


def truncated(_tools: Sequence[OfferedTool], _results: int) -> Turn:
    """Answer with a text that the token limit cuts."""
    text = FINAL_ANSWER.text
    return Turn(text=text[: len(text) // 2], finish_reason="length")


def filtered(_tools: Sequence[OfferedTool], _results: int) -> Turn:
    """Answer with nothing, because the provider's filter held it back."""
    return Turn(finish_reason="content_filter")


def empty(_tools: Sequence[OfferedTool], _results: int) -> Turn:
    """Answer with neither text nor call, and say that all is well."""
    return Turn(finish_reason="stop")


def http_error(status: int) -> Play:
    """Return a script that fails with this HTTP status and the provider's error body, for ever."""

    def play(_tools: Sequence[OfferedTool], _results: int) -> Turn:
        return Turn(error=ScriptedError(status=status))

    return play


def _error_tool(tool: OfferedTool) -> Turn:
    return Turn(calls=(call_of(tool, MISSING),))


def _bad_arguments(tool: OfferedTool) -> Turn:
    return Turn(calls=(ScriptedCall(name=tool.name, arguments=_MISFIT, text=_NO_JSON),))


def _misfit_arguments(tool: OfferedTool) -> Turn:
    return Turn(calls=(ScriptedCall(name=tool.name, arguments=_MISFIT),))


def _truncated_call(tool: OfferedTool) -> Turn:
    whole = msgspec.json.encode(call_of(tool).arguments).decode()
    cut = ScriptedCall(name=tool.name, text=whole[: len(whole) // 2])
    return Turn(calls=(cut,), finish_reason="length")


error_tool = of_first_tool(_error_tool)
bad_arguments = of_first_tool(_bad_arguments)
misfit_arguments = of_first_tool(_misfit_arguments)
truncated_call = of_first_tool(_truncated_call)

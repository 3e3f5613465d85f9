"""What single packages of OpenLLMetry wrap around the values of a tool.

- LangChain: the input is everything that the callback was given, with step numbers and checkpoint
  ids. The tool's own are `inputs`, else `input_str`, the same as text. The output is the serialised
  tool message.
- MCP: the input is `tool_name` and `arguments`.
- Agno: the output is the text of an object, which says whether the tool failed.
"""

from __future__ import annotations

import re

from otel_loopguard.dialects._llama_index import Outcome
from otel_loopguard.dialects._tools import structure, tool_answer
from otel_loopguard.dialects._values import content, is_mapping, text

# "metadata" tells what a LangChain callback was given from a tool's own argument `inputs`.
_WRAPPED = re.compile('"metadata"|"tool_name"')
_AGNO_FAILURE = "status='failure' "


def unwrapped_input(arguments: object, limit: int | None) -> tuple[object, str | None]:
    """Return the arguments of a tool, and the call's id if it is among them."""
    if isinstance(arguments, str) and not _WRAPPED.search(arguments):
        return arguments, None
    given = structure(arguments)
    if not is_mapping(given):
        return arguments, None
    if set(given) == {"tool_name", "arguments"}:
        return content(given["arguments"], limit), None
    if not ("metadata" in given and "input_str" in given):
        return arguments, None
    inputs = given.get("inputs")
    about = given.get("kwargs")
    call_id = text(about.get("tool_call_id")) if is_mapping(about) else ""
    return content(given["input_str"] if inputs is None else inputs, limit), call_id or None


def unwrapped_output(output: object, limit: int | None) -> Outcome:
    """Return what came out of a tool."""
    if isinstance(output, str) and output.startswith(_AGNO_FAILURE):
        return Outcome(result=output, error=output)
    result, call_id = tool_answer(output, limit)
    return Outcome(result=result, call_id=call_id)

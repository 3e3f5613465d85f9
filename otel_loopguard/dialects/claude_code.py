"""Claude Code, also when the Claude Agent SDK runs it, as it stood in November 2026 (2.1.332).

Sources: its documentation of monitoring; recordings of spans that the command line wrote.

Recognised by the scope `com.anthropic.claude_code.tracing`. Its spans arrive in batches, many of
them when the run is over; there is no start. The GenAI names are read as everywhere, and beyond
them:

- `claude_code.tool`: `tool_name`, which has the MCP server in it (`mcp__server__tool`) as the model
  and the hooks see it, where `gen_ai.tool.name` leaves it out. Arguments from `tool_input`, else
  `full_command` of the tool Bash; the result from the span event `tool.output` (`output` or
  `content`). All are opt-in; without them arguments are in log records only.
- `claude_code.tool.execution` below it is the same call, without a name: that the tool failed is
  known from its status only. `.blocked_on_user` is no step.
- `claude_code.interaction`: an agent; `claude_code.hook` is no step.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gen_ai import step_of
from otel_loopguard.dialects._values import content, first_content, text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_SCOPE = "com.anthropic.claude_code.tracing"
_EXECUTION = "claude_code.tool.execution"
_ARGUMENTS = (semconv.CLAUDE_TOOL_INPUT,)
_COMMAND = (semconv.CLAUDE_COMMAND,)
_OUTPUT = ("output", "content")
_MAX_LENGTH = 60 * 1024
"""Longer ones are cut."""


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if Claude Code did not write it, or it is none."""
    if record.scope != _SCOPE:
        return None
    if record.name == _EXECUTION:
        call_id = text(record.attributes.get(semconv.GEN_AI_TOOL_CALL_ID))
        return Step(kind="tool", call_id=call_id) if call_id else None
    step = step_of(record)
    return _tool(record, step) if step is not None and step.kind == "tool" else step


def _tool(record: SpanRecord, step: Step) -> Step:
    name = text(record.attributes.get(semconv.CLAUDE_TOOL_NAME))
    arguments = first_content(record, _ARGUMENTS)
    command = first_content(record, _COMMAND)
    if arguments is UNKNOWN and command is not UNKNOWN:
        arguments = {"command": command}
    return msgspec.structs.replace(
        step,
        name=name or step.name,
        arguments=arguments if step.arguments is UNKNOWN else step.arguments,
        result=_output(record) if step.result is UNKNOWN else step.result,
    )


def _output(record: SpanRecord) -> object:
    limit = min(record.value_length_limit or _MAX_LENGTH, _MAX_LENGTH)
    for event in record.events:
        if event.name == semconv.CLAUDE_OUTPUT_EVENT:
            found = (content(event.attributes.get(name), limit) for name in _OUTPUT)
            return next((value for value in found if value is not UNKNOWN), UNKNOWN)
    return UNKNOWN


DIALECT = Dialect(
    name="claude_code",
    read=read,
    marks=Marks(scopes=frozenset({_SCOPE})),
)

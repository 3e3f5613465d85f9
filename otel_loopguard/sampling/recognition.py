"""Which spans are GenAI's, by what is known before they exist: a name and a few attributes."""

from __future__ import annotations

from collections.abc import Mapping

from otel_loopguard.dialects import read_step
from otel_loopguard.installed_dialects import all_dialects
from otel_loopguard.spans import SpanRecord

_MARKS = (
    "gen_ai.",
    "openinference.",
    "traceloop.",
    "llm.",
    "mcp.",
    "ai.",
    "langsmith.",
    "haystack.",
    "gcp.vertex.agent.",
)
"""How attributes begin that only GenAI spans have, steps or not: what is no step may hold some."""

_NAMES = (
    "execute_tool",
    "invoke_agent",
    "invoke_workflow",
    "create_agent",
    "chat ",
    "generate_content",
    "text_completion",
    "tools/call ",
    "invocation",  # Google ADK, as the next two
    "agent_run",
    "call_llm",
    "haystack.",
)
"""How the names of spans begin whose packages set no attribute when they start them."""

_SUFFIXES = (".workflow", ".agent", ".task", ".tool")
"""The same for OpenLLMetry."""


def is_gen_ai(name: str, attributes: Mapping[str, object]) -> bool:
    """Say whether a span with this name and these attributes is GenAI's.

    A sampler does not know the instrumentation's scope, which tells some dialects more at a span's
    start. Here it is better to see too much: it costs a span, and what is not seen is not stopped.
    """
    if name.startswith(_NAMES) or name.endswith(_SUFFIXES):
        return True
    for key in attributes:  # every dropped span pays for this: `any` costs twice as much
        if key.startswith(_MARKS):
            return True
    asked = SpanRecord(name=name, trace_id=0, span_id=0, attributes=attributes)
    return read_step(asked, all_dialects()) is not None

"""The Model Context Protocol, as it stood in November 2026 (mcp 2.3, conventions 0.1.0).

Sources: the conventions' page on MCP; recordings of the Python SDK's client and server.

Recognised by `mcp.method.name`. `tools/call` is a tool call, shown by the client and once more by
the server; all other methods are no steps. Around it there often is a framework's own tool span.

- tool: `gen_ai.tool.name`, else from the span's name (`tools/call search`, in the SDK's client `MCP
  send tools/call search`); `gen_ai.tool.call.id`, `.arguments` and `.result` where they are there.
  Not `jsonrpc.request.id`: it counts requests.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gen_ai import tool_step
from otel_loopguard.dialects._values import text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_CALL = "tools/call"


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if it is no tool call of the protocol."""
    method = record.attributes.get(semconv.MCP_METHOD_NAME)
    if method is None or text(method) != _CALL:
        return None
    step = tool_step(record)
    name = record.name.partition(f"{_CALL} ")[2]
    has_name = bool(text(record.attributes.get(semconv.GEN_AI_TOOL_NAME)))
    return step if has_name or not name else msgspec.structs.replace(step, name=name)


DIALECT = Dialect(
    name="mcp",
    read=read,
    marks=Marks(attributes=frozenset({semconv.MCP_METHOD_NAME})),
    vetoable=frozenset({("mcp-python-sdk", "tool")}),
)

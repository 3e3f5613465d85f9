"""Sessions of MCP clients: a tool call that is refused is not sent.

`ClientSession.call_tool` of the official `mcp` package is wrapped, 1.x and 2.x: `Client` and
`ClientSessionGroup` come by there, and so do the frameworks that call MCP servers with that
package. A refused call is answered in the server's place, with an error result that says why, as
a failed tool answers. Nothing is raised, so the agent's history stays whole; its next model call
is refused.

Not reached: tools that are not called through `call_tool`, as hosted ones that the provider calls,
and what servers ask of their clients (sampling).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from mcp.types import CallToolResult

from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.processor import LoopGuardSpanProcessor

_SAID = {"content", "structuredContent", "structured_content"}
"""What a result says, as 1.x and 2.x name it; the rest is about the transport."""


def install(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard before every tool call from now on."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard no more; with the last one gone, put the package back as it was."""
    INTEGRATION.uninstall(guard)


async def _call_tool(wrapped: Wrapped, _session: object, args: Any, kwargs: Any) -> object:
    if kwargs.get("input_responses") or kwargs.get("request_state"):
        return await wrapped(*args, **kwargs)  # goes on with a call that the server has asked about
    with INTEGRATION.calling(*_called(*args, **kwargs)) as call:
        if call.refusal is not None:
            return _refused(str(call.refusal))
        result = await wrapped(*args, **kwargs)
        call.result = result.model_dump(mode="json", by_alias=True, include=_SAID)
        return result


def _called(
    name: str, arguments: Mapping[str, Any] | None = None, *_: object, **__: object
) -> tuple[str, Mapping[str, Any]]:
    return name, arguments or {}


def _refused(reason: str) -> CallToolResult:
    # The aliases are those of the protocol, and the same in 1.x and 2.x.
    return CallToolResult.model_validate(
        {"content": [{"type": "text", "text": reason}], "isError": True}
    )


def _session(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.ClientSession, "call_tool", _call_tool)


INTEGRATION = Integration("MCP", {"mcp.client.session": _session})

"""What agents do, acted: spans in OpenTelemetry's GenAI convention, for a real guard to judge."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from opentelemetry import trace

Attributes = dict[str, Any]
MODEL = "gpt-4o"
"""One whose price is known."""

tracer = trace.get_tracer("scripts.stack.acting")


@contextmanager
def run(agent: str, conversation: str | None = None) -> Generator[trace.Span]:
    """One run of an agent."""
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
    }
    if conversation is not None:
        attributes["gen_ai.conversation.id"] = conversation
    with tracer.start_as_current_span(f"invoke_agent {agent}", attributes=attributes) as span:
        yield span


def tool(name: str, arguments: object, result: object = "nothing", *, fails: str = "") -> None:
    """One call of a tool; `None` for what its span does not show."""
    attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    if result is not None and not fails:
        attributes["gen_ai.tool.call.result"] = json.dumps(result)
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
        if fails:
            span.set_attribute("error.type", fails)
            span.set_status(trace.StatusCode.ERROR, fails)


def chat(
    tokens: tuple[int, int] | None = (900, 60),
    *,
    says: str | None = "Let me look.",
    asks: str | None = None,
    times: int = 1,
    finish: str = "stop",
) -> None:
    """One call of a model; `None` for what its span does not show.

    `asks` names a tool that it wants called, so many `times`.
    """
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "gen_ai.response.model": MODEL,
        "gen_ai.response.finish_reasons": ["tool_calls" if asks else finish],
    }
    if tokens is not None:
        attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"] = tokens
    if says is not None:
        parts: list[Attributes] = [{"type": "text", "content": says}]
        if asks:
            parts.extend(
                {"type": "tool_call", "id": f"call_{uuid4().hex}", "name": asks, "arguments": {}}
                for _ in range(times)
            )
        attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    with tracer.start_as_current_span(f"chat {MODEL}", attributes=attributes):
        pass

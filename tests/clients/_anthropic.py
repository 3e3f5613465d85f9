"""Anthropic's own client for Python, by its Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import anthropic

from tests.clients._seen import (
    DESCRIPTION,
    NAMES,
    QUESTION,
    RESULT,
    SCHEMA,
    Call,
    Turn,
    joined,
)

if TYPE_CHECKING:
    from anthropic.types import Message, MessageParam, ToolParam

ERRORS = (anthropic.AnthropicError,)
MAX_TOKENS = 1000
TOOLS: list[ToolParam] = [
    {"name": name, "description": DESCRIPTION, "input_schema": SCHEMA} for name in NAMES
]


def opened(root: str) -> anthropic.Anthropic:
    """Return a client of the server at this address; closes with its context."""
    return anthropic.Anthropic(base_url=root, api_key="none")


def turns(client: anthropic.Anthropic, model: str, *, stream: bool) -> Iterator[Turn]:
    """Yield each turn, and answer its calls after that."""
    messages: list[MessageParam] = [{"role": "user", "content": QUESTION}]
    while True:
        message = _asked(client, model, messages, stream=stream)
        turn = _turn(message)
        yield turn
        if not turn.calls:
            return
        messages.append({"role": "assistant", "content": message.content})
        messages.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
                    for call in turn.calls
                ],
            }
        )


def _asked(
    client: anthropic.Anthropic, model: str, messages: list[MessageParam], *, stream: bool
) -> Message:
    if not stream:
        return client.messages.create(
            model=model, max_tokens=MAX_TOKENS, messages=messages, tools=TOOLS
        )
    with client.messages.stream(
        model=model, max_tokens=MAX_TOKENS, messages=messages, tools=TOOLS
    ) as events:
        return events.get_final_message()


def _turn(message: Message) -> Turn:
    cached = message.usage.cache_read_input_tokens or 0
    return Turn(
        text=joined(block.text for block in message.content if block.type == "text"),
        calls=tuple(
            Call(id=block.id, name=block.name, arguments=block.input)
            for block in message.content
            if block.type == "tool_use"
        ),
        finish=message.stop_reason,
        tokens=(message.usage.input_tokens + cached, cached, message.usage.output_tokens),
    )

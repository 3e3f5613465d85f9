"""OpenAI's own client for Python, by its Responses and their events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import openai
from openai.types.responses import ResponseCompletedEvent, ResponseIncompleteEvent

from tests.clients._seen import NAMES, QUESTION, RESULT, SCHEMA, Call, Turn

if TYPE_CHECKING:
    from openai.types.responses import FunctionToolParam, Response, ResponseInputItemParam

ERRORS = (openai.OpenAIError,)
TOOLS: list[FunctionToolParam] = [
    {"type": "function", "name": name, "parameters": SCHEMA, "strict": True} for name in NAMES
]


def opened(root: str) -> openai.OpenAI:
    """Return a client of the server at this address; closes with its context."""
    return openai.OpenAI(base_url=f"{root}/v1", api_key="none")


def turns(client: openai.OpenAI, model: str, *, stream: bool) -> Iterator[Turn]:
    """Yield each turn, and answer its calls after that."""
    items: list[ResponseInputItemParam] = [{"role": "user", "content": QUESTION}]
    while True:
        turn = turn_of(_asked(client, model, items, stream=stream))
        yield turn
        if not turn.calls:
            return
        items.extend(answered(turn))


def _asked(
    client: openai.OpenAI, model: str, items: list[ResponseInputItemParam], *, stream: bool
) -> Response:
    if not stream:
        return client.responses.create(model=model, input=items, tools=TOOLS)
    with client.responses.create(model=model, input=items, tools=TOOLS, stream=True) as events:
        *_, last = events
    assert isinstance(last, (ResponseCompletedEvent, ResponseIncompleteEvent))
    return last.response


def answered(turn: Turn) -> Iterator[ResponseInputItemParam]:
    """Repeat each call with its result."""
    for call in turn.calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": str(call.arguments),
        }
        yield {"type": "function_call_output", "call_id": call.id, "output": RESULT}


def turn_of(response: Response) -> Turn:
    """Return what a response shows."""
    usage = response.usage
    assert usage is not None
    cut = response.incomplete_details
    return Turn(
        text=response.output_text,
        calls=tuple(
            Call(id=item.call_id, name=item.name, arguments=item.arguments)
            for item in response.output
            if item.type == "function_call"
        ),
        finish=(cut.reason if cut else None) or response.status,
        tokens=(
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.output_tokens,
        ),
    )

"""OpenAI's own client for Python, by the helper for streams of its Responses.

It gathers a response from the events by itself, and parses what is called in strict mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import openai

from tests.clients import _openai_responses
from tests.clients._openai_responses import ERRORS, TOOLS, answered, opened, turn_of
from tests.clients._seen import QUESTION, Turn

if TYPE_CHECKING:
    from openai.types.responses import ResponseInputItemParam

__all__ = ["ERRORS", "opened", "turns"]


def turns(client: openai.OpenAI, model: str, *, stream: bool) -> Iterator[Turn]:
    """Yield each turn, and answer its calls after that."""
    if not stream:
        yield from _openai_responses.turns(client, model, stream=False)
        return
    items: list[ResponseInputItemParam] = [{"role": "user", "content": QUESTION}]
    while True:
        with client.responses.stream(model=model, input=items, tools=TOOLS) as events:
            turn = turn_of(events.get_final_response())
        yield turn
        if not turn.calls:
            return
        items.extend(answered(turn))

"""OpenAI's own client for Python, by its Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import openai

from tests.clients._seen import DESCRIPTION, NAMES, QUESTION, RESULT, SCHEMA, Call, Turn

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
    from openai.types.chat import ChatCompletionFunctionToolParam as ChatTool

ERRORS = (openai.OpenAIError,)
TOOLS: list[ChatTool] = [
    {
        "type": "function",
        "function": {"name": name, "description": DESCRIPTION, "parameters": SCHEMA},
    }
    for name in NAMES
]


def opened(root: str) -> openai.OpenAI:
    """Return a client of the server at this address; closes with its context."""
    return openai.OpenAI(base_url=f"{root}/v1", api_key="none")


def turns(client: openai.OpenAI, model: str, *, stream: bool) -> Iterator[Turn]:
    """Yield each turn, and answer its calls after that."""
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    while True:
        completion = _asked(client, model, messages, stream=stream)
        turn = _turn(completion)
        yield turn
        if not turn.calls:
            return
        messages.append(
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": str(call.arguments)},
                    }
                    for call in turn.calls
                ],
            }
        )
        messages.extend(
            {"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in turn.calls
        )


def _asked(
    client: openai.OpenAI, model: str, messages: list[ChatCompletionMessageParam], *, stream: bool
) -> ChatCompletion:
    if not stream:
        return client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    with client.chat.completions.stream(
        model=model, messages=messages, tools=TOOLS, stream_options={"include_usage": True}
    ) as events:
        return events.get_final_completion()


def _turn(completion: ChatCompletion) -> Turn:
    (choice,) = completion.choices
    usage = completion.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    return Turn(
        text=choice.message.content or "",
        calls=tuple(
            Call(id=call.id, name=call.function.name, arguments=call.function.arguments)
            for call in choice.message.tool_calls or ()
            if call.type == "function"
        ),
        finish=choice.finish_reason,
        tokens=(
            usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens or 0,
            usage.completion_tokens,
        ),
    )

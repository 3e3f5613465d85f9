"""The scripted model server as a real `anthropic` client sees it."""

from __future__ import annotations

import asyncio

import anthropic
import pytest
from anthropic.types import Message, MessageParam, ToolParam

from otel_loopguard.testing import ModelServer, model_server

TOOLS: list[ToolParam] = [
    {
        "name": name,
        "input_schema": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    }
    for name in ("search", "lookup")
]
TOKENS = 100


def history(turns: list[Message]) -> list[MessageParam]:
    """Return the history with an answer to each call, as the client's own objects."""
    messages: list[MessageParam] = [{"role": "user", "content": "go"}]
    for turn in turns:
        calls = [block.id for block in turn.content if block.type == "tool_use"]
        messages.append({"role": "assistant", "content": turn.content})
        messages.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
                    for call_id in calls
                ],
            }
        )
    return messages


def run(server: ModelServer, model: str, *, limit: int, stream: bool) -> list[Message]:
    """Play an agent until the model answers, or for so many turns."""
    turns: list[Message] = []
    with anthropic.Anthropic(base_url=server.root, api_key="none") as client:
        while len(turns) < limit and (not turns or turns[-1].stop_reason == "tool_use"):
            messages = history(turns)
            if stream:
                with client.messages.stream(
                    model=model, max_tokens=TOKENS, messages=messages, tools=TOOLS
                ) as events:
                    turns.append(events.get_final_message())
            else:
                turns.append(
                    client.messages.create(
                        model=model, max_tokens=TOKENS, messages=messages, tools=TOOLS
                    )
                )
    return turns


async def run_async(server: ModelServer, model: str, *, limit: int, stream: bool) -> list[Message]:
    turns: list[Message] = []
    async with anthropic.AsyncAnthropic(base_url=server.root, api_key="none") as client:
        while len(turns) < limit and (not turns or turns[-1].stop_reason == "tool_use"):
            messages = history(turns)
            if stream:
                async with client.messages.stream(
                    model=model, max_tokens=TOKENS, messages=messages, tools=TOOLS
                ) as events:
                    turns.append(await events.get_final_message())
            else:
                turns.append(
                    await client.messages.create(
                        model=model, max_tokens=TOKENS, messages=messages, tools=TOOLS
                    )
                )
    return turns


def play(
    server: ModelServer, model: str, *, limit: int, stream: bool, asynchronous: bool
) -> list[Message]:
    if asynchronous:
        return asyncio.run(run_async(server, model, limit=limit, stream=stream))
    return run(server, model, limit=limit, stream=stream)


every_way = pytest.mark.parametrize(
    ("stream", "asynchronous"),
    [(stream, asynchronous) for stream in (False, True) for asynchronous in (False, True)],
)


@every_way
def test_finish3_takes_two_tools_and_an_answer(*, stream: bool, asynchronous: bool) -> None:
    with model_server() as server:
        turns = play(server, "finish3", limit=10, stream=stream, asynchronous=asynchronous)
    assert [[b.name for b in turn.content if b.type == "tool_use"] for turn in turns] == [
        ["search"],
        ["lookup"],
        [],
    ]
    assert [[b.text for b in turn.content if b.type == "text"] for turn in turns] == [
        [],
        [],
        ["The final answer is 42."],
    ]
    assert [
        (turn.usage.input_tokens, turn.usage.cache_read_input_tokens, turn.usage.output_tokens)
        for turn in turns
    ] == [(100, 0, 20), (66, 64, 20), (96, 64, 20)]
    assert [turn.stop_reason for turn in turns] == ["tool_use", "tool_use", "end_turn"]
    assert [(r.number, r.api, r.script, r.stream) for r in server.requests] == [
        (number, "anthropic-messages", "finish3", stream) for number in (1, 2, 3)
    ]
    assert [(r.tool_results, r.status) for r in server.requests] == [(0, 200), (1, 200), (2, 200)]


@every_way
def test_endless_asks_for_the_same_call_for_ever(*, stream: bool, asynchronous: bool) -> None:
    with model_server() as server:
        turns = play(server, "m", limit=7, stream=stream, asynchronous=asynchronous)
    calls = [block for turn in turns for block in turn.content if block.type == "tool_use"]
    assert [(call.name, call.input) for call in calls] == [("search", {"query": "alpha"})] * 7
    assert len({call.id for call in calls}) == 7
    assert server.count("endless") == 7


def test_strict_names_the_call_without_a_result() -> None:
    with (
        model_server("finish3") as server,
        anthropic.Anthropic(base_url=server.root, api_key="none") as client,
    ):
        first = client.messages.create(
            model="m", max_tokens=TOKENS, messages=history([]), tools=TOOLS
        )
        (call,) = [block for block in first.content if block.type == "tool_use"]
        with pytest.raises(anthropic.BadRequestError, match=call.id):
            client.messages.create(
                model="m", max_tokens=TOKENS, messages=history([first])[:-1], tools=TOOLS
            )
    assert [request.status for request in server.requests] == [200, 400]


def test_a_wrong_path_is_told_the_right_one() -> None:
    with (
        model_server() as server,
        anthropic.Anthropic(base_url=server.url, api_key="none") as client,
        pytest.raises(anthropic.NotFoundError, match=r"'/v1/messages'"),
    ):
        client.messages.create(model="m", max_tokens=TOKENS, messages=history([]))
    assert server.count() == 0

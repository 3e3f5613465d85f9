"""Models in process as models of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, MaxTurnsExceeded, ModelBehaviorError, Runner, function_tool
from agents.items import ToolCallOutputItem

from otel_loopguard.integrations import agents as module
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing import EndlessModel, ScriptedModel, recording_tool
from otel_loopguard.testing.double import Double
from tests.frameworks._contract_doubles import ANSWER, LOOKUP, Doubles, TestDoubles
from tests.frameworks._framework import AGENT, CAP, thread_loop
from tests.frameworks.test_openai_agents import instrument


def agent(model: Any, tool: Any) -> Agent[None]:
    return Agent(name=AGENT, model=model, tools=[function_tool(tool)])


def sync(model: Any, tool: Any) -> str:
    with thread_loop():
        return str(Runner.run_sync(agent(model, tool), "go", max_turns=CAP).final_output)


def awaited(model: Any, tool: Any) -> str:
    return str(asyncio.run(Runner.run(agent(model, tool), "go", max_turns=CAP)).final_output)


def streamed(model: Any, tool: Any) -> str:
    async def run() -> str:
        result = Runner.run_streamed(agent(model, tool), "go", max_turns=CAP)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return asyncio.run(run())


DOUBLES = Doubles(
    module=module,
    aborted=module.AgentsRunAborted,
    model_of=Double.openai_agents,
    instrument=instrument,
    ways={"sync": sync, "async": awaited, "stream": streamed},
    example="openai_agents_agent.py",
    capped=MaxTurnsExceeded,
    # The sixth call starts, and cancels the task; a stream ends without a word then.
    alone={
        "sync": (6, 5, "CancelledError"),
        "async": (6, 5, "CancelledError"),
        "stream": (6, 5, "str"),
    },
    unseen_ways=("stream",),
)


def test_usage_is_that_of_the_turns():
    script = [LOOKUP, ModelTurn(text=ANSWER, input_tokens=7, output_tokens=3)]

    async def run(*, is_streamed: bool) -> list[tuple[int, int, int]]:
        made = agent(ScriptedModel(script).openai_agents(), lookup)
        if is_streamed:
            streaming = Runner.run_streamed(made, "go")
            kinds = [each.type async for each in streaming.stream_events()]
            assert "raw_response_event" in kinds
            responses = streaming.raw_responses
        else:
            result = await Runner.run(made, "go")
            assert any(isinstance(each, ToolCallOutputItem) for each in result.new_items)
            responses = result.raw_responses
        used = [each.usage for each in responses]
        return [(each.requests, each.input_tokens, each.output_tokens) for each in used]

    expected = [(1, 100, 20), (1, 7, 3)]
    assert asyncio.run(run(is_streamed=False)) == expected
    assert asyncio.run(run(is_streamed=True)) == expected


def test_a_stream_has_the_events_of_a_real_one():
    async def run() -> list[tuple[str, str]]:
        made = agent(ScriptedModel([LOOKUP, ANSWER]).openai_agents(), lookup)
        return [
            (event.data.type, str(getattr(event.data, "delta", "")))
            async for event in Runner.run_streamed(made, "go").stream_events()
            if event.type == "raw_response_event"
        ]

    said = asyncio.run(run())
    deltas = [delta for kind, delta in said if kind == "response.output_text.delta"]
    arguments = "response.function_call_arguments.delta"
    assert "".join(deltas) == ANSWER
    assert "".join(delta for kind, delta in said if kind == arguments) == '{"order":7}'
    assert [kind for kind, _ in said if kind.startswith("response.output_item")] == [
        *("response.output_item.added", "response.output_item.done"),
        *("response.output_item.added", "response.output_item.done"),
    ]
    assert [kind for kind, _ in said].count("response.completed") == 2


@pytest.mark.parametrize(
    ("reason", "detail"),
    [
        ("length", "max_output_tokens"),
        ("max_tokens", "max_output_tokens"),
        ("refusal", "content_filter"),
    ],
)
def test_other_providers_words_for_a_cut_turn_are_understood(reason: str, detail: str):
    model = ScriptedModel([ModelTurn(text=ANSWER, finish_reason=reason)]).openai_agents()
    with pytest.raises(ModelBehaviorError, match=f"response.incomplete.*{detail}"):
        streamed(model, lookup)


def test_other_providers_words_for_a_finished_turn_are_understood():
    model = ScriptedModel([ModelTurn(text=ANSWER, finish_reason="end_turn")]).openai_agents()
    assert streamed(model, lookup) == ANSWER


def test_a_hand_over_is_a_tool_that_can_be_named():
    model = EndlessModel("transfer_to_other").openai_agents()
    first = Agent[None](name="first", model=model)
    other = Agent[None](name="other", model=ScriptedModel([ANSWER]).openai_agents())
    first.handoffs = [other]
    result = asyncio.run(Runner.run(first, "go", max_turns=CAP))
    assert (result.final_output, result.last_agent.name) == (ANSWER, "other")


def lookup(order: int, note: str = "none") -> str:
    """Look an order up.

    Args:
        order: its number.
        note: what to write beside it.

    """
    return f"{order} {note}"


def test_a_recording_tool_has_the_schema_of_its_function():
    plain, recording = (function_tool(each) for each in (lookup, recording_tool(lookup)))
    assert recording.params_json_schema == plain.params_json_schema
    assert (recording.name, recording.description) == (plain.name, plain.description)


__all__ = ["DOUBLES", "TestDoubles"]

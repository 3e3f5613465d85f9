"""Models in process as models of Pydantic AI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, UsageLimitExceeded
from pydantic_ai.messages import ModelResponse
from typing_extensions import TypedDict

from otel_loopguard.integrations import pydantic_ai as module
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing import EndlessModel, ScriptedModel, recording_tool
from otel_loopguard.testing.double import Double
from tests.frameworks._contract_doubles import ANSWER, LOOKUP, Doubles, TestDoubles
from tests.frameworks._framework import AGENT, thread_loop
from tests.frameworks.test_pydantic_ai import LIMITS, instrument


def agent(model: Any, tool: Any) -> Agent[None, str]:
    return Agent(model, name=AGENT, tools=[tool])


def sync(model: Any, tool: Any) -> str:
    with thread_loop():
        return agent(model, tool).run_sync("go", usage_limits=LIMITS).output


def awaited(model: Any, tool: Any) -> str:
    return asyncio.run(agent(model, tool).run("go", usage_limits=LIMITS)).output


def streamed(model: Any, tool: Any) -> str:
    async def run() -> str:
        async with agent(model, tool).run_stream("go", usage_limits=LIMITS) as result:
            return await result.get_output()

    return asyncio.run(run())


def by_node(model: Any, tool: Any) -> str:
    async def run() -> str:
        async with agent(model, tool).iter("go", usage_limits=LIMITS) as nodes:
            async for _ in nodes:
                pass
        assert nodes.result is not None
        return nodes.result.output

    return asyncio.run(run())


WAYS = {"sync": sync, "async": awaited, "stream": streamed, "iter": by_node}
DOUBLES = Doubles(
    module=module,
    aborted=module.PydanticAIRunAborted,
    model_of=Double.pydantic_ai,
    instrument=instrument,
    ways=WAYS,
    example="pydantic_ai_agent.py",
    capped=UsageLimitExceeded,
    # A veto: its span of a model call lets out what the guard raises when it starts.
    alone=dict.fromkeys(WAYS, (5, 5, "RunAborted")),
)


def test_usage_and_finish_reasons_are_those_of_the_turns():
    script = [LOOKUP, ModelTurn(text=ANSWER, finish_reason="length", output_tokens=3)]

    async def run(*, is_streamed: bool) -> list[tuple[str | None, int, int, str | None]]:
        made = agent(ScriptedModel(script, name="shop").pydantic_ai(), lookup)
        if is_streamed:
            async with made.run_stream("go") as result:
                await result.get_output()
                said = result.all_messages()
        else:
            said = (await made.run("go")).all_messages()
        return [
            (
                each.finish_reason,
                each.usage.input_tokens,
                each.usage.output_tokens,
                each.model_name,
            )
            for each in said
            if isinstance(each, ModelResponse)
        ]

    expected = [("tool_call", 100, 20, "shop"), ("length", 0, 3, "shop")]
    assert asyncio.run(run(is_streamed=False)) == expected
    assert asyncio.run(run(is_streamed=True)) == expected


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("max_tokens", "length"),
        ("end_turn", "stop"),
        ("refusal", "content_filter"),
        ("error", "error"),
        ("", None),
    ],
)
def test_other_providers_words_for_why_it_stopped_are_understood(reason: str, said: str | None):
    model = ScriptedModel([ModelTurn(text=ANSWER, finish_reason=reason)])
    with thread_loop():
        last = agent(model.pydantic_ai(), lookup).run_sync("go").all_messages()[-1]

    assert isinstance(last, ModelResponse)
    assert last.finish_reason == said


class Sum(TypedDict):
    """What an agent may answer."""

    total: int


def test_a_structured_output_is_a_call_of_its_tool():
    model = ScriptedModel([LOOKUP, ("final_result", {"total": 3})])
    made = Agent(model.pydantic_ai(), tools=[lookup], output_type=Sum)
    with thread_loop():
        assert made.run_sync("go").output == {"total": 3}
    assert model.calls == 2


def lookup(order: int, note: str = "none") -> str:
    """Look an order up.

    Args:
        order: its number.
        note: what to write beside it.

    """
    return f"{order} {note}"


def test_a_recording_tool_has_the_schema_of_its_function():
    plain, recording = (
        Agent(EndlessModel().pydantic_ai(), tools=[each])
        for each in (lookup, recording_tool(lookup))
    )
    assert schema(recording) == schema(plain)


def schema(made: Agent[None, str]) -> Any:
    toolset: Any = made.toolsets[0]
    [tool] = toolset.tools.values()
    return tool.function_schema.json_schema, tool.description, tool.name


__all__ = ["DOUBLES", "TestDoubles"]

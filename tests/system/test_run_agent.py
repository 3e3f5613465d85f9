"""The reference loop over a provider's client, against the scripted model server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, cast

import openai
import pytest

from otel_loopguard import (
    AgentResult,
    Message,
    ModelTurn,
    Policy,
    RunAborted,
    Tool,
    ToolCall,
    TurnRequest,
    guarded_run,
    run_agent,
    run_agent_async,
)
from otel_loopguard.agent_loop.messages import text_of
from otel_loopguard.testing import ModelServer, model_server
from tests._run_agent import HELLO, Recorded
from tests._tracing import Traced

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}
NO_RULES = Policy.none()


def shown(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return a conversation as OpenAI's Chat API takes it."""
    return [one_shown(message) for message in messages]


def one_shown(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {
            "id": each.call_id,
            "type": "function",
            "function": {"name": each.name, "arguments": text_of(each.arguments)},
        }
        for each in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def question(request: TurnRequest, model: str) -> dict[str, Any]:
    tools = [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}
        for tool in request.tools
    ]
    return {"model": model, "messages": shown(request.messages), "tools": tools}


def turn_of(answer: Any) -> ModelTurn:
    choice = answer.choices[0]
    calls: Sequence[Any] = choice.message.tool_calls or ()
    return ModelTurn(
        text=choice.message.content or "",
        calls=tuple(
            ToolCall(name=c.function.name, arguments=c.function.arguments, call_id=c.id)
            for c in calls
        ),
        finish_reason=choice.finish_reason,
        input_tokens=answer.usage.prompt_tokens,
        output_tokens=answer.usage.completion_tokens,
    )


def play(
    way: str, server: ModelServer, tool: Tool, process: Traced, script: str, **options: Any
) -> AgentResult:
    given: dict[str, Any] = {"tracer_provider": process.provider, "model_name": script, **options}
    if way == "sync":
        with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:

            def ask(request: TurnRequest) -> ModelTurn:
                create = cast("Any", client.chat.completions.create)
                return turn_of(create(**question(request, script)))

            return run_agent(ask, HELLO, [tool], **given)

    async def run() -> AgentResult:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as asked:

            async def ask(request: TurnRequest) -> ModelTurn:
                create = cast("Any", asked.chat.completions.create)
                return turn_of(await create(**question(request, script)))

            return await run_agent_async(ask, HELLO, [tool], **given)

    return asyncio.run(run())


WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def searching(tool: Recorded) -> Tool:
    return Tool(name="search", call=tool, parameters=SCHEMA)


@WAYS
def test_a_script_completes_and_every_request_is_well_formed(way: str, process: Traced):
    tool = Recorded()
    with model_server("finish3") as server:
        result = play(way, server, searching(tool), process, "finish3")

        assert (result.ending, result.model_calls, result.tool_calls) == ("complete", 3, 2)
        assert (server.count(), len(tool.executions)) == (3, 2)
    assert result.output


@WAYS
def test_its_own_guard_ends_an_endless_model(way: str, process: Traced):
    tool = Recorded(*["nothing"] * 9)
    with model_server("endless") as server:
        result = play(way, server, searching(tool), process, "endless")

        assert (result.ending, result.report.rule) == ("repeated_call", "repeated_result")
        assert (server.count(), len(tool.executions)) == (5, 5)


@WAYS
@pytest.mark.parametrize("abort", [("gate",), ("veto",), None], ids=["gate", "veto", "all"])
def test_a_guard_around_it_keeps_the_request_from_leaving(way: str, abort: Any, process: Traced):
    process.guard(NO_RULES.with_limits(max_llm_calls=3), mode="enforce", abort=abort)
    tool = Recorded()
    with model_server("endless") as server, guarded_run("order") as run:
        result = play(way, server, searching(tool), process, "endless", policy=NO_RULES)

        assert (result.ending, server.count(), len(tool.executions)) == ("aborted", 3, 3)
    assert isinstance(result.aborted, RunAborted)
    assert (result.aborted.run_id, result.aborted.report.rule) == ("order", "llm_call_budget")
    assert run.report is not None
    counted = (run.report.steps, run.report.model_calls, run.report.tool_calls)
    assert (run.report.status, counted) == ("aborted", (6, 3, 3))


@WAYS
def test_the_conversation_goes_on_after_a_stop(way: str, process: Traced):
    with model_server("finish3") as server:
        before = play(way, server, searching(Recorded()), process, "endless", max_steps=5)
        assert (before.ending, before.history[-1].failed) == ("step_limit", True)
        asked = Message(role="user", text="Then look somewhere else.")
        goes_on = shown([*before.history, asked])
        with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
            create = cast("Any", client.chat.completions.create)
            answer = create(model="finish3", messages=goes_on)

    assert answer.choices[0].finish_reason in {"stop", "tool_calls"}

"""Models in process as chat models of LangChain."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager
from typing import Any, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool as langchain_tool
from langgraph.errors import GraphRecursionError
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.integrations import langchain as module
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing import EndlessModel, ScriptedModel, recording_tool
from otel_loopguard.testing.double import Double
from tests.frameworks._contract_doubles import (
    ANSWER,
    FIVE,
    LOOKUP,
    Doubles,
    TestDoubles,
    looking_up,
    scene,
)
from tests.frameworks._framework import AGENT
from tests.frameworks._openinference import openinference
from tests.frameworks.test_langchain import CONFIG, answer, instrument

ASKED: Any = {"messages": [{"role": "user", "content": "go"}]}
MODES: Any = ["values", "messages"]


def agent(model: Any, tool: Any) -> Any:
    return cast("Any", create_agent)(model, [tool], name=AGENT)


def sync(model: Any, tool: Any) -> str:
    return answer(agent(model, tool).invoke(ASKED, CONFIG))


def awaited(model: Any, tool: Any) -> str:
    return answer(asyncio.run(agent(model, tool).ainvoke(ASKED, CONFIG)))


def streamed(model: Any, tool: Any) -> str:
    parts = list(agent(model, tool).stream(ASKED, CONFIG, stream_mode=MODES))
    return answer([part for mode, part in parts if mode == "values"][-1])


def streamed_later(model: Any, tool: Any) -> str:
    async def run() -> list[Any]:
        stream = agent(model, tool).astream(ASKED, CONFIG, stream_mode=MODES)
        return [part async for mode, part in stream if mode == "values"]

    return answer(asyncio.run(run())[-1])


WAYS = {"sync": sync, "async": awaited, "stream": streamed, "async stream": streamed_later}
DOUBLES = Doubles(
    module=module,
    aborted=module.LangChainRunAborted,
    model_of=Double.langchain,
    instrument=instrument,
    ways=WAYS,
    example="langchain_agent.py",
    capped=GraphRecursionError,
    # Its callbacks swallow what a span's start raises, and there is no request to refuse.
    alone=dict.fromkeys(WAYS, (12, 12, "GraphRecursionError")),
    # It is an `invalid_tool_call`, which no node looks at; a stream is put together with `{}`.
    # Before Python 3.11 LangGraph tells no awaited model call that somebody reads along.
    silent_ways=("sync", "async", *(("async stream",) if sys.version_info < (3, 11) else ())),
)


def test_usage_and_finish_reasons_are_those_of_the_turns():
    script = [LOOKUP, ModelTurn(text=ANSWER, finish_reason="length", output_tokens=3)]
    expected: list[tuple[object, ...]] = [
        ("", "tool_calls", 100, 20, [{"order": 7}]),
        (ANSWER, "length", 0, 3, []),
    ]
    model = ScriptedModel(script).langchain()
    assert [summary(model.invoke("go")) for _ in script] == expected
    model = ScriptedModel(script).langchain()
    assert [summary(joined(list(model.stream("go")))) for _ in script] == expected

    async def later(model: Any) -> list[AIMessage]:
        once = await model.ainvoke("go")
        return [once, joined([each async for each in model.astream("go")])]

    model = ScriptedModel(script).langchain()
    assert [summary(each) for each in asyncio.run(later(model))] == expected


def joined(chunks: list[Any]) -> AIMessage:
    whole = chunks[0]
    for each in chunks[1:]:
        whole += each
    assert isinstance(whole, AIMessageChunk)
    return whole


def summary(message: Any) -> tuple[str, str, int, int, list[Any]]:
    usage, said = message.usage_metadata, message.response_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert said["model_name"] == "scripted-model"
    return (
        message.content,
        said["finish_reason"],
        usage["input_tokens"],
        usage["output_tokens"],
        [each["args"] for each in message.tool_calls],
    )


def lookup(order: int, note: str = "none") -> str:
    """Look an order up."""
    return f"{order} {note}"


def test_a_recording_tool_has_the_schema_of_its_function():
    plain, recording = (
        cast("Any", langchain_tool)(each) for each in (lookup, recording_tool(lookup))
    )
    assert recording.tool_call_schema.model_json_schema() == (
        plain.tool_call_schema.model_json_schema()
    )
    assert (recording.name, recording.description) == (plain.name, plain.description)


def test_calls_that_openinference_shows_are_not_counted_twice():
    def instrumented(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
        return openinference(LangChainInstrumentor(), provider=provider, content=content)

    model, tool = EndlessModel(), looking_up()
    with scene(DOUBLES, FIVE, instrument=instrumented) as at:
        assert type(at.run("sync", model, tool)) is module.LangChainRunAborted
    assert (model.calls, tool.executions) == (5, 5)


def test_the_first_tool_that_is_bound_is_called():
    model = EndlessModel().langchain().bind_tools([lookup])
    [call] = cast("Any", model.invoke("go")).tool_calls
    assert (call["name"], call["args"]) == ("lookup", {"order": 1})


__all__ = ["DOUBLES", "TestDoubles"]

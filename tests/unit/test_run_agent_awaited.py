"""What would have to be awaited is refused where nobody awaits it: else it would say nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from otel_loopguard import ModelTurn, PolicyError, Tool, run_agent
from tests._run_agent import DONE, HELLO, PLAYS, Play, Recorded, Script, answers, asks, call


@pytest.fixture(params=PLAYS)
def play(request: pytest.FixtureRequest) -> Play:
    return PLAYS[request.param]


async def refuse(_: object) -> bool:
    return False


class Refusing:
    async def __call__(self, _: object) -> bool:
        return False


@pytest.mark.parametrize("check", [refuse, Refusing()], ids=["function", "object"])
def test_a_check_is_no_coroutine_function(play: Play, check: Any):
    with pytest.raises(PolicyError, match="check_result: expected a callable or None, none that"):
        play(Script(DONE), check_result=check)
    with pytest.raises(PolicyError, match=r"Tool\('search'\).check: expected a callable or None"):
        Tool(name="search", call=Recorded(), check=check)


def later(given: object) -> Any:
    return refuse(given)  # nothing shows from outside that this is to be awaited


def test_a_check_that_answers_with_what_is_to_be_awaited_accepts_nothing(play: Play):
    result = play(Script(DONE), check_result=later)
    assert (result.ending, type(result.error)) == ("invalid_result", TypeError)

    tool = Recorded()
    model = Script(asks(call(call_id="a")), DONE)
    result = play(model, [Tool(name="search", call=tool, check=later)])
    assert (result.ending, tool.executions) == ("complete", [])
    assert "check answered with a coroutine" in answers(result)["a"]


def test_without_a_loop_nobody_awaits_what_a_tool_or_a_model_answers():
    search = Tool(name="search", call=lambda: refuse(None))
    result = run_agent(Script(asks(call(call_id="a")), DONE), HELLO, [search])
    assert answers(result)["a"].startswith("TypeError: the tool 'search' answered with a coroutine")

    def ask(_: object) -> Any:
        return refuse(None)

    result = run_agent(ask, HELLO)
    assert result.ending == "provider_error"
    assert "the model answered with a coroutine" in str(result.error)


def test_nor_a_future():
    futures = asyncio.new_event_loop()
    search = Tool(name="search", call=futures.create_future)
    result = run_agent(Script(asks(call(call_id="a")), ModelTurn(text="Done.")), HELLO, [search])
    futures.close()

    assert "answered with a Future" in answers(result)["a"]

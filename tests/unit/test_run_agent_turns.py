"""What a model's code may put into a turn, and what a finish tool of a turn has come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from otel_loopguard import UNKNOWN, ModelTurn, Policy, Tool, ToolCall, run_agent_async
from tests._run_agent import DONE, HELLO, PLAYS, Clock, Play, Recorded, Script, answers, asks, call


def asked(**fields: Any) -> ToolCall:
    """Return a call with fields that may be of another type."""
    return ToolCall(**{"name": "search", **fields})


def said(**fields: Any) -> ModelTurn:
    """Return a turn likewise."""
    return ModelTurn(**fields)


WRONG: dict[str, Any] = {
    "a text of another type": {"text": ["It rains."]},
    "calls that are none": {"calls": 5},
    "a pair": {"calls": (("search", {}),)},
    "a table": {"calls": ({"name": "search"},)},
    "an id of another type": {"calls": (asked(call_id=["a"]),)},
    "a number as an id": {"calls": (asked(call_id=7),)},
    "no name": {"calls": (asked(name=None),)},
    "a reason of another type": {"finish_reason": 5},
    "no tokens": {"text": "x", "input_tokens": None},
    "tokens that are no number": {"text": "x", "input_tokens": float("nan")},
    "half a token": {"text": "x", "output_tokens": 0.5},
}


@pytest.fixture(params=PLAYS)
def play(request: pytest.FixtureRequest) -> Play:
    return PLAYS[request.param]


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG.keys())
def test_a_turn_with_something_of_another_type_is_the_providers_error(
    play: Play, fields: dict[str, Any]
):
    result = play(Script(said(**fields)), [Tool(name="search", call=Recorded())])

    assert (result.ending, result.steps, result.tool_calls) == ("provider_error", 1, 0)
    assert isinstance(result.error, (TypeError, ValueError))


def test_its_error_says_where_and_what_was_expected(play: Play):
    result = play(Script(said(**WRONG["an id of another type"])))
    assert "got `array` - at `$.calls[0].call_id`" in str(result.error)

    result = play(Script(said(**WRONG["a pair"])))
    assert str(result.error) == "the model asks for a tuple; expected a ToolCall"


def test_tokens_that_are_no_number_switch_no_limit_off(play: Play):
    turns = [asks(call(n=n), tokens=(1000, 0)) for n in range(1, 9)]
    first = said(calls=(call(n=0),), input_tokens=float("nan"))
    result = play(Script(first, *turns), policy=Policy.none(), max_tokens=10)

    assert (result.ending, result.steps) == ("provider_error", 1)


def test_what_is_none_beside_calls_is_nothing(play: Play):
    """So clients have it: `message.content` is None beside calls, `tool_calls` is beside text."""
    nothing: dict[str, Any] = {"text": None, "finish_reason": None}
    last: dict[str, Any] = {"text": "It rains.", "calls": None, "finish_reason": None}
    model = Script(said(**nothing, calls=(call(q="x"),)), said(**last))
    result = play(model, [Tool(name="search", call=Recorded("found"))])

    assert (result.ending, result.output) == ("complete", "It rains.")
    assert result.last_turn == ModelTurn(text="It rains.")
    assert result.history[1].text == ""


def test_arguments_of_any_type_stay_what_they_are(play: Play):
    own = object()
    calls = [ToolCall(name="search", arguments={"of": own}), ToolCall(name="search")]
    model, tool = Script(said(calls=calls), DONE), Recorded()
    result = play(model, [Tool(name="search", call=tool, check=lambda _: None)])

    assert result.ending == "complete"
    assert [[*each] for each in tool.executions] == [["of"], []]
    assert calls[1].arguments is UNKNOWN


# ---------------------------------------------------------------------------------- the finish tool


def submit_and(other: Callable[..., object]) -> list[Tool]:
    return [
        Tool(name="submit", call=Recorded("RESULT"), finish=True),
        Tool(name="search", call=other),
    ]


BOTH = asks(call("submit", "a"), call("search", "b"))


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_tool_calls": 1}, 2),
        ({"max_steps": 2}, 2),
        ({"policy": Policy.none().with_limits(max_tool_calls=1)}, 2),
        ({"max_tool_calls": 2, "temporary": (TimeoutError,)}, 3),
    ],
    ids=["tool limit", "step limit", "a rule", "a second try"],
)
def test_a_finish_tool_is_not_failed_for_what_the_others_took(
    play: Play, options: dict[str, Any], steps: int
):
    result = play(Script(BOTH), submit_and(Recorded(TimeoutError("busy"))), **options)

    assert (result.ending, result.output, result.steps) == ("complete", "RESULT", steps)
    assert [*answers(result)] == ["a", "b"], "each of them is answered"


def test_a_rule_that_a_call_beside_it_breaks_takes_no_result_away():
    same = [asks(call("search", f"s{n}")) for n in range(4)]
    model = Script(*same, asks(call("search", "s"), call("submit", "a")))
    result = asyncio.run(run_agent_async(model, HELLO, submit_and(Recorded(*["nothing"] * 5))))

    assert (result.ending, result.output, result.tool_calls) == ("complete", "RESULT", 6)


def test_what_is_raised_beside_it_ends_the_run_all_the_same(play: Play):
    tools = submit_and(Recorded(KeyError("gone")))
    result = play(Script(BOTH), tools, fatal=(KeyError,))

    assert (result.ending, result.output) == ("tool_error", None)


# --------------------------------------------------------------------------------------- lateness


@pytest.mark.asyncio
async def test_a_result_that_came_in_time_is_kept_although_another_was_late():
    clock, fast_is_back = Clock(), asyncio.Event()

    async def fast() -> str:
        fast_is_back.set()
        return "in time"

    async def slow() -> str:
        await fast_is_back.wait()
        await asyncio.sleep(0)
        clock.advance(10)
        return "late"

    tools = [Tool(name="fast", call=fast), Tool(name="slow", call=slow)]
    model = Script(asks(call("fast", "f"), call("slow", "s")))
    result = await run_agent_async(model, HELLO, tools, deadline_s=10, clock=clock)

    assert result.ending == "deadline"
    assert answers(result)["f"] == "in time"
    assert answers(result)["s"].startswith("it came back after the deadline")


# ------------------------------------------------------------------------ the loop's own answers


@pytest.mark.parametrize("declared", ["fatal", "temporary"])
@pytest.mark.parametrize(
    "kind", [Exception, LookupError, ValueError], ids=lambda kind: kind.__name__
)
def test_what_the_loop_itself_answers_is_neither_fatal_nor_temporary(
    play: Play, declared: str, kind: type[Exception]
):
    deep = "[" * 100_000
    calls = (call("serach", "a"), call("search", "b", q=5), ToolCall(name="search", arguments=deep))
    schema = {"properties": {"q": {"type": "string"}}}
    tool = Recorded()
    result = play(
        Script(asks(*calls), DONE),
        [Tool(name="search", call=tool, parameters=schema)],
        **{declared: (kind,)},
    )

    assert (result.ending, result.tool_calls, tool.executions) == ("complete", 3, [])
    kinds = [text.partition(":")[0] for text in answers(result).values()]
    assert kinds == ["UnknownToolError", "InvalidArgumentsError", "InvalidArgumentsError"]

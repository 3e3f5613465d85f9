"""Models and a clock in process: they say what they were told to say, and count."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from otel_loopguard import LoopGuard, Policy, Step
from otel_loopguard.model_turns import ModelTurn, ToolCall
from otel_loopguard.testing import (
    EndlessModel,
    FakeClock,
    ModelRefusedError,
    NoToolError,
    ScriptedModel,
    ScriptEndedError,
)
from otel_loopguard.testing.call_arguments import arguments_object, arguments_text

ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}}
OFFER = SimpleNamespace(
    tools=[
        SimpleNamespace(name="stock", parameters=None),
        SimpleNamespace(name="lookup", parameters=ORDER),
    ]
)
"""What a loop tells a model that may call tools, as a `TurnRequest` does."""

WRONG: list[object] = [
    *(None, 7, [], ["lookup"], ("lookup",), ("lookup", "order")),
    [("lookup", {}), "text"],
]
"""What is no turn."""


def test_an_endless_model_asks_for_the_same_call_for_ever():
    model = EndlessModel("lookup", {"order": 7})
    turns = [model() for _ in range(50)]
    calls = [call for turn in turns for call in turn.calls]
    assert {(call.name, str(call.arguments)) for call in calls} == {("lookup", "{'order': 7}")}
    assert len({call.call_id for call in calls}) == 50
    assert {(turn.text, turn.finish_reason) for turn in turns} == {("", "tool_calls")}
    assert [turn.input_tokens for turn in turns[:3]] == [100, 130, 160]
    assert {turn.output_tokens for turn in turns} == {20}
    assert model.calls == 50


def test_ids_differ_between_models():
    ids = {EndlessModel("lookup")().calls[0].call_id for _ in range(20)}
    assert len(ids) == 20


def test_equal_calls_at_once_have_an_id_each():
    turn = EndlessModel("lookup", {"order": 7}, at_once=3)()
    assert [(each.name, each.arguments) for each in turn.calls] == [("lookup", {"order": 7})] * 3
    assert len({each.call_id for each in turn.calls}) == 3


@pytest.mark.parametrize(
    ("model", "name", "arguments"),
    [
        pytest.param(EndlessModel(), "stock", {}, id="the first one"),
        pytest.param(EndlessModel("lookup"), "lookup", {"order": 1}, id="one by its name"),
        pytest.param(
            EndlessModel("lookup", {"order": 7}), "lookup", {"order": 7}, id="spelled out"
        ),
        pytest.param(EndlessModel("delete"), "delete", {}, id="one that is not offered"),
    ],
)
def test_the_tools_that_are_offered_count(
    model: EndlessModel, name: str, arguments: dict[str, object]
):
    [call] = model(OFFER).calls
    assert (call.name, call.arguments) == (name, arguments)


def test_a_tool_cannot_change_what_is_asked_for_next():
    model = EndlessModel("lookup", {"orders": [7]})
    [first] = model().calls
    cast("dict[str, list[int]]", first.arguments)["orders"].append(8)
    assert model().calls[0].arguments == {"orders": [7]}


def test_without_any_tool_it_says_so():
    with pytest.raises(NoToolError, match=r"EndlessModel\(None, .*offered no tool in call 1;"):
        EndlessModel()("a prompt", temperature=0)


class Named:
    name = "stock"


@pytest.mark.parametrize(
    "tools",
    [None, 5, "lookup", {"lookup": {}}, [{"name": "lookup"}], [len], [Named(), None], iter([1])],
    ids=lambda tools: repr(tools)[:20],
)
def test_it_is_called_with_anything(tools: object):
    model = EndlessModel("lookup", {"order": 7})
    assert model(SimpleNamespace(tools=tools)).calls[0].arguments == {"order": 7}
    assert model.calls == 1

    model.refuse("enough")
    with pytest.raises(ModelRefusedError, match="refused call 2: enough"):
        model(SimpleNamespace(tools=tools))
    assert model.calls == 2


@pytest.mark.parametrize("tool", [len, 5, {"name": "lookup"}], ids=repr)
def test_what_is_no_name_of_a_tool_is_refused(tool: Any):
    with pytest.raises(TypeError, match="is no name of a tool; expected one, such as 'lookup'"):
        EndlessModel(tool)


@pytest.mark.parametrize("at_once", [0, -1, True, 1.5, "2", None])
def test_turns_without_calls_are_refused(at_once: Any):
    with pytest.raises(ValueError, match=f"at_once={at_once!r} is no number"):
        EndlessModel("lookup", at_once=at_once)


def test_a_script_is_played_turn_by_turn():
    whole = ModelTurn(text="Done.", finish_reason="length", input_tokens=5, output_tokens=9)
    own_id = ToolCall(name="lookup", arguments='{"order": ', call_id="mine")
    model = ScriptedModel(
        [
            ("lookup", {"order": 7}),
            [("lookup", {"order": 8}), ToolCall(name="stock")],
            own_id,
            "It has been shipped.",
            whole,
        ]
    )
    first, second, third, fourth, fifth = (model() for _ in range(5))
    assert [(each.name, each.arguments) for each in first.calls] == [("lookup", {"order": 7})]
    assert [each.name for each in second.calls] == ["lookup", "stock"]
    assert all(each.call_id for each in (*first.calls, *second.calls))
    assert third.calls == (own_id,)
    assert (fourth.text, fourth.calls, fourth.finish_reason) == (
        "It has been shipped.",
        (),
        "stop",
    )
    assert fifth == whole


def test_a_script_raises_what_it_holds_and_goes_on():
    model = ScriptedModel([TimeoutError("slow"), "Here it is."])
    with pytest.raises(TimeoutError, match="slow"):
        model()
    assert model().text == "Here it is."


def test_a_script_that_runs_dry_invents_no_answer():
    model = ScriptedModel(["one", "two"], name="shop")
    assert [model().text, model().text] == ["one", "two"]
    expected = r"ScriptedModel\(2 turns, name='shop'\) has no turn for call {}: its script has 2;"
    for call in (3, 4):
        with pytest.raises(ScriptEndedError, match=expected.format(call)):
            model()
    assert model.calls == 4


@pytest.mark.parametrize("turn", WRONG, ids=repr)
def test_a_turn_of_another_form_is_named(turn: object):
    with pytest.raises(TypeError, match="turn 2 of the script is "):
        ScriptedModel(["fine", turn])  # pyright: ignore[reportArgumentType] -- wrong on purpose


def test_a_text_is_no_list_of_turns():
    with pytest.raises(TypeError, match=r"expected a list of turns: \['done'\]"):
        ScriptedModel("done")


@pytest.mark.parametrize(
    "model", [EndlessModel("lookup"), ScriptedModel(["one", "two"])], ids=["endless", "scripted"]
)
def test_a_refused_model_answers_no_more(model: EndlessModel | ScriptedModel):
    model()
    model.refuse("the test is over")
    for call in (2, 3):
        with pytest.raises(ModelRefusedError, match=f"refused call {call}: the test is over"):
            model()
    assert model.calls == 3


def test_an_awaited_model_lets_a_timeout_end_its_loop():
    model = EndlessModel("lookup")

    async def runaway() -> None:
        for _ in range(1_000_000):
            await model.awaited("anything", at="all")

    async def ended() -> None:
        await asyncio.wait_for(runaway(), timeout=0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(ended())
    assert model.calls > 1


@pytest.mark.parametrize(
    ("given", "text", "known"),
    [
        pytest.param({"a": [1]}, '{"a":[1]}', {"a": [1]}, id="object"),
        pytest.param('{"a": 1}', '{"a": 1}', {"a": 1}, id="json text"),
        pytest.param('{"a": ', '{"a": ', None, id="cut"),
        pytest.param([1], "[1]", None, id="no object"),
        pytest.param(ToolCall(name="x").arguments, "{}", {}, id="unknown"),
    ],
)
def test_arguments_in_the_forms_that_frameworks_want(
    given: object, text: str, known: dict[str, object] | None
):
    assert (arguments_text(given), arguments_object(given)) == (text, known)


def test_a_clock_stands_still_until_it_is_moved():
    clock = FakeClock()
    guard = LoopGuard(Policy.none(), max_duration_s=60, clock=clock)
    guard.start()
    assert guard.check(Step(kind="tool", name="lookup")).allowed
    assert clock.advance(59.5) == 59.5
    assert guard.check(Step(kind="tool", name="lookup")).allowed
    clock.advance(0.5)
    refused = guard.check(Step(kind="tool", name="lookup"))
    assert (refused.allowed, refused.reason) == (False, "MAX_DURATION_EXCEEDED")
    assert clock() == 60.0
    assert repr(FakeClock(3)) == "FakeClock(3)"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), True, "1"], ids=repr)
def test_a_clock_does_not_go_back_or_nowhere(seconds: float):
    clock = FakeClock(5)
    with pytest.raises(ValueError, match="seconds="):
        clock.advance(seconds)
    assert clock() == 5


@pytest.mark.parametrize("start_s", [float("nan"), True, None], ids=repr)
def test_a_clock_starts_somewhere(start_s: float):
    with pytest.raises(ValueError, match="start_s="):
        FakeClock(start_s)

"""Laws of the reference loop: both ways to run it are one, and no script gets around its bounds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from otel_loopguard import AgentResult, ModelTurn, Policy, Tool, ToolCall
from tests._examples import examples
from tests._run_agent import DONE, PLAYS, Recorded, Script, call

SCHEMA = {"properties": {"n": {"type": "integer"}}}
FATAL, TEMPORARY = KeyError("gone"), TimeoutError("busy")

CALLS = st.one_of(
    st.builds(call, st.just("search"), st.none(), n=st.integers(0, 2)),
    st.builds(call, st.sampled_from(["serach", "submit"]), st.sampled_from([None, "c"])),
    st.just(ToolCall(name="search", arguments='{"n": "one"}', call_id="c")),
    st.just(ToolCall(name="search", arguments="{")),
)
OTHERS: SearchStrategy[Any] = st.sampled_from(
    [
        DONE,
        ModelTurn(text=" "),
        ModelTurn(text="It", finish_reason="length", output_tokens=9),
        ModelTurn(text="It", finish_reason="content_filter"),
        ModelTurn(finish_reason="tool_calls"),
        ConnectionError("no route"),
    ]
)


def asking(calls: list[ToolCall]) -> ModelTurn:
    return ModelTurn(calls=tuple(calls), input_tokens=3, output_tokens=1)


def scripts(calls_in_a_turn: int) -> SearchStrategy[list[Any]]:
    asks: SearchStrategy[Any] = st.lists(CALLS, min_size=1, max_size=calls_in_a_turn).map(asking)
    turns = st.lists(st.one_of(asks, asks, asks, OTHERS), max_size=12)
    return turns.map(lambda drawn: [*drawn, DONE, DONE])


RETURNS: SearchStrategy[list[Any]] = st.lists(
    st.sampled_from(["nothing", "nothing", {"hits": 1}, FATAL, TEMPORARY, ValueError("no")]),
    max_size=12,
)
OPTIONS = st.fixed_dictionaries(
    {
        "max_steps": st.integers(1, 12),
        "max_tool_calls": st.integers(1, 8),
        "max_tokens": st.integers(1, 40),
        "policy": st.sampled_from([None, Policy.none(), Policy.none().with_limits(max_steps=6)]),
        "temporary": st.sampled_from([(), (TimeoutError,), (Exception,)]),
        "fatal": st.sampled_from([(), (KeyError,)]),
        "retry_output_tokens": st.sampled_from([None, 9]),
    }
)


def run(way: str, turns: list[Any], returns: list[Any], options: dict[str, Any]) -> Any:
    model, tool, submit = Script(*turns), Recorded(*returns), Recorded()
    tools = [
        Tool(name="search", call=tool, parameters=SCHEMA),
        Tool(name="submit", call=submit, finish=True),
    ]
    result: AgentResult = PLAYS[way](model, tools, **options)
    return result, model.calls, len(tool.executions) + len(submit.executions)


def told(result: AgentResult) -> tuple[Any, ...]:
    report = result.report
    figures = (report.steps, report.model_calls, report.tool_calls, report.input_tokens)
    violations = [(each.rule, each.action, each.step, each.count) for each in report.violations]
    return (result.ending, figures, violations, result.trace, result.history, result.output)


@given(scripts(1), RETURNS, OPTIONS)
@examples(400)
def test_both_ways_come_to_the_same(turns: list[Any], returns: list[Any], options: dict[str, Any]):
    one, other = (run(way, turns, returns, options) for way in PLAYS)

    assert told(one[0]) == told(other[0])
    assert one[1:] == other[1:]


@given(st.sampled_from([*PLAYS]), scripts(3), RETURNS, OPTIONS)
@examples(400)
def test_no_script_gets_around_the_bounds(
    way: str, turns: list[Any], returns: list[Any], options: dict[str, Any]
):
    result, asked, executed = run(way, turns, returns, options)

    assert asked == result.model_calls
    assert executed <= result.tool_calls <= options["max_tool_calls"]
    assert result.steps == result.model_calls + result.tool_calls <= options["max_steps"]
    assert result.report.open_call_ids == ()
    requested = [each.call_id for message in result.history for each in message.calls]
    answered = [message.call_id for message in result.history if message.role == "tool"]
    assert answered == requested, "each call once, in the order in which they were asked for"
    assert (result.output is not None) <= (result.ending == "complete")
    assert (result.aborted is not None) == (result.ending in {"aborted", "repeated_call"})

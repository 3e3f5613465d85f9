"""The contract of the reference loop, rule by rule, in both ways to run it, with exact counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from otel_loopguard import (
    AgentResult,
    LoopGuard,
    Message,
    ModelTurn,
    Policy,
    PolicyError,
    RunAborted,
    Tool,
    ToolCall,
    run_agent,
    run_agent_async,
)
from otel_loopguard.agent_loop.endings import STATUS_OF, Ended, first_of
from tests._run_agent import (
    DONE,
    HELLO,
    PLAYS,
    Clock,
    Endless,
    Play,
    Recorded,
    Script,
    answers,
    asks,
    call,
    roles,
)

NO_RULES = Policy.none()
CUT = ModelTurn(text="It ra", finish_reason="length", output_tokens=5)
FILTERED = ModelTurn(text="It", finish_reason="content_filter")


@pytest.fixture(params=PLAYS)
def play(request: pytest.FixtureRequest) -> Play:
    return PLAYS[request.param]


def counts(result: AgentResult) -> tuple[str, int, int, int]:
    """Return how it ended, and its steps, model calls and tool calls."""
    return result.ending, result.steps, result.model_calls, result.tool_calls


# ------------------------------------------------------------------------------- limits are bounds


@pytest.mark.parametrize("value", [0, None, True, -1, 1.5, "5"], ids=repr)
@pytest.mark.parametrize("name", ["max_steps", "max_tool_calls", "max_tokens"])
def test_limits_are_positive_whole_numbers(play: Play, name: str, value: object):
    with pytest.raises(PolicyError, match=f"{name}: expected a whole number of at least 1"):
        play(Script(), **{name: value})


@pytest.mark.parametrize("value", [0, None, True, -1, "5", float("inf"), float("nan")], ids=repr)
def test_the_deadline_is_a_positive_number_of_seconds(play: Play, value: object):
    with pytest.raises(PolicyError, match="deadline_s: expected a number of seconds above 0"):
        play(Script(), deadline_s=value)


def test_a_limit_of_one_is_one(play: Play):
    model, tool = Endless(), Recorded()
    result = play(model, [Tool(name="search", call=tool)], max_steps=1)

    assert counts(result) == ("step_limit", 1, 1, 0)
    assert (model.calls, len(tool.executions)) == (1, 0)


@pytest.mark.parametrize("policy", [NO_RULES, Policy(max_steps=None)], ids=["none", "no limit"])
def test_no_policy_switches_the_limits_off(play: Play, policy: Policy):
    model, tool = Endless(), Recorded()
    result = play(model, [Tool(name="search", call=tool)], policy=policy, max_steps=9)

    assert counts(result) == ("step_limit", 9, 5, 4)
    assert (model.calls, len(tool.executions)) == (5, 4)
    assert (result.report.status, result.report.rule, result.aborted) == ("aborted", None, None)


def test_there_are_limits_where_none_is_named(play: Play):
    model, tool = Endless(), Recorded()
    result = play(model, [Tool(name="search", call=tool)], policy=NO_RULES)

    assert counts(result) == ("step_limit", 60, 30, 30)
    assert (model.calls, len(tool.executions)) == (30, 30)


@pytest.mark.parametrize(
    ("limits", "ending"),
    [
        ({"max_tool_calls": 2}, ("tool_limit", 5, 3, 2)),
        ({"max_steps": 5}, ("step_limit", 5, 3, 2)),
        ({"max_steps": 4}, ("step_limit", 4, 2, 2)),
        ({"max_steps": 5, "max_tool_calls": 2}, ("step_limit", 5, 3, 2)),
        ({"max_tokens": 30}, ("token_limit", 5, 3, 2)),
        ({"max_tokens": 29}, ("token_limit", 3, 2, 1)),
        ({"max_tokens": 44, "max_steps": 5}, ("token_limit", 5, 3, 2)),
    ],
    ids=str,
)
def test_of_n_the_nth_is_allowed_and_the_next_is_not_begun(
    play: Play, limits: dict[str, int], ending: tuple[str, int, int, int]
):
    model, tool = Endless(), Recorded()
    result = play(model, [Tool(name="search", call=tool)], policy=NO_RULES, **limits)

    assert counts(result) == ending
    assert (model.calls, len(tool.executions)) == ending[2:]
    assert result.report.status == "aborted"


def test_tokens_of_both_kinds_count(play: Play):
    model, tool = Endless(tokens=(7, 3)), Recorded()
    result = play(model, [Tool(name="search", call=tool)], policy=NO_RULES, max_tokens=20)

    assert counts(result) == ("token_limit", 5, 3, 2)
    assert (result.input_tokens, result.output_tokens) == (21, 9)


@pytest.mark.parametrize("tokens", [(-10, 5), (10, -5)], ids=str)
def test_tokens_below_zero_win_no_time(play: Play, tokens: tuple[int, int]):
    result = play(Endless(tokens=tokens), max_tokens=1)

    assert counts(result) == ("provider_error", 1, 1, 0)
    assert isinstance(result.error, ValueError)


def test_a_finished_run_is_not_failed_for_what_it_took(play: Play):
    result = play(Script(DONE), max_tokens=1, max_steps=1)

    assert counts(result) == ("complete", 1, 1, 0)


# ------------------------------------------------------------------------------------ no extra lap


def test_the_stop_is_seen_right_after_the_answer(play: Play):
    model, tool = Script(asks(call(q="x")), DONE), Recorded("nothing")
    result = play(model, [Tool(name="search", call=tool)], max_steps=8)

    assert counts(result) == ("complete", 3, 2, 1)
    assert model.calls == 2
    assert result.output == "It rains."
    assert tool.executions == [{"q": "x"}]
    assert roles(result) == "uata"


def test_a_turn_without_calls_ends_it_whether_it_gives_a_reason_or_not(play: Play):
    model = Script(ModelTurn(text="It rains."))
    result = play(model, max_steps=8)

    assert (counts(result), model.calls) == (("complete", 1, 1, 0), 1)


def test_more_than_five_rounds_of_tools_can_complete(play: Play):
    rounds = [asks(call(page=number)) for number in range(12)]
    model, tool = Script(*rounds, DONE), Recorded()
    result = play(model, [Tool(name="search", call=tool)])

    assert counts(result) == ("complete", 25, 13, 12)
    assert len(tool.executions) == 12
    assert roles(result) == "u" + "at" * 12 + "a"


def test_the_model_is_shown_all_that_was_said_before(play: Play):
    model = Script(asks(call(call_id="c1", q="x")), DONE)
    result = play(model, [Tool(name="search", call=Recorded({"hits": 0}))], max_output_tokens=7)

    first, second = model.requests
    assert first.messages == (Message(role="user", text=HELLO),)
    assert second.messages == (
        *first.messages,
        Message(role="assistant", calls=(call(call_id="c1", q="x"),)),
        Message(role="tool", call_id="c1", text='{"hits":0}'),
    )
    assert result.history == (*second.messages, Message(role="assistant", text="It rains."))
    assert [each.step for each in model.requests] == [1, 3]
    assert [[tool.name for tool in each.tools] for each in model.requests] == [["search"]] * 2
    assert {each.max_output_tokens for each in model.requests} == {7}


def test_a_conversation_goes_on_from_a_history(play: Play):
    before = play(Script(DONE))
    model = Script(DONE)
    play(model, prompt=[*before.history, Message(role="user", text="And tomorrow?")])

    assert [each.text for each in model.requests[0].messages] == [
        HELLO,
        "It rains.",
        "And tomorrow?",
    ]


# ------------------------------------------------------------------------- every attempt is counted


def test_a_model_call_that_raises_consumes_a_step(play: Play):
    error = ConnectionError("no route")
    model, tool = Script(asks(call(q="x")), error), Recorded()
    result = play(model, [Tool(name="search", call=tool)], temporary=(ConnectionError,))

    assert counts(result) == ("provider_error", 3, 2, 1)
    assert (model.calls, result.error, result.report.status) == (2, error, "provider_error")
    assert result.trace == ("llm:", "tool:search", "llm:")
    assert roles(result) == "uat"


def test_its_guard_is_told_what_the_model_raised(play: Play):
    policy = Policy.none().with_limits(max_consecutive_errors=1)
    model = Script(asks(call(n=1)), ConnectionError("no route"))
    result = play(model, [Tool(name="search", call=Recorded(ValueError()))], policy=policy)

    assert counts(result) == ("provider_error", 3, 2, 1)
    assert [(each.rule, each.count) for each in result.report.violations] == [
        ("consecutive_errors", 2)
    ]


def test_what_is_no_turn_is_the_providers_error(play: Play):
    def ask(_: object) -> str:
        return "It rains."

    result = play(ask)

    assert counts(result) == ("provider_error", 1, 1, 0)
    assert isinstance(result.error, TypeError)
    assert "expected a ModelTurn" in str(result.error)


def test_a_temporary_error_is_tried_again_once_and_each_try_consumes_allowance(play: Play):
    tool = Recorded(TimeoutError("busy"), "found")
    model = Script(asks(call(call_id="c1", q="x")), DONE)
    result = play(model, [Tool(name="search", call=tool)], temporary=(TimeoutError,))

    assert counts(result) == ("complete", 4, 2, 2)
    assert tool.executions == [{"q": "x"}] * 2
    assert answers(result) == {"c1": "found"}
    assert roles(result) == "uata"


def test_it_is_not_tried_a_third_time(play: Play):
    tool = Recorded(TimeoutError("busy"), TimeoutError("still busy"), "found")
    model = Script(asks(call(call_id="c1", q="x")), DONE)
    result = play(model, [Tool(name="search", call=tool)], temporary=(OSError, TimeoutError))

    assert counts(result) == ("complete", 4, 2, 2)
    assert answers(result) == {"c1": "TimeoutError: still busy"}
    assert roles(result) == "uafa"


def test_each_call_has_a_second_try_of_its_own(play: Play):
    tool = Recorded(TimeoutError(), TimeoutError(), "one", "two")
    model = Script(asks(call(call_id="a", n=1), call(call_id="b", n=2)), DONE)
    result = play(model, [Tool(name="search", call=tool)], temporary=(TimeoutError,))

    assert counts(result) == ("complete", 6, 2, 4)
    assert tool.executions == [{"n": 1}, {"n": 2}, {"n": 1}, {"n": 2}], "behind the others"
    assert answers(result) == {"a": "one", "b": "two"}


def test_other_errors_are_told_to_the_model_at_once(play: Play):
    tool = Recorded(KeyError("Paris"))
    model = Script(asks(call(call_id="c1", q="x")), DONE)
    result = play(model, [Tool(name="search", call=tool)], temporary=(TimeoutError,))

    assert counts(result) == ("complete", 3, 2, 1)
    assert answers(result) == {"c1": "KeyError: 'Paris'"}


def test_nothing_is_temporary_unless_declared(play: Play):
    tool = Recorded(TimeoutError("busy"))
    result = play(Script(asks(call(q="x")), DONE), [Tool(name="search", call=tool)])

    assert counts(result) == ("complete", 3, 2, 1)


def test_a_second_try_stays_within_the_allowance(play: Play):
    tool = Recorded(TimeoutError("busy"), "found")
    model = Script(asks(call(call_id="c1", q="x")))
    result = play(
        model, [Tool(name="search", call=tool)], temporary=(TimeoutError,), max_tool_calls=1
    )

    assert counts(result) == ("tool_limit", 2, 1, 1)
    assert len(tool.executions) == 1
    assert answers(result) == {"c1": "TimeoutError: busy"}, "what came out of it last"


def test_calls_of_one_turn_stop_at_the_allowance(play: Play):
    tool = Recorded()
    model = Script(asks(*(call(call_id=f"c{n}", n=n) for n in range(3))))
    result = play(model, [Tool(name="search", call=tool)], max_tool_calls=2)

    assert counts(result) == ("tool_limit", 3, 1, 2)
    assert len(tool.executions) == 2
    assert answers(result) == {
        "c0": "page 1",
        "c1": "page 2",
        "c2": "not called: the run was stopped before",
    }
    assert roles(result) == "uattf"


# ------------------------------------------------------------------------------------- the deadline


def test_nothing_is_begun_at_the_deadline(play: Play):
    times = iter((100.0, 110.0))
    model = Script(DONE)
    result = play(model, deadline_s=10, clock=lambda: next(times, 110.0))

    assert counts(result) == ("deadline", 0, 0, 0)
    assert (model.calls, result.report.status) == (0, "aborted")


@pytest.mark.parametrize(("took_s", "ending"), [(9.5, "complete"), (10.0, "deadline")], ids=str)
def test_an_answer_that_comes_at_the_deadline_is_thrown_away(
    play: Play, took_s: float, ending: str
):
    clock = Clock()

    def late() -> ModelTurn:
        clock.advance(took_s)
        return DONE

    model = Script(late)
    result = play(model, deadline_s=10, clock=clock)

    assert counts(result) == (ending, 1, 1, 0)
    assert (result.output, result.last_turn) == (
        ("It rains.", DONE) if ending == "complete" else (None, None)
    )
    assert (result.input_tokens, result.output_tokens) == (10, 5), "spent all the same"
    assert roles(result) == ("ua" if ending == "complete" else "u")
    assert model.requests[0].remaining_s == 10


@pytest.mark.parametrize(("took_s", "late"), [(9.5, False), (10.0, True)], ids=str)
def test_a_result_that_comes_at_the_deadline_is_thrown_away(
    play: Play, took_s: float, *, late: bool
):
    clock = Clock()
    tool = Recorded("found", then=lambda: clock.advance(took_s))
    model = Script(asks(call(call_id="c1", q="x")), DONE)
    result = play(model, [Tool(name="search", call=tool)], deadline_s=10, clock=clock)

    assert counts(result) == (("deadline", 2, 1, 1) if late else ("complete", 3, 2, 1))
    thrown_away = "it came back after the deadline: what it returned is thrown away"
    assert answers(result) == {"c1": thrown_away if late else "found"}
    assert roles(result) == ("uaf" if late else "uata")
    if not late:
        assert [each.remaining_s for each in model.requests] == [10, 0.5]


def test_a_late_failure_is_told_and_nothing_is_begun_after_it(play: Play):
    clock = Clock()
    tool = Recorded(KeyError("Paris"), then=lambda: clock.advance(10))
    model = Script(asks(call(call_id="c1", q="x")))
    result = play(model, [Tool(name="search", call=tool)], deadline_s=10, clock=clock)

    assert counts(result) == ("deadline", 2, 1, 1)
    assert answers(result) == {"c1": "KeyError: 'Paris'"}


# ------------------------------------------------------------------------------ arguments and names


SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}


def test_wrong_arguments_are_answered_with_an_error_and_counted(play: Play):
    tool = Recorded("found")
    model = Script(asks(call(call_id="c1", q=5)), asks(call(call_id="c2", q="x")), DONE)
    result = play(model, [Tool(name="search", call=tool, parameters=SCHEMA)])

    assert counts(result) == ("complete", 5, 3, 2)
    assert tool.executions == [{"q": "x"}]
    assert answers(result) == {
        "c1": "InvalidArgumentsError: arguments.q: expected string, got 5",
        "c2": "found",
    }
    assert roles(result) == "uafata"


def test_an_unknown_tool_is_answered_with_an_error_and_counted(play: Play):
    tool = Recorded()
    model = Script(asks(call("serach", "c1", q="x")), DONE)
    result = play(model, [Tool(name="search", call=tool)], max_tool_calls=1)

    assert counts(result) == ("complete", 3, 2, 1)
    assert (tool.executions, result.last_tool) == ([], "serach")
    assert answers(result) == {
        "c1": "UnknownToolError: there is no tool 'serach'; there are: search"
    }


def test_unknown_tools_end_it_in_the_end(play: Play):
    model = Endless("serach")
    result = play(model, [Tool(name="search", call=Recorded())])

    assert (result.ending, result.report.rule) == ("aborted", "unknown_tool")
    assert counts(result)[1:] == (10, 5, 5)


# --------------------------------------------------------------------------------- matching by id


def test_ids_that_are_there_twice_in_one_turn_are_an_invalid_action(play: Play):
    tool = Recorded()
    model = Script(asks(call(call_id="c1", n=1), call(call_id="c1", n=2)))
    result = play(model, [Tool(name="search", call=tool)])

    assert counts(result) == ("invalid_action", 1, 1, 0)
    assert (tool.executions, roles(result), result.report.status) == ([], "u", "aborted")


def test_the_same_id_in_a_later_turn_is_a_new_call(play: Play):
    tool = Recorded()
    model = Script(asks(call(call_id="c1", n=1)), asks(call(call_id="c1", n=2)), DONE)
    result = play(model, [Tool(name="search", call=tool)])

    assert counts(result) == ("complete", 5, 3, 2)
    assert [each.text for each in result.history if each.role == "tool"] == ["page 1", "page 2"]


def test_calls_without_an_id_get_one_that_no_other_has(play: Play):
    tool = Recorded()
    model = Script(asks(call(n=1), call(call_id="call_1", n=2), call(n=3)), DONE)
    result = play(model, [Tool(name="search", call=tool)])

    assert counts(result) == ("complete", 5, 2, 3)
    assert answers(result) == {"call_2": "page 1", "call_1": "page 2", "call_3": "page 3"}
    assert [each["n"] for each in tool.executions] == [1, 2, 3]


@pytest.mark.parametrize("reason", ["tool_calls", "malformed_function_call"])
def test_a_turn_that_neither_ends_nor_asks_is_an_invalid_action(play: Play, reason: str):
    result = play(Script(ModelTurn(text="I will search", finish_reason=reason)))

    assert counts(result) == ("invalid_action", 1, 1, 0)
    assert (result.output, roles(result)) == (None, "u")


# ------------------------------------------------------------------------------------ fatal errors


class DatabaseGoneError(Exception):
    """What nobody can go on after."""


def test_what_a_tool_came_to_is_in_the_history_before_a_fatal_stop(play: Play):
    fatal = DatabaseGoneError("gone")
    tool = Recorded("found", fatal)
    model = Script(asks(*(call(call_id=f"c{n}", n=n) for n in range(2))))
    result = play(model, [Tool(name="search", call=tool)], fatal=(DatabaseGoneError,))

    assert counts(result) == ("tool_error", 3, 1, 2)
    assert (result.error, result.report.status) == (fatal, "tool_error")
    assert answers(result) == {"c0": "found", "c1": "DatabaseGoneError: gone"}
    assert roles(result) == "uatf"


def test_an_error_that_is_fatal_is_not_tried_again_although_it_is_temporary(play: Play):
    tool = Recorded(DatabaseGoneError("gone"))
    both = {"fatal": (DatabaseGoneError,), "temporary": (Exception,)}
    result = play(Script(asks(call(n=1))), [Tool(name="search", call=tool)], **both)

    assert counts(result) == ("tool_error", 2, 1, 1)


def test_what_a_tool_came_to_is_in_the_history_before_a_rule_stops_it(play: Play):
    tool = Recorded(*["nothing"] * 5)
    model = Script(*(asks(call(call_id=f"c{n}", q="x")) for n in range(5)))
    result = play(model, [Tool(name="search", call=tool)])

    assert counts(result) == ("repeated_call", 10, 5, 5)
    assert answers(result) == {f"c{n}": "nothing" for n in range(5)}
    assert roles(result) == "uatatatatat"


# ------------------------------------------------------------------------------ cut and filtered


def test_a_cut_turn_ends_it_and_its_calls_are_not_made(play: Play):
    tool = Recorded()
    cut = ModelTurn(text="It ra", calls=(call(q="x"),), finish_reason="max_tokens")
    result = play(Script(cut), [Tool(name="search", call=tool)])

    assert counts(result) == ("truncated", 1, 1, 0)
    assert (result.output, result.last_turn, result.report.status) == (None, cut, "truncated")
    assert (tool.executions, roles(result)) == ([], "u")


def test_a_cut_turn_is_tried_again_once_with_a_higher_limit_and_consumes_a_step(play: Play):
    model = Script(CUT, asks(call(q="x")), CUT, DONE)
    tools = [Tool(name="search", call=Recorded())]
    result = play(model, tools, max_output_tokens=100, retry_output_tokens=400)

    assert counts(result) == ("complete", 5, 4, 1)
    limits = [each.max_output_tokens for each in model.requests]
    assert limits == [100, 400, 100, 400]
    assert roles(result) == "uata", "what was cut is not shown again"
    assert model.requests[0].messages == model.requests[1].messages


def test_a_turn_that_is_cut_twice_ends_it(play: Play):
    model = Script(CUT, CUT)
    result = play(model, retry_output_tokens=400)

    assert counts(result) == ("truncated", 2, 2, 0)
    assert [each.max_output_tokens for each in model.requests] == [None, 400]


def test_there_is_no_second_try_beyond_the_limit(play: Play):
    model = Script(CUT)
    result = play(model, retry_output_tokens=400, max_steps=1)

    assert (counts(result), model.calls) == (("step_limit", 1, 1, 0), 1)


def test_a_filtered_turn_is_never_tried_again(play: Play):
    model = Script(FILTERED)
    result = play(model, retry_output_tokens=400)

    assert counts(result) == ("filtered", 1, 1, 0)
    assert (model.calls, result.report.status, result.output) == (1, "filtered", None)


def test_a_turn_of_nothing_is_empty(play: Play):
    result = play(Script(ModelTurn(text=" \n", finish_reason="stop")))

    assert counts(result) == ("empty", 1, 1, 0)
    assert (result.report.status, result.output, roles(result)) == ("empty", None, "u")


@pytest.mark.parametrize("retry", [0, True, 100, 99], ids=repr)
def test_the_higher_limit_is_higher(play: Play, retry: int):
    with pytest.raises(PolicyError, match="retry_output_tokens: expected"):
        play(Script(), max_output_tokens=100, retry_output_tokens=retry)


# ------------------------------------------------------------------------------ how it is finished


def test_the_finish_tool_ends_it_with_what_it_returns(play: Play):
    tool, submit = Recorded(), Recorded({"answer": 42})
    model = Script(asks(call(q="x")), asks(call("submit", "s", answer=42)))
    tools = [Tool(name="search", call=tool), Tool(name="submit", call=submit, finish=True)]
    result = play(model, tools, max_steps=8)

    assert counts(result) == ("complete", 4, 2, 2)
    assert (result.output, result.report.status) == ({"answer": 42}, "complete")
    assert (model.calls, submit.executions) == (2, [{"answer": 42}])
    assert roles(result) == "uatat"


def test_the_other_calls_of_that_turn_are_made_too(play: Play):
    tool, submit = Recorded(), Recorded("done")
    model = Script(asks(call("submit", "s"), call(call_id="c1", q="x")))
    tools = [Tool(name="search", call=tool), Tool(name="submit", call=submit, finish=True)]
    result = play(model, tools)

    assert counts(result) == ("complete", 3, 1, 2)
    assert (result.output, answers(result)) == ("done", {"s": "done", "c1": "page 1"})


def test_a_finish_tool_that_fails_ends_nothing(play: Play):
    submit = Recorded(ValueError("no source given"), "done")
    model = Script(*(asks(call("submit", f"s{n}", n=n)) for n in range(2)))
    result = play(model, [Tool(name="submit", call=submit, finish=True)])

    assert counts(result) == ("complete", 4, 2, 2)
    assert answers(result) == {"s0": "ValueError: no source given", "s1": "done"}


def test_a_finish_tool_that_returns_nothing_ends_it_too(play: Play):
    model = Script(asks(call("submit")))
    result = play(model, [Tool(name="submit", call=lambda: None, finish=True)])

    assert (counts(result), result.output) == (("complete", 2, 1, 1), None)


def refuse(_: object) -> object:
    raise ValueError("too short")


def is_none(given: object) -> bool:
    return given is None


@pytest.mark.parametrize("turn", [DONE, asks(call("submit"))], ids=["text", "finish tool"])
@pytest.mark.parametrize(
    ("check", "ending"),
    [(refuse, "invalid_result"), (is_none, "invalid_result"), (id, "complete")],
    ids=["raises", "answers False", "answers something"],
)
def test_the_result_is_looked_at(play: Play, turn: ModelTurn, check: object, ending: str):
    tools = [Tool(name="submit", call=lambda: "It rains.", finish=True)]
    result = play(Script(turn), tools, check_result=check)

    assert result.ending == ending
    assert result.output == ("It rains." if ending == "complete" else None)
    assert (result.report.status, result.model_calls) == ("complete", 1)
    assert (str(result.error) == "too short") is (check is refuse)


def test_what_looks_at_the_result_is_given_it(play: Play):
    given: list[object] = []
    play(Script(DONE), check_result=given.append)

    assert given == ["It rains."]


# ---------------------------------------------------------------------------- rules and other stops


@pytest.mark.parametrize(
    ("policy", "ending", "rule", "made"),
    [
        (None, "repeated_call", "repeated_result", (5, 5)),
        (
            NO_RULES.with_limits(max_repeated_calls=4),
            "repeated_call",
            "repeated_call_limit",
            (5, 4),
        ),
        (NO_RULES.with_limits(max_same_tool_calls=4), "repeated_call", "same_tool", (5, 4)),
        (NO_RULES.with_limits(max_tool_calls=4), "aborted", "tool_call_budget", (5, 4)),
        (NO_RULES.with_limits(max_llm_calls=4), "aborted", "llm_call_budget", (4, 4)),
        (Policy.none().with_limits(max_input_tokens=45), "aborted", "token_budget", (5, 4)),
    ],
    ids=["default", "equal calls", "one tool", "tool calls", "model calls", "tokens"],
)
def test_rules_on_repetition_and_others_have_endings_of_their_own(
    play: Play, policy: Policy | None, ending: str, rule: str, made: tuple[int, int]
):
    tool = Recorded(*["nothing"] * 9)
    model = Script(*[asks(call(q="x"))] * 9)
    result = play(model, [Tool(name="search", call=tool)], policy=policy)

    assert (result.ending, result.report.rule, result.report.status) == (ending, rule, "aborted")
    assert (result.model_calls, result.tool_calls) == made
    assert (model.calls, len(tool.executions)) == made, "what is refused is not made"
    assert isinstance(result.aborted, RunAborted)
    assert result.aborted.report == result.report
    assert result.error is None


def test_a_rule_that_a_turn_breaks_keeps_its_calls_from_being_made(play: Play):
    tool = Recorded(*["nothing"] * 3)
    again = ModelTurn(text="Let me see.", calls=(call(q="x"),), finish_reason="tool_calls")
    policy = Policy(rules={"repeated_output": {"abort": 3}})
    result = play(Script(*[again] * 4), [Tool(name="search", call=tool)], policy=policy)

    assert counts(result) == ("repeated_call", 7, 4, 3)
    assert (len(tool.executions), result.report.rule) == (3, "repeated_output")
    assert roles(result) == "uatatat"


@pytest.mark.parametrize("where", ["model", "tool", "check"])
def test_a_stop_of_a_guard_around_it_ends_it_and_is_handed_over(play: Play, where: str):
    stop = RunAborted(play(Script(DONE)).report, "outer")
    wrapped = RuntimeError("the framework wraps it")
    wrapped.__cause__ = stop
    model = Script(asks(call(call_id="c1", q="x")), wrapped if where == "model" else DONE)
    tool = Recorded(wrapped if where == "tool" else "found")

    def check(_: object) -> None:
        raise wrapped

    options = {"temporary": (Exception,), "check_result": check if where == "check" else None}
    result = play(model, [Tool(name="search", call=tool)], **options)

    assert result.ending == "aborted"
    assert result.aborted is stop
    assert (result.error, result.report.status, result.output) == (wrapped, "aborted", None)
    steps = {"tool": (2, 1, 1), "model": (3, 2, 1), "check": (3, 2, 1)}
    assert counts(result)[1:] == steps[where]


def fail(**_: object) -> None:
    raise KeyError("Paris")


def fail_with_no_past(**_: object) -> None:
    try:
        fail()
    except KeyError as error:
        error.__context__ = None
        raise


@pytest.mark.parametrize("tool", [fail, fail_with_no_past], ids=["chained", "not chained"])
def test_a_stop_that_the_caller_is_handling_is_not_one_of_this_run(
    play: Play, tool: Callable[..., object]
):
    stop = RunAborted(play(Script(DONE)).report, "before")
    model = Script(asks(call(call_id="c1", n=1)), DONE)
    try:
        raise stop
    except RunAborted:
        result = play(model, [Tool(name="search", call=tool)])

    assert counts(result) == ("complete", 3, 2, 1)
    assert answers(result) == {"c1": "KeyError: 'Paris'"}


# ------------------------------------------------------------------------------------- the result


def test_the_result_is_frozen_and_its_trace_has_no_content(play: Play):
    model = Script(asks(call(q="a secret")), DONE)
    result = play(model, [Tool(name="search", call=Recorded("a secret"))], model_name="m")

    with pytest.raises(AttributeError):
        result.ending = "complete"  # type: ignore[misc]  # that is what is tried
    assert result.trace == ("llm:m", "tool:search", "llm:m")
    assert (result.last_tool, result.input_tokens, result.output_tokens) == ("search", 20, 10)
    assert result.last_turn == DONE


def test_the_same_counts_are_the_reports(play: Play):
    tool = Recorded(TimeoutError(), *["found"] * 9)
    model = Script(asks(call(n=1), call("other", n=2)), asks(call(n=3)), DONE)
    result = play(model, [Tool(name="search", call=tool)], temporary=(TimeoutError,))

    report = result.report
    assert counts(result) == ("complete", 7, 3, 4)
    assert (report.steps, report.model_calls, report.tool_calls) == (7, 3, 4)
    assert report.open_call_ids == ()


def test_a_tool_that_changes_its_arguments_changes_no_history(play: Play):
    def spoil(items: list[int]) -> str:
        items.clear()
        return "done"

    asked = ToolCall(name="search", arguments={"items": [1, 2]}, call_id="c1")
    result = play(Script(asks(asked), DONE), [Tool(name="search", call=spoil)])

    assert result.history[1].calls == (asked,)
    assert asked.arguments == {"items": [1, 2]}


@pytest.mark.parametrize("ending", STATUS_OF)
def test_every_ending_has_a_status(ending: str):
    assert STATUS_OF[ending] in {  # type: ignore[index]  # all of them are endings
        "complete",
        "truncated",
        "filtered",
        "empty",
        "provider_error",
        "tool_error",
        "aborted",
    }


STOP = RunAborted(LoopGuard().end())
ENDS = {
    "stop": Ended("aborted", aborted=STOP),
    "fatal": Ended("tool_error"),
    "late": Ended("deadline"),
    "rule": Ended("aborted"),
    "loop": Ended("repeated_call"),
}
"""What calls that come back together may end a run with, in the order of precedence."""


@pytest.mark.parametrize("pair", [*combinations(ENDS, 2)], ids=" before ".join)
def test_of_two_endings_at_once_the_first_in_order_is_said(pair: tuple[str, str]):
    first, second = (ENDS[name] for name in pair)

    assert first_of([first, second]) is first
    assert first_of([second, first]) is first


# ------------------------------------------------------------------------------- what is not taken


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temporary": TimeoutError}, "temporary: expected a tuple of exception classes"),
        ({"temporary": (KeyboardInterrupt,)}, "temporary: expected a tuple of exception classes"),
        ({"fatal": ("TimeoutError",)}, "fatal: expected a tuple of exception classes"),
        ({"check_result": "length"}, "check_result: expected a callable or None"),
        ({"policy": {"max_steps": 5}}, "Policy"),
        ({"prompt": []}, "prompt: expected a text, or a sequence of messages"),
        ({"prompt": ["hello"]}, "prompt: expected a text, or a sequence of messages"),
        ({"prompt": 5}, "prompt: expected a text, or a sequence of messages"),
        ({"max_stepps": 5}, "max_stepps: there is no such option here"),
        ({"max_output_tokens": 0}, "max_output_tokens: expected a whole number of at least 1"),
        ({"clock": None}, "clock: expected a callable that answers with seconds, got None"),
        ({"agent": None}, "agent: expected a text, got None"),
        ({"model_name": None}, "model_name: expected a text, got None"),
        ({"provider_name": 5}, "provider_name: expected a text, got 5"),
        ({"tracer_provider": 5}, "tracer_provider: expected a TracerProvider or None, got 5"),
    ],
    ids=[
        "no tuple",
        "no exception",
        "no class",
        "no callable",
        "no policy",
        "no messages",
        "texts",
        "a number",
        "a slip",
        "no length",
        "no clock",
        "no agent",
        "no model",
        "no name",
        "no provider",
    ],
)
def test_a_mistake_says_what_was_expected(play: Play, options: dict[str, object], expected: str):
    with pytest.raises(PolicyError, match=expected):
        play(Script(), **options)


@pytest.mark.parametrize("run", [run_agent, run_agent_async], ids=["sync", "async"])
@pytest.mark.parametrize("tools", [None, 5, Tool(name="search", call=dict)], ids=repr)
def test_what_is_no_list_of_tools_is_a_mistake(run: Any, tools: object):
    with pytest.raises(PolicyError, match="tools: expected a list of tools, "):
        returned = run(Script(), HELLO, tools)
        asyncio.run(returned)


def test_two_tools_of_one_name_are_a_mistake(play: Play):
    tools = [Tool(name="search", call=Recorded()) for _ in range(2)]
    with pytest.raises(PolicyError, match=r"tools\[1\].name: expected a name that no other"):
        play(Script(), tools)


def test_what_is_no_tool_is_a_mistake():
    with pytest.raises(
        PolicyError, match=r"tools\[0\]: expected a Tool\(name=\.\.\., call=\.\.\.\)"
    ):
        run_agent(Script(), HELLO, [Recorded()])  # type: ignore[list-item]  # that is what is tried


def test_what_is_no_model_is_a_mistake():
    with pytest.raises(PolicyError, match="model: expected a callable that is given a TurnRequest"):
        run_agent(None, HELLO)  # type: ignore[arg-type]  # that is what is tried

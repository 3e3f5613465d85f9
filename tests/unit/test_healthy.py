"""What good runs do, and must be left alone for; and what must not hide a bad one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step

LONG = "a long answer that differs each time: "


def tool(name: str, arguments: object = "{}", *, result: object = "ok", **facts: Any) -> Step:
    return Step(kind="tool", name=name, arguments=arguments, result=result, **facts)


def turn(output: str = "done", **facts: Any) -> Step:
    return Step(kind="llm", name="m", output=output, finish_reasons=("stop",), **facts)


def agent(name: str, agent_id: str) -> Step:
    return Step(kind="agent", name=name, agent=name, agent_id=agent_id)


def play(guard: LoopGuard, steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Check and record steps, and return what was found: rule and action."""
    found: list[tuple[str, str]] = []
    for step in steps:
        for decision in (guard.check(step, commit=True), guard.record(step)):
            found += [(violation.rule, violation.action) for violation in decision.violations]
    return found


def handed_over(rounds: int, *, brings_news: bool, by: str = "transfer_to_worker") -> list[Step]:
    steps: list[Step] = []
    for number in range(rounds):
        news = f"{LONG * 6}{number if brings_news else 0}"
        steps += [
            tool(by, result="Successfully transferred", agent="boss"),
            tool("search", {"q": number if brings_news else 0}, result=news, agent="worker"),
            tool("transfer_back_to_boss", result="Successfully transferred", agent="worker"),
        ]
    return steps


class TestSideBySide:
    """Invocations of one agent that overlap in time."""

    def test_each_has_counters_of_its_own(self):
        guard = LoopGuard()
        for number in range(6):
            guard.check(agent("worker", str(number)))
        steps = [tool("read_brief", agent="worker", agent_id=str(n)) for n in range(6)]
        assert play(guard, steps) == []

    def test_one_that_goes_on_does_not_inherit_those_of_the_first(self):
        guard = LoopGuard()
        first, second = agent("worker", "1"), agent("worker", "2")
        guard.check(first)
        guard.check(second)
        play(guard, [tool("status", agent="worker", agent_id="1")] * 4)
        guard.record(first)
        assert play(guard, [tool("status", agent="worker", agent_id="2")] * 2) == []

    def test_one_after_the_other_share_them(self):
        guard, found = LoopGuard(), list[tuple[str, str]]()
        for number in range(5):
            whole = agent("worker", str(number))
            guard.check(whole)
            found += play(guard, [tool("status", agent="worker", agent_id=str(number))])
            guard.record(whole)
        assert ("repeated_result", "abort") in found


class TestHandOvers:
    """Agents that leave the work to each other by tools."""

    def test_work_in_between_is_progress(self):
        assert play(LoopGuard(), handed_over(8, brings_news=True)) == []

    @pytest.mark.parametrize(
        "name",
        [
            *("transfer_to_worker", "transfer_back_to_worker", "transfer_control"),
            *("hand_off", "handoff_to_worker", "hand_over_work", "handover"),
            *("delegate_to_worker", "delegate_work_to_coworker"),
        ],
    )
    def test_so_it_is_whatever_the_tool_is_called(self, name: str):
        assert play(LoopGuard(), handed_over(8, brings_news=True, by=name)) == []

    def test_any_other_tool_that_answers_the_same_is_a_loop(self):
        assert play(LoopGuard(), handed_over(8, brings_news=True, by="report_to_worker"))

    def test_without_any_it_is_a_loop(self):
        found = play(LoopGuard(), handed_over(6, brings_news=False))
        assert any(action == "abort" for _, action in found)


class TestFinished:
    """Turns that finish, and runs that go on all the same."""

    def test_an_agent_that_finishes_again_and_again_is_stopped_when_it_goes_on(self):
        guard = LoopGuard()
        play(guard, [tool("search", result=LONG)])
        found = play(guard, [turn("I will look now.")] * 5)
        assert ("repeated_output", "warn") in found
        assert ("repeated_output", "abort") not in found
        decision = guard.check(turn("I will look now."))
        assert (decision.allowed, decision.rule) == (False, "repeated_output")
        assert guard.report().violations[-1].phase == "pre"

    def test_what_is_due_is_said_of_the_next_step_and_agents_are_none(self):
        guard = LoopGuard()
        play(guard, [tool("search", result=LONG), *[turn("I will look now.")] * 5])
        assert guard.check(agent("worker", "1")).allowed
        (violation,) = guard.check(tool("search")).violations
        assert (violation.rule, violation.kind, violation.tool, violation.phase) == (
            *("repeated_output", "tool", "search", "pre"),
        )

    @pytest.mark.parametrize(("error", "action"), [(None, "warn"), ("boom", "abort")])
    def test_a_recorded_call_of_the_finish_tool_ends_the_run_if_it_worked(
        self, error: str | None, action: str
    ):
        tools = {"tools": {"submit": {"finish": True}}}
        guard = LoopGuard(Policy.from_mapping(tools, base=Policy.none()), max_steps=1)
        guard.record(tool("search"))
        (violation,) = guard.record(tool("submit", error=error)).violations
        assert (violation.rule, violation.action) == ("step_budget", action)

    def test_a_model_that_is_asked_about_one_thing_after_another_is_left_alone(self):
        assert {action for _, action in play(LoopGuard(), [turn("no spam")] * 20)} == {"warn"}

    def test_a_word_of_a_person_makes_it_a_fresh_start(self):
        guard = LoopGuard()
        play(guard, [tool("search", result=LONG), *[turn("You are welcome.")] * 5])
        guard.person_spoke()
        assert guard.check(turn("You are welcome.")).allowed

    @pytest.mark.parametrize(
        ("limits", "steps"),
        [
            pytest.param({"max_turns_without_tool": 3}, [turn()] * 4, id="turns without a tool"),
            pytest.param({"max_context_tokens": 9}, [turn(input_tokens=10)], id="context"),
            pytest.param({"max_total_tokens": 9}, [turn(input_tokens=10)], id="tokens"),
        ],
    )
    def test_a_limit_is_enforced_at_the_next_start(self, limits: dict[str, Any], steps: list[Step]):
        guard = LoopGuard(Policy.none(), **limits)
        assert [action for _, action in play(guard, steps)] == ["warn"]
        assert not guard.check(tool("search")).allowed

    def test_a_tool_that_ends_the_run_does_not_when_it_is_called_on_and_on(self):
        guard = LoopGuard(Policy(tools={"submit": {"finish": True}}))
        found = play(guard, [tool("submit", {"answer": 1}, result="rejected")] * 6)
        assert ("repeated_result", "abort") in found

    def test_a_sub_agent_s_last_turn_does_not_finish_a_run_with_a_call_under_way(self):
        guard = LoopGuard(max_duration_s=10, max_idle_s=5, clock=lambda: 0.0)
        play(guard, [tool("search", result=LONG, agent="boss", started_s=0.0, ended_s=0.5)])
        open_call = tool("ask_worker", agent="boss", call_id="1", started_s=0.5)
        guard.check(open_call)
        answer = turn("the answer", agent="worker", tool_calls=(), started_s=1.0, ended_s=2.0)
        guard.check(answer)
        guard.record(answer)
        assert guard.due_s() is not None
        assert not guard.tick(1000.0).allowed


class TestSpent:
    """Tokens and dollars of tool calls."""

    @pytest.mark.parametrize(
        ("limits", "facts"),
        [
            pytest.param({"max_cost_usd": 1.0}, {"cost_usd": 0.3}, id="cost"),
            pytest.param({"max_output_tokens": 100}, {"output_tokens": 30}, id="output"),
            pytest.param({"max_input_tokens": 100}, {"input_tokens": 30}, id="input"),
        ],
    )
    def test_they_count_whatever_else_is_new(self, limits: dict[str, Any], facts: dict[str, Any]):
        guard = LoopGuard(**limits)
        steps = [tool("search", {"q": n}, result=f"{LONG * 9}{n}", **facts) for n in range(5)]
        assert [action for _, action in play(guard, steps)] == ["abort"]

    @pytest.mark.parametrize(
        "facts",
        [
            {"output_tokens": 2**63},
            {"input_tokens": 10**30},
            {"cost_usd": 10**400},
            {"cost_usd": float("nan")},
            {"output_tokens": -5, "cost_usd": -1.0},
        ],
    )
    def test_what_cannot_be_is_not_counted(self, facts: dict[str, Any]):
        guard = LoopGuard(max_cost_usd=1.0, max_total_tokens=100)
        steps = [tool("search", {"q": 1}, result=LONG, **facts), turn(**facts)]
        assert play(guard, steps) == []
        assert (guard.stats().output_tokens, guard.stats().cost_usd) == (0, 0.0)


class TestDeclared:
    """Calls that may be repeated end rows of other calls, as any other call does."""

    @pytest.mark.parametrize(
        ("limits", "between"),
        [
            ({"max_consecutive_errors": 2}, {"error": "timeout"}),
            ({"max_repeated_calls": 2}, {}),
            ({"max_same_tool_calls": 2}, {}),
        ],
    )
    def test_they_are_other_calls(self, limits: dict[str, Any], between: dict[str, Any]):
        policy = Policy.from_mapping({"tools": {"wait": {"poll": True}}}, base=Policy.none())
        guard = LoopGuard(policy, **limits)
        steps = [tool("fetch", **between), tool("wait", result="waited")] * 5
        assert play(guard, steps) == []


def test_a_limit_of_an_agent_inside_itself_is_reported_once():
    policy = Policy(max_steps=1, agents={"x": {"limits": {"max_steps": 1}}})
    guard = LoopGuard(policy)
    play(guard, [tool("a", agent="x")])
    decision = guard.check(tool("b", agent="x"))
    assert [violation.rule for violation in decision.violations] == ["step_budget"]


def test_foreign_arguments_cannot_break_what_ignores_some_of_them():
    class Hostile:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None  # type: ignore[assignment]

        @property
        def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise RuntimeError

    guard = LoopGuard(Policy(tools={"a": {"ignore_arguments": ["at"]}}))
    assert guard.check(tool("a", Hostile())).allowed
    assert guard.record(tool("a", Hostile(), result=UNKNOWN)).allowed


def test_waste_is_that_of_the_agent_that_repeats():
    guard = LoopGuard()
    found: list[int] = []
    for number in range(5):
        steps = [
            Step(kind="llm", name="m", agent="a", input_tokens=10),
            tool("status", agent="a"),
            *[tool("read", {"n": (number, n)}, result=LONG * 9, agent="b") for n in range(3)],
        ]
        for step in steps:
            guard.check(step, commit=True)
            stops = [v for v in guard.record(step).violations if v.action == "abort"]
            found += [v.wasted_tokens for v in stops if v.rule == "repeated_result"]
    assert found == [40]


def test_a_sub_agent_that_has_ended_is_not_late():
    policy = Policy(max_idle_s=60, agents={"sub": {"limits": {"max_duration_s": 10}}})
    guard = LoopGuard(policy, clock=lambda: 0.0)
    guard.start(0.0)
    whole = Step(kind="agent", name="sub", agent="sub", agent_id="1", started_s=1.0, ended_s=4.0)
    guard.check(whole)
    guard.record(whole)
    assert guard.tick(20.0).allowed


def test_what_is_due_is_late_at_that_very_moment():
    for tenths in range(1, 200):
        start_s, limit_s = tenths * 0.1, tenths * 0.7
        guard = LoopGuard(max_duration_s=limit_s, clock=lambda: 0.0)
        guard.check(tool("a", started_s=start_s))
        due_s = guard.due_s()
        assert due_s is not None
        assert not guard.tick(due_s).allowed

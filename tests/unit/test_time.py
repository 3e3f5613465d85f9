"""Limits on time that are reached while nothing happens: `due_s` and `tick`."""

from __future__ import annotations

from typing import Any

import pytest

from otel_loopguard.decisions import Violation
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import SpanKey, Step

NONE = Policy.none()
FINISHED: dict[str, Any] = {"output": "Done.", "finish_reasons": ("stop",), "tool_calls": ()}


class Clock:
    """A clock that stands still unless it is told not to."""

    def __init__(self, now_s: float = 0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def tool(name: str = "search", **facts: Any) -> Step:
    return Step(kind="tool", name=name, arguments="x", **facts)


def turn(**facts: Any) -> Step:
    return Step(kind="llm", **facts)


def agent(name: str, **facts: Any) -> Step:
    return Step(kind="agent", name=name, agent=name, **facts)


def policy(**tables: Any) -> Policy:
    return Policy.from_mapping(tables, base=NONE)


def at_due(guard: LoopGuard) -> str | None:
    """Let nothing happen until a limit is due, and return which one it is."""
    due_s = guard.due_s()
    assert due_s is not None
    assert guard.tick(due_s - 0.001).allowed
    return guard.tick(due_s).rule


class TestDeadline:
    def test_it_is_due_when_the_time_is_up(self):
        clock = Clock(100)
        guard = LoopGuard(NONE, clock=clock, max_duration_s=60)
        assert guard.due_s() is None
        guard.check(tool())
        clock.now_s = 130
        guard.check(turn())

        assert guard.due_s() == 160
        assert at_due(guard) == "time_budget"

    def test_the_violation_names_the_step_that_hangs(self):
        told: list[Violation] = []
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60, on_violation=told.append)
        key = SpanKey(1, 2)
        guard.check(turn())
        guard.check(tool("slow", span=key, agent="x"))
        guard.check(tool("fast", call_id="f"))
        guard.record(tool("fast", call_id="f", result=1))
        (violation,) = guard.tick(75).violations

        assert told == [violation]
        assert (violation.tool, violation.span, violation.step) == ("slow", key, 2)
        assert (violation.agent, violation.phase) == ("x", "post")
        assert (violation.count, violation.threshold) == (75, 60)

    def test_with_none_open_it_names_the_last_one(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60)
        guard.check(tool("first"))
        guard.record(tool("first", result=1))
        guard.check(tool("last"))
        guard.record(tool("last", result=1))
        (violation,) = guard.tick(60).violations

        assert (violation.tool, violation.step) == ("last", 2)

    def test_what_it_finds_holds_and_is_told_once(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60)
        guard.check(tool())
        guard.tick(60)
        again = guard.tick(90)

        assert (again.rule, again.violations) == ("time_budget", ())
        assert guard.due_s() is None
        assert guard.check(turn()).rule == "time_budget"
        assert guard.report().rule == "time_budget"
        guard.end()
        assert guard.check(turn()).allowed

    def test_a_run_that_tripped_otherwise_is_never_due(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60, max_total_tokens=1)
        guard.record(turn(input_tokens=5))

        assert guard.due_s() is None
        assert guard.tick(99).rule == "token_budget"

    def test_a_run_that_has_finished_is_not_failed(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60, max_idle_s=5)
        guard.record(turn(**FINISHED))

        assert guard.due_s() is None
        decision = guard.tick(99)
        assert decision.allowed
        assert [(v.rule, v.action) for v in decision.violations] == [("time_budget", "warn")]
        assert guard.report().status == "complete"

    def test_it_is_due_again_when_the_run_goes_on(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60)
        guard.record(turn(**FINISHED))
        guard.check(tool())

        assert guard.due_s() == 60

    def test_a_run_without_a_step_has_nothing_that_could_be_late(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=60)
        guard.start()

        assert guard.due_s() is None
        assert guard.tick(99).allowed

    @pytest.mark.parametrize("option", ["exempt", "poll"])
    def test_a_tool_without_limits_of_its_own_does_not_stop_the_clock(self, option: str):
        guard = LoopGuard(
            policy(tools={"wait": {option: True}}), clock=Clock(), max_duration_s=60, max_idle_s=70
        )
        guard.check(tool("wait"))

        assert at_due(guard) == "time_budget"

    def test_times_of_the_steps_count_where_they_bring_them(self):
        guard = LoopGuard(NONE, clock=Clock(10**6), max_duration_s=60)
        guard.check(turn(started_s=5))

        assert guard.due_s() == 65


class TestIdle:
    def test_it_is_due_when_nothing_has_happened_for_so_long(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_idle_s=30)
        guard.check(turn())
        clock.now_s = 20
        guard.record(turn())
        assert guard.due_s() == 50
        clock.now_s = 40
        guard.check(tool())

        assert guard.due_s() == 70
        assert at_due(guard) == "idle_run"

    def test_what_any_agent_does_counts(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_idle_s=30)
        guard.check(tool(agent="lead"))
        for now_s in range(0, 100, 20):
            clock.now_s = now_s
            guard.check(tool(agent="worker"))

        assert guard.tick(100).allowed
        assert guard.tick(110).rule == "idle_run"

    def test_the_next_step_is_refused_as_well(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_idle_s=30)
        guard.check(tool())
        clock.now_s = 29
        assert guard.preview(tool()).allowed
        clock.now_s = 30

        assert guard.check(tool()).reason == "MAX_IDLE_EXCEEDED"

    def test_a_finished_run_is_not_idle(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_idle_s=30)
        guard.record(turn(**FINISHED))
        clock.now_s = 500

        assert guard.tick().violations == ()
        assert guard.check(turn()).allowed

    def test_the_first_of_two_limits_is_due(self):
        guard = LoopGuard(NONE, clock=Clock(), max_idle_s=30, max_duration_s=20)
        guard.check(tool())
        assert guard.due_s() == 20
        guard = LoopGuard(NONE, clock=Clock(), max_idle_s=30, max_duration_s=40)
        guard.check(tool())
        assert guard.due_s() == 30


class TestInvocations:
    X10 = policy(agents={"x": {"limits": {"max_duration_s": 10}}})

    def test_an_invocation_is_due_by_its_own_start(self):
        clock = Clock()
        guard = LoopGuard(self.X10, clock=clock)
        guard.check(turn())
        clock.now_s = 50
        guard.check(agent("x", agent_id="x1"))
        guard.check(turn(agent="x", agent_id="x1"))

        assert guard.due_s() == 60
        assert at_due(guard) == "time_budget"

    def test_it_is_seen_while_another_agent_acts(self):
        guard = LoopGuard(self.X10, clock=Clock())
        guard.check(agent("x", agent_id="x1"))
        guard.check(tool(agent="y", agent_id="y1"))
        (violation,) = guard.tick(10).violations

        assert (violation.rule, violation.agent) == ("time_budget", "x")

    def test_it_is_no_longer_due_once_it_has_ended(self):
        guard = LoopGuard(self.X10, clock=Clock())
        guard.check(agent("x", agent_id="x1"))
        guard.record(agent("x", agent_id="x1"))
        guard.check(tool())

        assert guard.due_s() is None
        assert guard.tick(99).allowed

    def test_of_several_the_first_is_due(self):
        clock = Clock()
        guard = LoopGuard(self.X10, clock=clock, max_duration_s=100)
        guard.check(agent("x", agent_id="x1"))
        clock.now_s = 5
        guard.check(agent("x", agent_id="x2"))

        assert guard.due_s() == 10
        guard.record(agent("x", agent_id="x1"))
        assert guard.due_s() == 15

    def test_silence_can_be_limited_for_an_agent_alone(self):
        clock = Clock()
        guard = LoopGuard(policy(agents={"x": {"limits": {"max_idle_s": 10}}}), clock=clock)
        guard.check(turn())
        assert guard.due_s() is None
        clock.now_s = 50
        guard.check(agent("x", agent_id="x1"))
        assert guard.due_s() == 60
        clock.now_s = 60

        assert guard.check(tool(agent="x", agent_id="x1")).rule == "idle_run"
        assert guard.tick().rule == "idle_run"

    def test_the_scope_can_be_each_invocation(self):
        clock = Clock()
        guard = LoopGuard(policy(scope="agent"), clock=clock, max_duration_s=10)
        guard.check(agent("x", agent_id="x1"))
        guard.record(agent("x", agent_id="x1"))
        clock.now_s = 50
        guard.check(agent("y", agent_id="y1"))
        guard.check(tool(agent="y", agent_id="y1"))

        assert at_due(guard) == "time_budget"


def test_a_conversation_has_one_time_for_all_its_runs():
    clock = Clock()
    guard = LoopGuard(policy(scope="conversation"), clock=clock, max_duration_s=60)
    guard.check(tool())
    clock.now_s = 40
    guard.record(tool(result=1))
    guard.end()
    clock.now_s = 1000
    guard.check(tool())

    assert guard.due_s() == 1020
    assert at_due(guard) == "time_budget"
    guard.end()
    assert guard.check(tool()).allowed

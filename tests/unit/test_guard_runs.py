"""What a guard makes of results, times and ends: `record`, `stats`, `report`, `end`."""

from __future__ import annotations

from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.engine.open_steps import NAMED, NAMELESS
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import SpanKey, Step, ToolCall

NONE = Policy.none()
EQUAL_RESULTS = Policy.from_mapping({"rules": {"repeated_result": True}}, base=NONE)
"""The policy with one of the default rules, at its default thresholds."""
FINISHED: dict[str, Any] = {"output": "Done.", "finish_reasons": ("stop",), "tool_calls": ()}


class Clock:
    """A clock that stands still unless it is told not to."""

    def __init__(self, now_s: float = 0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def tool(name: str = "search", arguments: object = "x", **facts: Any) -> Step:
    return Step(kind="tool", name=name, arguments=arguments, **facts)


def turn(**facts: Any) -> Step:
    return Step(kind="llm", **facts)


class TestRecord:
    def test_it_completes_the_step_that_was_checked(self):
        guard = LoopGuard(NONE)
        guard.check(tool())
        decision = guard.record(tool(result="y"))

        assert (decision.allowed, decision.step_count) == (True, 1)
        assert guard.stats().open_steps == 0

    def test_with_none_open_it_checks_and_counts_first(self):
        guard = LoopGuard(NONE, max_tool_calls=1)
        first, second = guard.record(tool(result=1)), guard.record(tool(result=2))

        assert (first.allowed, first.step_count) == (True, 1)
        assert (second.rule, second.step_count) == ("tool_call_budget", 2)
        (violation,) = second.violations
        assert (violation.phase, violation.step, violation.count) == ("post", 2, 2)

    def test_nothing_is_new_about_a_step_that_would_have_been_refused(self):
        guard = LoopGuard(EQUAL_RESULTS, max_calls_per_tool={"b": 1})
        steps = [tool("b", result=1), tool(result=1), tool(result=1), tool("b", result=2)]
        for step in steps:
            guard.record(step)
        decision = guard.record(tool(result=1))

        assert [v.rule for v in decision.violations] == ["repeated_result"]

    def test_both_halves_of_what_it_finds_are_told(self):
        told: list[str] = []
        guard = LoopGuard(
            EQUAL_RESULTS, max_tool_calls=2, on_violation=lambda v: told.append(v.rule)
        )
        decisions = [guard.record(tool(result=1)) for _ in range(3)]

        assert [v.rule for v in decisions[-1].violations] == told
        assert told == ["tool_call_budget", "repeated_result"]

    def test_a_step_without_a_time_is_taken_to_have_begun_when_something_last_happened(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_duration_s=10)
        guard.record(turn())
        clock.now_s = 12
        decision = guard.record(turn(**FINISHED))

        assert (decision.action, decision.allowed) == ("warn", True)
        assert guard.check(turn()).rule == "time_budget"

    def test_a_step_with_a_time_began_then(self):
        guard = LoopGuard(NONE, max_duration_s=10)
        guard.record(turn(started_s=100, ended_s=101))
        decision = guard.record(turn(started_s=110, ended_s=111))

        assert (decision.rule, decision.violations[0].count) == ("time_budget", 10)

    def test_the_run_begins_with_the_first_recorded_step(self):
        guard = LoopGuard(NONE)
        guard.record(turn(started_s=100, ended_s=103))
        assert guard.stats().duration_s == 3
        guard.reset()
        guard.record(turn(ended_s=103))
        assert guard.stats().duration_s == 0

    def test_arguments_known_at_check_are_not_read_again(self):
        reads: list[str] = []

        class Arguments:
            def __repr__(self) -> str:
                reads.append("read")
                return "Arguments"

        arguments = Arguments()
        guard = LoopGuard(NONE)
        guard.check(tool(arguments=arguments))
        guard.record(tool(arguments=arguments, result=1))

        assert guard.stats().steps == 1
        assert len(reads) == 1

    def test_arguments_first_known_in_a_record_count_there(self):
        guard = LoopGuard(NONE, max_repeated_calls=1)
        for name in "ab":
            guard.check(tool(arguments=UNKNOWN, call_id=name))
        first = guard.record(tool(call_id="a"))
        second = guard.record(tool(call_id="b"))

        assert first.allowed
        assert (second.rule, second.violations[0].phase) == ("repeated_call_limit", "post")
        assert second.violations[0].step == 2

    def test_the_violation_names_the_span_of_the_step(self):
        key = SpanKey(1, 2)
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=1)
        guard.check(tool(span=key, started_s=0))
        (checked,) = guard.record(tool(span=key, ended_s=5)).violations
        guard.reset()
        guard.check(tool(call_id="a", started_s=0))
        (recorded,) = guard.record(tool(call_id="a", span=key, ended_s=5)).violations

        guard.reset()
        guard.check(tool(call_id="a", span=key, started_s=0))
        (started,) = guard.record(tool(call_id="a", ended_s=5)).violations

        assert checked.span == recorded.span == started.span == key

    def test_figures_of_model_turns_add_up(self):
        guard = LoopGuard()
        for _ in range(2):
            guard.check(turn())
            guard.record(turn(input_tokens=10, output_tokens=3, cost_usd=0.5))
        guard.record(turn())
        stats, report = guard.stats(), guard.report()

        assert (stats.input_tokens, stats.output_tokens, stats.cost_usd) == (20, 6, 1.0)
        assert (report.input_tokens, report.output_tokens, report.cost_usd) == (20, 6, 1.0)
        assert (stats.model_calls, report.model_calls) == (3, 3)


class TestFinished:
    """A budget crossed at a model turn's end does not fail a run which that turn has ended."""

    def test_a_late_finish_is_a_warning_that_does_not_hold(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_duration_s=10)
        guard.check(turn())
        clock.now_s = 15
        decision = guard.record(turn(**FINISHED))

        assert (decision.allowed, decision.action) == (True, "warn")
        assert (decision.violations[0].action, decision.violations[0].count) == ("warn", 15)
        report = guard.report()
        assert (report.status, report.rule, report.trip) == ("complete", None, None)

    @pytest.mark.parametrize(
        "facts",
        [
            {},
            {**FINISHED, "output": UNKNOWN},
            {**FINISHED, "output": " \n"},
            {**FINISHED, "finish_reasons": ("length",)},
            {**FINISHED, "tool_calls": (ToolCall(name="search"),)},
            {**FINISHED, "error": "TimeoutError"},
        ],
    )
    def test_any_other_late_turn_stops_the_run(self, facts: dict[str, Any]):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_duration_s=10)
        guard.check(turn())
        clock.now_s = 15
        decision = guard.record(turn(**facts))

        assert (decision.allowed, decision.rule) == (False, "time_budget")
        assert guard.report().rule == "time_budget"

    def test_so_is_a_finish_that_nobody_asked_for(self):
        guard = LoopGuard(NONE, max_llm_calls=1)
        guard.record(turn())
        decision = guard.record(turn(**FINISHED))

        assert (decision.allowed, decision.action) == (True, "warn")
        assert [(v.rule, v.phase) for v in decision.violations] == [("llm_call_budget", "post")]
        assert guard.check(turn()).rule == "llm_call_budget"

    def test_it_is_enforced_at_the_next_start(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_duration_s=10)
        guard.check(turn())
        clock.now_s = 15
        guard.record(turn(**FINISHED))
        decision = guard.check(turn())

        assert (decision.rule, decision.violations[0].action) == ("time_budget", "abort")


class TestTime:
    def test_steps_may_bring_their_own(self):
        guard = LoopGuard(NONE, clock=Clock(10**6), max_duration_s=10)
        guard.check(turn(started_s=100))
        assert guard.record(turn(started_s=100, ended_s=104)).allowed
        assert guard.check(turn(started_s=109.9)).allowed
        assert not guard.check(turn(started_s=110)).allowed
        assert guard.stats().duration_s == pytest.approx(9.9)
        assert guard.end().duration_s == pytest.approx(9.9)

    def test_nothing_has_to_be_recorded_for_that(self):
        guard = LoopGuard(NONE, clock=Clock(10**6))
        guard.check(turn(started_s=100))
        guard.check(turn(started_s=103))

        assert guard.stats().duration_s == 3

    def test_a_step_that_only_started_has_happened_then(self):
        guard = LoopGuard(NONE)
        guard.check(turn(started_s=100))
        guard.record(turn(started_s=107))

        assert guard.report().duration_s == 7

    def test_spans_that_come_in_another_order_do_not_turn_it_back(self):
        guard = LoopGuard(NONE)
        guard.check(turn(started_s=0, call_id="a"))
        guard.check(turn(started_s=5, call_id="b"))
        guard.record(turn(call_id="b", ended_s=9))
        guard.record(turn(call_id="a", ended_s=8))
        guard.check(turn(started_s=6))

        assert guard.report().duration_s == 9

    def test_the_clock_goes_on_while_nothing_happens(self):
        clock = Clock(5)
        guard = LoopGuard(NONE, clock=clock)
        guard.check(turn())
        clock.now_s = 8
        assert (guard.stats().duration_s, guard.report().duration_s) == (3, 3)
        guard.record(turn())
        clock.now_s = 9
        assert guard.end().duration_s == 4

    def test_a_run_can_be_started_on_its_own_line(self):
        guard = LoopGuard(NONE, clock=Clock(10**6), max_duration_s=10)
        guard.start(at=50)
        assert guard.stats().duration_s == 0
        assert not guard.check(turn(started_s=60)).allowed
        assert guard.check(turn(started_s=59)).allowed

    def test_a_refused_step_takes_no_time(self):
        guard = LoopGuard(NONE, clock=Clock(), max_steps=1)
        guard.check(turn(started_s=0))
        guard.check(turn(started_s=9))

        assert guard.stats().duration_s == 0


class TestReport:
    def test_of_a_run_that_has_not_begun(self):
        report = LoopGuard(NONE).end()

        assert (report.status, report.rule, report.steps, report.trace) == ("running", None, 0, ())
        assert (report.duration_s, report.last_tool, report.violations) == (0, "", ())
        assert LoopGuard(NONE).stats().steps == 0

    def test_of_a_run_that_went_well(self):
        clock = Clock()
        guard = LoopGuard(clock=clock)
        guard.check(Step(kind="agent", name="planner"))
        guard.check(turn())
        guard.record(turn(finish_reasons=("tool_calls",), tool_calls=(ToolCall(name="search"),)))
        guard.check(tool())
        guard.record(tool(result="found"))
        guard.check(turn())
        clock.now_s = 3
        guard.record(turn(**FINISHED))
        guard.record(Step(kind="agent", name="planner"))
        report = guard.end()

        assert report.status == "complete"
        assert (report.steps, report.model_calls, report.tool_calls) == (3, 2, 1)
        assert (report.last_tool, report.duration_s, report.rule) == ("search", 3, None)
        assert report.trace == ("agent:planner", "llm:", "tool:search", "llm:")
        assert report.open_call_ids == ()

    def test_of_a_run_that_tripped(self):
        guard = LoopGuard(EQUAL_RESULTS, max_steps=20)
        for _ in range(7):
            guard.check(tool(), commit=True)
            guard.record(tool(result=1))
        report = guard.report()

        assert report.rule == "repeated_result"
        assert [(v.action, v.step) for v in report.violations] == [("warn", 3), ("abort", 5)]
        assert report.trip == report.violations[1]
        assert report.status == "running"
        assert guard.report("aborted").status == "aborted"
        assert guard.end("cancelled").status == "cancelled"

    @pytest.mark.parametrize(
        ("steps", "status"),
        [
            ([turn(**FINISHED)], "complete"),
            ([turn(finish_reasons=("length",))], "truncated"),
            ([turn(error="RateLimitError")], "provider_error"),
            ([turn(), tool(error="ValueError")], "tool_error"),
            ([turn(**FINISHED), tool(result=1)], "running"),
            ([turn(**FINISHED), Step(kind="custom")], "complete"),
            ([turn(**FINISHED), Step(kind="agent")], "complete"),
            ([tool(error="ValueError"), Step(kind="custom")], "tool_error"),
            ([turn(), tool(result="Error: no such file")], "tool_error"),
            ([turn(), tool(result={"error": "no such file"})], "tool_error"),
            ([turn(), tool(result={"errors": 0})], "running"),
        ],
    )
    def test_of_how_it_ended(self, steps: list[Step], status: str):
        guard = LoopGuard()
        for step in steps:
            guard.record(step)

        assert guard.report().status == status

    def test_a_step_that_has_begun_has_not_ended(self):
        guard = LoopGuard()
        for step in (turn(), tool()):
            guard.record(turn(**FINISHED))
            guard.check(step)
            assert guard.report().status == "running"

    def test_a_tool_called_before_the_last_turn_has_no_say(self):
        guard = LoopGuard()
        guard.check(tool(call_id="slow"))
        guard.record(turn(**FINISHED))
        guard.record(tool(call_id="slow", error="ValueError"))

        assert guard.report().status == "complete"

    def test_calls_that_never_came_back(self):
        guard = LoopGuard()
        for call_id in "abc":
            guard.check(tool(call_id=call_id))
        guard.record(tool(call_id="b", result=1))
        guard.check(tool())

        assert guard.report().open_call_ids == ("a", "c")
        assert guard.stats().open_steps == 3

    def test_a_fresh_run_knows_nothing_of_the_last_one(self):
        guard = LoopGuard(max_steps=4)
        for step in [tool()] * 5:
            guard.check(step)
        first = guard.end()
        second = guard.end()

        assert first.rule == "step_budget"
        assert (second.rule, second.steps, second.violations) == (None, 0, ())
        assert guard.check(tool()).allowed
        assert [v.step for _ in range(4) for v in guard.check(tool()).violations] == [4, 5]


class TestOpenSteps:
    def test_the_oldest_is_forgotten_when_too_many_are_open(self):
        guard = LoopGuard(NONE)
        for number in range(NAMED + 1):
            guard.check(tool(call_id=f"{number}"))
        assert (guard.stats().open_steps, guard.stats().evicted_steps) == (NAMED, 1)
        guard.record(tool(call_id="1"))
        assert guard.stats().steps == NAMED + 1
        guard.record(tool(call_id="0"))
        assert guard.stats().steps == NAMED + 2

    def test_fewer_are_kept_without_a_name(self):
        guard = LoopGuard(NONE)
        for number in range(NAMELESS + 2):
            guard.check(tool(arguments=number))

        assert (guard.stats().open_steps, guard.stats().evicted_steps) == (NAMELESS, 2)


class TestResultsOutOfSight:
    """Where no results are recorded, calls count as soon as they are made."""

    def test_repeated_calls_show_at_once(self):
        guard = LoopGuard()
        for _ in range(3):
            guard.check(tool())

        assert guard.stats().repeated_calls == 2

    def test_the_first_result_takes_that_back(self):
        guard = LoopGuard()
        for call_id in "abc":
            guard.check(tool(call_id=call_id))
        guard.record(tool(call_id="a", result=1))
        assert guard.stats().repeated_calls == 0
        guard.record(tool(call_id="b", result=1))
        assert guard.stats().repeated_calls == 1

"""What a guard decides, what its decisions say, and what they leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import LoopGuardError, Violation
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.steps import SpanKey, Step

NONE = Policy.none()
EQUAL_RESULTS = Policy.from_mapping({"rules": {"repeated_result": True}}, base=NONE)
"""The policy with one of the default rules, at its default thresholds."""
TURN = Step(kind="llm")


class Clock:
    """A clock that stands still unless it is told not to."""

    def __init__(self, now_s: float = 0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def tool(name: str = "search", arguments: object = None, **facts: Any) -> Step:
    return Step(kind="tool", name=name, arguments=arguments or {"q": "x"}, **facts)


class TestLimitsOfAgentLoopGuard:
    """The options and the five reasons of the agent-loop-guard package keep their meaning."""

    def test_five_steps_pass_and_the_sixth_is_refused(self):
        guard = LoopGuard(NONE, max_steps=5)
        decisions = [guard.check(tool(arguments={"page": page})) for page in range(6)]

        assert [d.allowed for d in decisions] == [True] * 5 + [False]
        assert [d.step_count for d in decisions] == [1, 2, 3, 4, 5, 5]
        assert decisions[-1].reason == "MAX_STEPS_EXCEEDED"
        assert decisions[0].reason is None

    def test_three_equal_calls_pass_and_the_fourth_is_refused(self):
        guard = LoopGuard(NONE, max_repeated_calls=3)
        decisions = [guard.check(tool()) for _ in range(4)]

        assert [d.allowed for d in decisions] == [True, True, True, False]
        assert decisions[-1].reason == "REPEATED_CALL_LIMIT_EXCEEDED"

    def test_names_alone_can_be_compared(self):
        guard = LoopGuard(NONE, max_repeated_calls=1, compare_arguments=False)

        assert guard.check(tool(arguments={"page": 1})).allowed
        assert not guard.check(tool(arguments={"page": 2})).allowed

    def test_five_calls_of_a_tool_pass_and_the_sixth_is_refused(self):
        guard = LoopGuard(NONE, max_same_tool_calls=5)
        decisions = [guard.check(tool(arguments={"page": page})) for page in range(6)]

        assert [d.allowed for d in decisions] == [True] * 5 + [False]
        assert decisions[-1].reason == "SAME_TOOL_LIMIT_EXCEEDED"

    def test_a_pattern_is_refused_when_it_fills_the_window(self):
        guard = LoopGuard(NONE, loop_pattern_window=6)
        decisions = [guard.check(tool(name)) for name in "ababab"]

        assert [d.allowed for d in decisions] == [True] * 5 + [False]
        assert decisions[-1].reason == "LOOP_PATTERN_DETECTED"

    def test_time_is_up_at_the_limit(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_duration_s=60)
        guard.check(tool())
        clock.now_s = 59.9
        assert guard.check(tool()).allowed
        clock.now_s = 60
        decision = guard.check(tool())

        assert not decision.allowed
        assert decision.reason == "MAX_DURATION_EXCEEDED"
        assert decision.refusal is not None
        assert (decision.refusal.count, decision.refusal.threshold) == (60, 60)

    def test_the_first_limit_in_their_order_names_the_reason(self):
        clock = Clock()
        limits: dict[str, Any] = {
            "loop_pattern_window": 2,
            "max_same_tool_calls": 1,
            "max_repeated_calls": 1,
            "max_duration_s": 5,
            "max_tool_calls": 1,
            "max_steps": 1,
        }
        reasons: list[str | None] = []
        while limits:
            clock.now_s = 0
            guard = LoopGuard(NONE, clock=clock, **limits)
            guard.check(tool())
            clock.now_s = 5
            reasons.append(guard.check(tool()).reason)
            limits.popitem()

        assert reasons == [
            "MAX_STEPS_EXCEEDED",
            "MAX_TOOL_CALLS_EXCEEDED",
            "MAX_DURATION_EXCEEDED",
            "REPEATED_CALL_LIMIT_EXCEEDED",
            "SAME_TOOL_LIMIT_EXCEEDED",
            "LOOP_PATTERN_DETECTED",
        ]

    @pytest.mark.parametrize("off", [0, None])
    def test_options_are_off_at_nothing(self, off: int | None):
        guard = LoopGuard(
            NONE,
            max_steps=off,
            max_llm_calls=off,
            max_tool_calls=off,
            max_calls_per_tool={"search": 0},
            max_duration_s=off,
            max_repeated_calls=off,
            max_same_tool_calls=off,
            loop_pattern_window=off,
        )

        assert all(guard.check(tool()).action == "allow" for _ in range(50))
        assert guard.policy == NONE

    def test_a_refused_step_is_not_counted_and_the_next_one_is_judged_afresh(self):
        guard = LoopGuard(NONE, max_repeated_calls=2)
        for _ in range(2):
            guard.check(tool())
        before = guard.stats()
        refused = [guard.check(tool()) for _ in range(5)]

        assert not any(d.allowed for d in refused)
        assert {d.step_count for d in refused} == {2}
        assert guard.stats().tool_calls == before.tool_calls == 2
        assert guard.check(tool("other")).allowed
        assert guard.check(tool()).allowed

    def test_it_starts_by_itself(self):
        clock = Clock(1000)
        guard = LoopGuard(NONE, clock=clock, max_duration_s=60)
        clock.now_s = 5000
        assert guard.check(tool()).allowed
        clock.now_s = 5060
        assert not guard.check(tool()).allowed

    def test_or_is_started(self):
        clock = Clock(1000)
        guard = LoopGuard(NONE, clock=clock, max_duration_s=60)
        guard.start()
        clock.now_s = 1060

        assert not guard.check(tool()).allowed

    def test_its_counts(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock)
        for step in (TURN, tool(), tool(), tool("other"), Step(kind="custom"), Step(kind="agent")):
            guard.check(step)
        clock.now_s = 12.5
        stats = guard.stats()

        assert (stats.steps, stats.tool_calls, stats.model_calls) == (5, 3, 1)
        assert (stats.distinct_tools, stats.repeated_calls) == (2, 1)
        assert stats.duration_s == 12.5

    def test_a_model_turn_between_calls_hides_no_repetition(self):
        guard = LoopGuard(NONE, max_repeated_calls=2, max_same_tool_calls=2)

        allowed = [guard.check(step).allowed for step in (tool(), TURN, tool(), TURN, tool())]

        assert allowed == [True, True, True, True, False]

    def test_what_raises_when_it_is_read_does_not_escape(self):
        class Hostile:
            def __getattribute__(self, name: str) -> object:
                raise RuntimeError(name)

        guard = LoopGuard(max_repeated_calls=1)

        assert guard.check(tool(arguments=Hostile())).allowed
        assert guard.check(tool(arguments={"deep": [Hostile()]})).allowed
        assert guard.record(tool(arguments=Hostile(), result=Hostile())).allowed


class TestConstruction:
    def test_the_default_policy_has_the_default_rules_and_no_limits(self):
        assert LoopGuard().policy == Policy()
        assert LoopGuard().policy.rule_ids == (
            "repeated_result",
            "repeated_call",
            "cyclic_calls",
            "revisited_results",
            "no_novelty",
            "unchanged_result",
            "stagnation",
            "repeated_error",
            "repeated_output",
            "truncated_turns",
            "unknown_tool",
            "extra_turn",
            "agent_handoff_cycle",
        )

    def test_limits_are_laid_over_the_policy(self):
        guard = LoopGuard(Policy(max_steps=3, max_tool_calls=9), max_steps=5)

        assert guard.policy == Policy(max_steps=5, max_tool_calls=9)

    def test_a_step_has_one_of_four_kinds(self):
        odd: Any = Step(kind="model")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        guard = LoopGuard()
        for ask in (guard.preview, guard.check, guard.record):
            with pytest.raises(ValueError, match=r"^Step\.kind: expected one of llm, tool, agent"):
                ask(odd)

    def test_a_callback_can_be_called_and_a_policy_is_one(self):
        unusable: Any = "print"
        with pytest.raises(PolicyError, match=r"^on_violation: expected a callable or None, got"):
            LoopGuard(on_violation=unusable)
        with pytest.raises(PolicyError, match=r"^policy: expected a Policy or None"):
            LoopGuard(unusable)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_steps": True}, "max_steps: expected a whole number of at least 1 .*, got True"),
            ({"max_steps": -1}, "max_steps: expected a whole number of at least 1 .*, got -1"),
            ({"max_step": 1}, "max_step: there is no such option.*; did you mean 'max_steps'?"),
        ],
    )
    def test_a_bad_option_is_named(self, options: dict[str, Any], message: str):
        with pytest.raises(PolicyError, match=message):
            LoopGuard(**options)


class TestPreview:
    def test_it_says_what_check_would_say_and_leaves_no_trace(self):
        guard = LoopGuard(NONE, max_steps=1)
        first = guard.preview(tool())
        again = guard.preview(tool())

        assert first == again == guard.check(tool())
        assert first.step_count == 1
        refused = guard.preview(tool())
        assert refused == guard.preview(tool()) == guard.check(tool())
        assert refused.violations
        assert guard.check(tool()).violations == ()

    def test_it_does_not_start_the_run(self):
        clock = Clock()
        guard = LoopGuard(NONE, clock=clock, max_duration_s=5)
        guard.preview(tool())
        clock.now_s = 10

        assert guard.check(tool()).allowed
        assert guard.stats().duration_s == 0

    def test_it_tells_nobody(self):
        told: list[Violation] = []
        guard = LoopGuard(NONE, max_steps=1, on_violation=told.append)
        guard.check(tool())
        guard.preview(tool())

        assert told == []

    def test_a_time_of_its_own_does_not_become_the_runs(self):
        clock = Clock(100)
        guard = LoopGuard(NONE, clock=clock)
        guard.check(tool())
        clock.now_s = 130
        guard.preview(tool(started_s=5000))

        assert guard.stats().duration_s == 30

    @pytest.mark.parametrize("limit", ["max_llm_calls", "max_steps"])
    def test_model_calls_on_their_way_count(self, limit: str):
        guard = LoopGuard(NONE.with_limits(**{limit: 3}))  # type: ignore[arg-type]
        guard.check(TURN)

        assert guard.preview(TURN, ahead=1).allowed
        assert not guard.preview(TURN, ahead=2).allowed
        assert not guard.check(TURN, ahead=2).allowed
        assert guard.check(TURN).allowed

    def test_it_is_refused_after_an_abort_that_holds(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=5)
        guard.record(tool(started_s=0, ended_s=5))

        assert guard.preview(tool("other", started_s=1)).rule == "time_budget"


class TestCommit:
    def test_a_refused_step_that_cannot_be_prevented_is_counted(self):
        guard = LoopGuard(NONE, max_tool_calls=1)
        decisions = [guard.check(tool(), commit=True) for _ in range(3)]

        assert [d.allowed for d in decisions] == [True, False, False]
        assert [d.step_count for d in decisions] == [1, 2, 3]
        assert guard.stats().tool_calls == 3

    def test_a_refused_step_that_ran_is_counted_when_it_is_recorded(self):
        guard = LoopGuard(NONE, max_tool_calls=1)
        guard.check(tool())
        guard.record(tool(result=1))
        guard.check(tool("other"))
        decision = guard.record(tool("other", result=1))

        assert not decision.allowed
        assert guard.stats().tool_calls == 2


class TestHold:
    def test_an_abort_found_in_a_record_holds_until_the_run_ends(self):
        guard = LoopGuard()
        recorded = [guard.record(tool(result=[])).rule for _ in range(5)]
        assert recorded == [None] * 4 + ["repeated_result"]
        held = [guard.check(tool("other")), guard.check(TURN), guard.preview(TURN)]

        assert {d.rule for d in held} == {"repeated_result"}
        assert {d.reason for d in held} == {"REPEATED_RESULT_DETECTED"}
        assert guard.stats().steps == 5
        guard.end()
        assert guard.check(tool("other")).allowed

    def test_reset_and_start_let_go(self):
        guard = LoopGuard(NONE, clock=Clock(), max_duration_s=1)
        for begin in (guard.reset, guard.start):
            guard.record(tool(started_s=0, ended_s=5))
            assert not guard.check(TURN).allowed
            begin()
            assert guard.check(TURN).allowed

    def test_rules_go_on_being_evaluated_and_reported(self):
        guard = LoopGuard(EQUAL_RESULTS, clock=Clock(), max_duration_s=5)
        late = tool(result=1, started_s=9, ended_s=9)
        decisions = [guard.record(step) for step in (TURN, late, late, late)]

        assert [d.rule for d in decisions] == [None] + ["time_budget"] * 3
        assert [[v.rule for v in d.violations] for d in decisions] == [
            [],
            ["time_budget"],
            [],
            ["repeated_result"],
        ]

    def test_a_warning_does_not_hold(self):
        guard = LoopGuard()
        decisions = [guard.record(tool(result=1)) for _ in range(3)]

        assert [d.action for d in decisions] == ["allow", "allow", "warn"]
        assert all(d.allowed for d in decisions)
        assert guard.check(tool()).action == "allow"

    def test_a_refusal_by_check_does_not_hold(self):
        guard = LoopGuard(NONE, max_repeated_calls=1)
        guard.check(tool())
        guard.check(tool())

        assert guard.check(TURN).allowed


class TestOnViolation:
    def test_it_is_told_of_each_refusal_and_of_each_new_violation(self):
        told: list[str] = []
        guard = LoopGuard(
            EQUAL_RESULTS,
            max_steps=4,
            on_violation=lambda v: told.append(f"{v.action} {v.rule}"),
        )
        for _ in range(6):
            if guard.check(tool()).allowed:
                guard.record(tool(result=1))

        assert told == ["warn repeated_result", "abort step_budget", "abort step_budget"]

    def test_it_is_told_once_of_a_refusal_that_is_new(self):
        told: list[Violation] = []
        guard = LoopGuard(NONE, max_steps=1, max_tool_calls=1, on_violation=told.append)
        guard.check(tool())
        guard.check(tool())

        assert [v.rule for v in told] == ["step_budget", "tool_call_budget"]

    def test_it_is_told_of_what_holds(self):
        told: list[str] = []
        guard = LoopGuard(NONE, max_duration_s=5, on_violation=lambda v: told.append(v.phase))
        guard.record(tool(started_s=0, ended_s=5))
        guard.check(TURN)

        assert told == ["post", "post"]

    def test_what_it_raises_is_swallowed_and_counted(self):
        def broken(violation: Violation) -> None:
            raise RuntimeError(violation.rule)

        guard = LoopGuard(NONE, max_steps=1, on_violation=broken)
        guard.check(tool())

        assert not guard.check(tool()).allowed
        assert not guard.check(tool()).allowed
        assert guard.stats().failed_callbacks == 2
        guard.reset()
        assert guard.stats().failed_callbacks == 0


class TestDecision:
    def test_the_details_of_a_refusal(self):
        span = SpanKey(1, 2)
        guard = LoopGuard(NONE, max_steps=1)
        allowed = guard.check(tool())
        decision = guard.check(tool(agent="planner", span=span))

        assert (allowed.action, allowed.rule, allowed.details) == ("allow", None, {})
        assert decision.action == "abort"
        assert decision.violations == (decision.refusal,)
        assert decision.details == {
            "rule": "step_budget",
            "reason": "MAX_STEPS_EXCEEDED",
            "action": "abort",
            "phase": "pre",
            "step": 2,
            "count": 2,
            "threshold": 1,
            "kind": "tool",
            "tool": "search",
            "agent": "planner",
            "wasted_steps": 0,
            "wasted_tokens": 0,
            "wasted_cost_usd": 0.0,
            "span": span,
            "message": "step_budget: tool 'search' by agent 'planner' at step 2: 2 against a "
            "threshold of 1 (stop)",
        }

    def test_it_can_be_raised(self):
        guard = LoopGuard(NONE, max_llm_calls=1)
        allowed = guard.check(TURN)
        refused = guard.check(TURN)

        with pytest.raises(LoopGuardError, match="llm_call_budget: llm step at step 2") as caught:
            raise LoopGuardError(refused)
        assert caught.value.decision is refused
        assert str(LoopGuardError(allowed)) == "the step was allowed"

    def test_a_rule_is_reported_once_for_each_level(self):
        guard = LoopGuard(EQUAL_RESULTS)
        decisions = [guard.record(tool(result=1)) for _ in range(9)]

        assert [(v.step, v.action) for d in decisions for v in d.violations] == [
            (3, "warn"),
            (5, "abort"),
        ]
        assert decisions[2].violations[0].message.endswith("a threshold of 3 (warning)")

    def test_silence_before_anything_has_begun_is_none(self):
        guard = LoopGuard(NONE, max_idle_s=1)
        guard.stir()

        assert guard.tick(9.0).allowed

    def test_unknown_arguments_are_no_arguments(self):
        guard = LoopGuard(NONE, max_repeated_calls=1)

        assert all(guard.check(tool(arguments=UNKNOWN)).allowed for _ in range(5))
        assert guard.check(Step(kind="tool", name="a", arguments={})).allowed
        assert not guard.check(Step(kind="tool", name="a", arguments={})).allowed

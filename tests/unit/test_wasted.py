"""What a loop has cost: the steps, tokens and dollars that a violation names."""

from __future__ import annotations

from typing import Any

import pytest

from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.engine.run_totals import SPENT
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step

NONE = Policy.none()


def rule(name: str, **thresholds: int) -> Policy:
    return Policy.from_mapping({"rules": {name: thresholds}}, base=NONE)


def tool(**facts: Any) -> Step:
    return Step(kind="tool", name="search", arguments="x", **facts)


def turn(**facts: Any) -> Step:
    return Step(kind="llm", input_tokens=90, output_tokens=10, cost_usd=0.25, **facts)


def play(guard: LoopGuard, *steps: Step) -> Decision:
    """Return the decision on the last step: that of its record if it was let through."""
    decision = guard.preview(steps[0])
    for step in steps:
        decision = guard.check(step)
        if decision.allowed and not decision.violations:
            decision = guard.record(step)
    return decision


def wasted(decision: Decision) -> tuple[int, int, float]:
    violation: Violation = decision.violations[0]
    return violation.wasted_steps, violation.wasted_tokens, violation.wasted_cost_usd


def test_of_a_loop_it_is_all_but_the_first_round():
    guard = LoopGuard(rule("repeated_result", warn=3))
    before = [turn(output=f"thought {number}") for number in range(4)]
    decision = play(guard, *before, *[turn(), tool(result=1)] * 3)

    assert wasted(decision) == (2, 200, 0.5)


def test_it_is_the_same_where_the_loop_is_seen_before_its_last_call():
    guard = LoopGuard(NONE, loop_pattern_window=4)
    decision = play(guard, turn(), tool(result=1), *[turn(), tool(result=1)] * 3)

    assert not decision.allowed
    assert wasted(decision) == (3, 300, 0.75)


def test_tokens_of_the_tools_count_as_well():
    guard = LoopGuard(rule("repeated_result", warn=3))
    decision = play(guard, *[tool(result=1, input_tokens=5, cost_usd=0.5)] * 3)

    assert wasted(decision) == (2, 10, 1.0)


def test_calls_of_other_agents_are_no_part_of_the_loop():
    guard = LoopGuard(rule("repeated_result", warn=3))
    rounds = [
        (turn(agent="x"), tool(agent="y", result=number), tool(agent="x", result=1))
        for number in range(3)
    ]
    decision = play(guard, *(step for part in rounds for step in part))

    assert wasted(decision) == (2, 200, 0.5)


def test_of_turns_that_repeat_it_is_the_turns():
    guard = LoopGuard(rule("repeated_output", warn=3))
    others = [turn(output=f"thought {number}") for number in range(9)]
    decision = play(guard, *others, *[turn(output="Let me look.")] * 3)

    assert wasted(decision) == (2, 200, 0.5)


def test_a_run_may_be_nothing_but_a_loop():
    guard = LoopGuard(rule("truncated_turns", warn=2))
    decision = play(guard, *[turn(finish_reasons=("length",))] * 2)

    assert wasted(decision) == (1, 100, 0.25)


def test_a_turn_that_has_not_come_back_has_cost_nothing():
    guard = LoopGuard(rule("extra_turn", warn=1))
    final = turn(output="Done.", finish_reasons=("stop",), tool_calls=())
    decision = play(guard, turn(finish_reasons=("tool_calls",)), tool(result=1), final, turn())

    assert wasted(decision) == (1, 0, 0.0)


@pytest.mark.parametrize("rounds", [SPENT // 2 - 1, SPENT, 3 * SPENT])
def test_of_a_long_loop_the_last_of_it_is_told(rounds: int):
    guard = LoopGuard(rule("repeated_result", warn=rounds, abort=0))
    decision = play(guard, *[turn(), tool(result=1)] * rounds)
    steps, tokens, cost_usd = wasted(decision)

    assert steps == rounds - 1
    assert tokens == 100 * min(rounds - 1, SPENT // 2 - 1)
    assert cost_usd == tokens / 400


def test_a_budget_wastes_nothing():
    guard = LoopGuard(NONE, max_total_tokens=150)
    decision = play(guard, turn(), turn())

    assert decision.rule == "token_budget"
    assert wasted(decision) == (0, 0, 0.0)


class TestCallsWithoutCost:
    def test_model_calls_whose_cost_nobody_knows_are_counted(self):
        guard = LoopGuard(NONE)
        play(guard, turn(), Step(kind="llm"), Step(kind="llm", input_tokens=5), tool(result=1))

        assert guard.stats().calls_without_cost == 2

    def test_what_is_known_to_cost_nothing_is_no_such_call(self):
        guard = LoopGuard(NONE)
        play(guard, Step(kind="llm", cost_usd=0.0))

        assert guard.stats().calls_without_cost == 0

    def test_a_price_makes_a_cost(self):
        usage = {"prices": {"m": {"input_per_m_usd": 10.0, "output_per_m_usd": 0.0}}}
        guard = LoopGuard(Policy.from_mapping({"usage": usage}, base=NONE), max_cost_usd=5)
        play(guard, Step(kind="llm", model="m", input_tokens=10**5))

        assert guard.stats().calls_without_cost == 0
        assert guard.stats().cost_usd == pytest.approx(1.0)

    def test_a_fresh_run_has_none(self):
        guard = LoopGuard(NONE)
        play(guard, Step(kind="llm"))
        guard.reset()

        assert guard.stats().calls_without_cost == 0

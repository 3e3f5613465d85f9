"""Steps of a run inside the one that a guard is told of: totals and silence, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otel_loopguard import LoopGuard, Policy, Step

OWN = Step(kind="tool", name="t", arguments={"q": 1}, agent="scout", agent_id="1")
INNER = msgspec.structs.replace(OWN, inner=True)


def guard(**limits: Any) -> LoopGuard:
    made = LoopGuard(Policy.none(), **limits)
    made.start(0.0)
    return made


def told(guard: LoopGuard, step: Step, *, at_s: float = 0.0, result: object = "r") -> list[str]:
    """Tell of a step and what came out of it; return what is found."""
    started = msgspec.structs.replace(step, started_s=at_s)
    ended = msgspec.structs.replace(step, ended_s=at_s, result=result)
    found = guard.check(started, commit=True).violations + guard.record(ended).violations
    return [violation.rule for violation in found]


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"max_steps": 2}, "step_budget"),
        ({"max_tool_calls": 2}, "tool_call_budget"),
        ({"max_calls_per_tool": {"t": 2}}, "tool_call_budget"),
    ],
)
def test_totals_add_up(limits: Any, rule: str) -> None:
    judged = guard(**limits)

    assert [told(judged, step) for step in (OWN, INNER, INNER)] == [[], [], [rule]]
    assert judged.report().violations[0].agent == "scout"
    assert judged.report().violations[0].step == 3


def test_numbers_are_given_to_own_and_inner_steps_alike() -> None:
    judged = guard()
    numbers = [judged.check(step, commit=True).step_count for step in (OWN, INNER, INNER, OWN)]

    assert numbers == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_repeated_calls": 1},
        {"max_same_tool_calls": 1},
        {"max_steps_per_minute": 1},
        {"max_agent_depth": 1},
        {"max_context_tokens": 1},
        {"max_consecutive_errors": 1},
        {"max_turns_without_tool": 1},
        {"loop_pattern_window": 2},
    ],
)
def test_other_limits_see_nothing_of_them(limits: Any) -> None:
    judged = guard(**limits)
    agent = Step(kind="agent", name="a", agent="a", agent_id="2", agent_parent_id="1", inner=True)
    deeper = msgspec.structs.replace(agent, agent_id="3", agent_parent_id="2")
    llm = Step(kind="llm", input_tokens=5, inner=True, finish_reasons=("stop",), tool_calls=())
    failed = msgspec.structs.replace(INNER, error="ValueError: no")

    for step in (INNER, INNER, agent, deeper, llm, llm, failed, failed, INNER):
        assert told(judged, step) == []


def test_rules_see_nothing_of_them_and_are_not_interrupted() -> None:
    judged = LoopGuard(Policy())
    for n in range(20):
        assert told(judged, INNER) == []
        assert told(judged, msgspec.structs.replace(INNER, arguments={"n": n})) == []

    found: list[str] = []
    for n in range(5):
        found += told(judged, OWN)
        told(judged, msgspec.structs.replace(INNER, arguments={"m": n}))
    assert "repeated_result" in found
    assert judged.stats().repeated_calls == 4, "of its own"


def test_a_result_that_comes_late_does_not_bring_the_rules_of_the_run_upon_them() -> None:
    """With the first result of a run, what was concluded without any is forgotten."""
    judged = LoopGuard(Policy())
    for step in (OWN, INNER):
        judged.check(step, commit=True)
    judged.record(msgspec.structs.replace(OWN, result="r"))
    failed = msgspec.structs.replace(INNER, error="ValueError: no")
    for _ in range(20):
        assert told(judged, failed) == []


def test_an_exempt_tool_is_exempt_for_each_agent() -> None:
    tools = {"agents": {"scout": {"tools": {"t": {"exempt": True}}}}}
    judged = LoopGuard(Policy.from_mapping(tools, base=Policy.none()), max_tool_calls=1)

    assert [told(judged, INNER) for _ in range(3)] == [[], [], []]
    other = msgspec.structs.replace(INNER, agent="other")
    assert [told(judged, other) for _ in range(2)] == [[], ["tool_call_budget"]]


@pytest.mark.parametrize("scope", ["run", "agent"])
def test_limits_of_invocations_see_nothing_of_them(scope: Any) -> None:
    policy = Policy(
        rules={}, scope=scope, agents={"scout": {"limits": {"max_steps": 1}}}, max_steps=9
    )
    judged = LoopGuard(policy)

    assert [told(judged, INNER) for _ in range(9)] == [[]] * 9
    assert told(judged, INNER) == (["step_budget"] if scope == "run" else [])


def test_they_are_no_silence_and_silence_after_them_is() -> None:
    judged = guard(max_idle_s=10)
    told(judged, OWN)
    for at_s in (8, 16):
        assert told(judged, INNER, at_s=at_s) == []

    assert judged.due_s() == 26
    assert [found.rule for found in judged.tick(26).violations] == ["idle_run"]


def test_an_agent_s_usage_counts_where_nothing_in_it_has_any() -> None:
    judged = guard(max_total_tokens=10)
    agent = Step(kind="agent", name="a", agent="a", agent_id="2", inner=True)
    judged.check(agent, commit=True)

    found = judged.record(msgspec.structs.replace(agent, input_tokens=11)).violations
    assert [violation.rule for violation in found] == ["token_budget"]

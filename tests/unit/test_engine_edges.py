"""The engine where little is known, much is nested, or what is foreign fails."""

from __future__ import annotations

import pytest

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.engine.rule_sets import RuleSets
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step


def test_time_passes_before_a_run_begins():
    guard = LoopGuard(max_duration_s=1)
    assert guard.tick(1000).allowed
    assert guard.due_s() is None


def test_who_measures_rules_may_fail():
    def broken(_facts: object) -> None:
        raise ZeroDivisionError

    guard = LoopGuard(on_facts=broken)
    assert guard.record(Step(kind="tool", name="a", arguments="{}", result="ok")).allowed
    assert guard.stats().failed_callbacks == 1


def test_agents_may_be_nested_without_end():
    policy = Policy.from_mapping({"agents": {"*": {"limits": {"max_steps": 10**6}}}})
    guard = LoopGuard(policy)
    for depth in range(300):
        inside = f"id {depth - 1}" if depth else None
        agent = Step(
            kind="agent", name="a", agent="a", agent_id=f"id {depth}", agent_parent_id=inside
        )
        assert guard.check(agent, commit=True).allowed
        asked = {"n": depth}
        call = Step(kind="tool", name="b", arguments=asked, agent="a", agent_id=f"id {depth}")
        assert guard.check(call, commit=True).allowed


def test_arguments_that_cannot_be_read_fail_as_an_unknown_tool_does():
    found: list[bool] = []
    guard = LoopGuard(on_facts=lambda facts: found.append(facts.unknown_tool))
    guard.record(Step(kind="tool", name="a", arguments='{"q": ', error="ValueError: no"))
    guard.record(Step(kind="tool", name="a", arguments='{"q": 1}', error="ValueError: no"))
    assert found == [True, False]


def test_rules_of_an_agent_that_is_known_are_its_own():
    rules = RuleSets(Policy().settings)
    rules.agents["a"] = kept = rules.of("a")
    assert rules.of("a") is kept


@pytest.mark.parametrize("text", ['{"a": NaN 2}', "[NaN 2]", '{"a": [NaN }', '[{"a": NaN ]'])
def test_what_is_nearly_json_is_text(text: str):
    assert canonical(text) is not UNKNOWN
    assert canonical(text) != canonical(text.replace(" ", ""))

"""The engine where little is known, much is nested, or what is foreign fails."""

from __future__ import annotations

import pytest

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.dialects import _response_ids
from otel_loopguard.engine.rule_sets import RuleSets
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import SpanKey, Step, StepKind


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


def test_what_is_told_of_no_run_counts_for_none():
    guard = LoopGuard()
    guard.not_executed()
    guard.called_unseen(2)
    assert guard.stats().tool_calls == 0


def test_calls_without_a_span_have_no_number_and_no_rate():
    guard = LoopGuard(max_steps_per_minute=2, max_steps=2)
    for number in range(5):
        call = Step(kind="tool", name="a", call_id=f"c{number}", spanless=True, started_s=number)
        assert guard.check(call, commit=True).allowed
    stats = guard.stats()
    assert (stats.steps, stats.tool_calls) == (0, 5)
    assert guard.check(Step(kind="llm", started_s=6)).allowed


@pytest.mark.parametrize("kind", ["llm", "tool"])
def test_a_step_may_have_its_name_at_its_end_only(kind: StepKind):
    guard = LoopGuard()
    for number in range(70):
        span = SpanKey(1, number)
        guard.check(Step(kind=kind, span=span), commit=True)
        guard.record(Step(kind=kind, name=f"t{number}", span=span))
    last = "t69" if kind == "tool" else ""
    assert (guard.report().last_tool, guard.stats().steps) == (last, 70)


def test_a_number_is_no_name_of_an_answer():
    assert _response_ids._named("id", '{"id": 7, "x": {"id": "r1"}}') == "r1"  # pyright: ignore[reportPrivateUsage]

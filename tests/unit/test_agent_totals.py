"""What runs have taken, agent by agent."""

from __future__ import annotations

import pytest

from otel_loopguard import LoopGuard, Step, bounded_names
from otel_loopguard.agent_totals import AgentTotals
from otel_loopguard.bounded_names import OTHER, BoundedNames
from otel_loopguard.decisions import NOTHING_TAKEN, Taken


def test_totals_are_kept_by_agent() -> None:
    totals = AgentTotals(BoundedNames())
    totals.count("scout", "llm", 1)
    totals.count("scout", "llm", 2)
    totals.count("cook", "tool", 1)
    totals.spend("scout", NOTHING_TAKEN, Taken(3.0, 1, 10, 5, 0.5))
    totals.spend("scout", Taken(3.0, 1, 10, 5, 0.5), Taken(3.0, 2, 30, 5, 0.75))

    assert totals.steps == {("scout", "llm"): 3, ("cook", "tool"): 1}
    assert totals.tokens == {("scout", "input"): 30, ("scout", "output"): 5}
    assert totals.cost_usd == {"scout": 0.75}


def test_those_of_guards_add_up_and_are_left_as_they_are() -> None:
    one, other = AgentTotals(BoundedNames()), AgentTotals(BoundedNames())
    for totals in (one, other):
        totals.count("scout", "llm", 1)
        totals.spend("scout", NOTHING_TAKEN, Taken(3.0, 1, 10, 5, 0.5))
    one.add(other)

    assert one.steps == {("scout", "llm"): 2}
    assert one.tokens == {("scout", "input"): 20, ("scout", "output"): 10}
    assert (one.cost_usd, other.cost_usd) == ({"scout": 1.0}, {"scout": 0.5})
    one.clear()
    assert (one.steps, one.tokens, one.cost_usd) == ({}, {}, {})


def test_names_that_came_first_are_kept_and_others_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 2)
    agents = BoundedNames()

    assert [agents.of(name) for name in "abcadb"] == ["a", "b", OTHER, "a", OTHER, "b"]
    assert agents.all() == ("a", "b", OTHER)


def test_a_guard_says_what_its_run_has_taken() -> None:
    guard = LoopGuard()
    assert guard.taken() == NOTHING_TAKEN
    guard.start(at=7.0)
    guard.record(Step(kind="llm", input_tokens=10, output_tokens=5, cost_usd=0.5))

    assert guard.taken() == Taken(7.0, 1, 10, 5, 0.5)
    guard.end()
    assert guard.taken() == NOTHING_TAKEN

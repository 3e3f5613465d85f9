"""What runs have taken, agent by agent."""

from __future__ import annotations

import pytest

from otel_loopguard import LoopGuard, Step, bounded_names
from otel_loopguard.agent_totals import AgentTotals
from otel_loopguard.bounded_names import OTHER, BoundedNames
from otel_loopguard.decisions import NOTHING_TAKEN


def spent(totals: AgentTotals) -> dict[str, tuple[int, int, float]]:
    return {
        agent: (each.input_tokens, each.output_tokens, each.cost_usd)
        for agent, each in totals.spent.items()
    }


def test_totals_are_kept_by_agent() -> None:
    totals = AgentTotals(BoundedNames())
    totals.count("scout", "llm", 1)
    totals.count("scout", "llm", 2)
    totals.count("cook", "tool", 1)
    totals.spend("scout", NOTHING_TAKEN, (3.0, 1, 10, 5, 0.5))
    totals.spend("scout", (3.0, 1, 10, 5, 0.5), (3.0, 2, 30, 5, 0.75))

    assert totals.steps == {("scout", "llm"): 3, ("cook", "tool"): 1}
    assert spent(totals) == {"scout": (30, 5, 0.75)}


def test_those_of_guards_add_up_and_are_left_as_they_are() -> None:
    one, other = AgentTotals(BoundedNames()), AgentTotals(BoundedNames())
    for totals in (one, other):
        totals.count("scout", "llm", 1)
        totals.spend("scout", NOTHING_TAKEN, (3.0, 1, 10, 5, 0.5))
    one.add(other)

    assert one.steps == {("scout", "llm"): 2}
    assert (spent(one), spent(other)) == ({"scout": (20, 10, 1.0)}, {"scout": (10, 5, 0.5)})
    one.clear()
    assert (one.steps, one.spent) == ({}, {})


def test_agents_of_too_many_are_added_up_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 1)
    totals = AgentTotals(BoundedNames())
    for agent in ("scout", "cook", "clerk", "cook"):
        totals.count(agent, "llm", 1)
        totals.spend(agent, NOTHING_TAKEN, (0.0, 1, 1, 0, 0.0))

    assert totals.steps == {("scout", "llm"): 1, (OTHER, "llm"): 3}
    assert spent(totals) == {"scout": (1, 0, 0.0), OTHER: (3, 0, 0.0)}


def test_those_of_guards_without_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 2)
    left = AgentTotals(BoundedNames())
    for guard in range(5):
        totals = AgentTotals(BoundedNames())
        totals.count(f"agent {guard}", "llm", 1)
        totals.spend(f"agent {guard}", NOTHING_TAKEN, (0.0, 1, 1, 0, 0.0))
        left.add(totals)

    assert left.steps == {("agent 0", "llm"): 1, ("agent 1", "llm"): 1, (OTHER, "llm"): 3}
    assert spent(left) == {"agent 0": (1, 0, 0.0), "agent 1": (1, 0, 0.0), OTHER: (3, 0, 0.0)}


def test_an_agent_may_stand_at_zero() -> None:
    totals = AgentTotals(BoundedNames())
    totals.count("scout", "llm", 2)
    totals.of("cook")
    assert totals.agents() == ("scout", "cook")

    for agent in totals.agents():
        totals.announce(agent)
    assert totals.steps == {
        ("scout", "llm"): 2,
        ("scout", "tool"): 0,
        ("cook", "tool"): 0,
        ("cook", "llm"): 0,
    }
    assert spent(totals) == {"scout": (0, 0, 0.0), "cook": (0, 0, 0.0)}


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

    assert guard.taken() == (7.0, 1, 10, 5, 0.5)
    guard.end()
    assert guard.taken() == NOTHING_TAKEN


def test_what_a_run_has_taken_is_asked_while_another_thread_ends_it() -> None:
    class Ending(LoopGuard):
        """A guard whose run is over as soon as anything has looked at it."""

        def __getattribute__(self, name: str) -> object:
            found = super().__getattribute__(name)
            if name == "_run" and found is not None:
                self._run = None
            return found

    guard = Ending()
    guard._run = guard._fresh(7.0)  # pyright: ignore[reportPrivateUsage]

    assert guard.taken() == (7.0, 0, 0, 0, 0.0)
    assert guard.taken() == NOTHING_TAKEN

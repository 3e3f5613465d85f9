"""Those who listen hear what every guard says: engines of loops, and guards of spans."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from otel_loopguard import LoopGuard, Policy, Step, guarded_run
from otel_loopguard.listeners import LISTENERS, Said
from tests._tracing import ONE_RULE, Traced

SEARCH = Step(kind="tool", name="search", arguments={"q": "x"})


@pytest.fixture
def heard() -> Generator[list[Said]]:
    said: list[Said] = []
    LISTENERS.append(said.append)
    yield said
    LISTENERS.remove(said.append)


def test_what_a_loop_is_told_is_heard(heard: list[Said]) -> None:
    guard = LoopGuard(Policy.none(), max_tool_calls=1, clock=lambda: 0.0)

    decisions = [guard.check(SEARCH), guard.record(SEARCH), guard.check(SEARCH)]
    report = guard.end()

    assert [each.decision for each in heard] == [*decisions, None]
    assert [each.step for each in heard] == [SEARCH, SEARCH, SEARCH, None]
    assert heard[-1].report == report
    assert {(each.guard, each.run_id, each.enforces) for each in heard} == {(guard, "", None)}


def test_a_limit_on_time_is_heard(heard: list[Said]) -> None:
    now_s = 0.0
    guard = LoopGuard(Policy.none(), max_duration_s=5, clock=lambda: now_s)
    guard.check(SEARCH)
    now_s = 6.0

    decision = guard.tick()

    assert decision.rule == "time_budget"
    assert heard[-1] == Said(guard=guard, decision=decision)


def test_what_is_raised_is_swallowed_and_the_others_hear_it(heard: list[Said]) -> None:
    def fails(_: Said) -> None:
        raise RuntimeError

    LISTENERS.insert(0, fails)
    try:
        assert LoopGuard().check(SEARCH).allowed
    finally:
        LISTENERS.remove(fails)
    assert len(heard) == 1


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_a_guard_of_spans_speaks_for_its_engines(
    process: Traced, heard: list[Said], mode: str
) -> None:
    process.guard(ONE_RULE, mode=mode)

    with process.agent("scout"):
        process.work(5)

    last = heard[-1]
    tripped = [each for each in heard if each.decision is not None and each.decision.refusal]
    assert last.report is not None
    assert last.report.rule == "repeated_result"
    assert last.run_id
    assert {each.run_id for each in heard} == {last.run_id}
    assert {each.agent for each in heard} == {"scout"}
    assert {each.enforces for each in heard} == {mode == "enforce"}
    assert [each.step.name for each in tripped if each.step][:1] == ["search"]
    # A model call is told of when it starts and when it ends; so are a tool call, and the agent.
    assert sum(1 for each in heard if each.decision is not None) == 22


def test_a_run_that_no_span_ends_is_heard_of(process: Traced, heard: list[Said]) -> None:
    process.guard(ONE_RULE)

    with process.agent(), guarded_run("r-1"):
        process.work(1)

    assert "r-1" in [each.run_id for each in heard if each.report is not None]


def test_nobody_is_told_once_they_have_left(process: Traced) -> None:
    said: list[Said] = []
    LISTENERS.append(said.append)
    LISTENERS.remove(said.append)
    process.guard(ONE_RULE)

    with process.agent():
        process.work(1)
    LoopGuard().check(SEARCH)

    assert said == []

"""How far back the rules look: exactly as far as the documentation says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from otel_loopguard.detectors._base import REMEMBERED
from otel_loopguard.engine.memory import SEEN
from otel_loopguard.engine.rule_sets import AGENTS
from otel_loopguard.engine.run_totals import TOOL_NAMES, TRACED
from otel_loopguard.engine.sight import WAITING
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step

SECOND = Policy.from_mapping(
    {"rules": {"repeated_result": {"warn": 2}, "repeated_call": {"warn": 2}}}, base=Policy.none()
)


def call(name: str = "a", *, agent: str = "", error: str | None = None) -> Step:
    return Step(kind="tool", name=name, arguments={}, result="ok", agent=agent, error=error)


def play(guard: LoopGuard, steps: Iterable[Step]) -> int:
    """Return how many violations the last step brought."""
    found = 0
    for step in steps:
        guard.check(step)
        found = len(guard.record(step).violations)
    return found


def others(count: int, *, error: str | None = None) -> list[Step]:
    return [call(f"other {number}", error=error) for number in range(count)]


@pytest.mark.parametrize(("between", "repeated"), [(SEEN - 1, 1), (SEEN, 0)])
def test_a_result_is_new_again_after_256_others(between: int, repeated: int):
    guard = LoopGuard(Policy.none())

    play(guard, [call(), *others(between), call()])

    assert guard.stats().repeated_calls == repeated


def test_a_result_that_came_back_is_as_recent_as_a_new_one():
    guard = LoopGuard(Policy.none())

    play(guard, [call(), *others(SEEN - 1), call(), call("new"), call()])

    assert guard.stats().repeated_calls == 2


@pytest.mark.parametrize(("between", "found"), [(REMEMBERED - 1, 1), (REMEMBERED, 0)])
def test_a_count_is_kept_over_31_other_failures(between: int, found: int):
    guard = LoopGuard(SECOND)

    assert play(guard, [call(), *others(between, error="e"), call()]) == found


def test_a_count_that_went_up_is_as_recent_as_a_new_one():
    guard = LoopGuard(Policy.from_mapping({"rules": {"repeated_result": {"warn": 3}}}))
    failures = others(REMEMBERED, error="e")

    assert play(guard, [call(), *failures[:-1], call(), failures[-1], call()]) == 1


@pytest.mark.parametrize(("between", "found"), [(AGENTS - 1, 1), (AGENTS, 0)])
def test_an_agent_is_kept_over_so_many_others(between: int, found: int):
    guard = LoopGuard(SECOND)
    agents = [call(agent=f"agent {number}") for number in range(between)]

    assert play(guard, [call(), *agents, call()]) == found


def test_an_agent_that_came_back_is_as_recent_as_a_new_one():
    guard = LoopGuard(SECOND)
    agents = [call(agent=f"agent {number}") for number in range(AGENTS)]

    assert play(guard, [call(), *agents[:-1], call("b"), agents[-1], call("b")]) == 1


@pytest.mark.parametrize(("batch", "found"), [(WAITING, 1), (WAITING + 1, 0)])
def test_so_many_calls_wait_for_a_first_result(batch: int, found: int):
    guard = LoopGuard(SECOND)
    turn = Step(kind="llm")
    play(guard, [turn])
    for step in (call(), *others(batch - 1)):
        guard.check(step)
    play(guard, [turn])
    guard.check(call())
    guard.check(turn)

    assert guard.stats().repeated_calls == found


def test_a_report_shows_the_last_labels_and_counts_so_many_tools():
    guard = LoopGuard()

    play(guard, others(TOOL_NAMES + 1))

    assert guard.stats().distinct_tools == TOOL_NAMES
    assert guard.report().trace == tuple(
        f"tool:other {number}" for number in range(TOOL_NAMES + 1 - TRACED, TOOL_NAMES + 1)
    )

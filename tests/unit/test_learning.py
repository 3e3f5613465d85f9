"""Calls that begin with unknown arguments, and show them before they are made."""

from __future__ import annotations

import pytest

from otel_loopguard import LoopGuard, Policy, SpanKey, Step

THREE_EQUAL = Policy.none().with_limits(max_repeated_calls=3)


def call(number: int, arguments: object = None, **more: object) -> Step:
    given = {} if arguments is None else {"arguments": arguments}
    return Step(kind="tool", name="search", span=SpanKey(1, number), **given, **more)  # type: ignore[arg-type]


def made(guard: LoopGuard, number: int, arguments: object) -> bool:
    """Begin a call, learn its arguments, and record it if it may be made."""
    assert guard.check(call(number)).allowed
    if not guard.learn(call(number, arguments, call_id=f"c{number}")).allowed:
        guard.not_executed()
        return False
    guard.record(call(number, arguments, result="nothing"))
    return True


def test_what_compares_calls_hears_of_it_before_the_call_is_made():
    guard = LoopGuard(THREE_EQUAL)
    assert [made(guard, number, {"q": "x"}) for number in range(5)] == [True] * 3 + [False] * 2
    report = guard.report()
    assert (report.steps, report.tool_calls, report.open_call_ids) == (5, 3, ("c3", "c4"))
    [trip] = report.violations
    assert (trip.rule, trip.phase, trip.step, trip.count) == ("repeated_call_limit", "pre", 4, 4)


def test_calls_side_by_side_are_judged_in_the_order_in_which_they_are_told_of():
    guard = LoopGuard(THREE_EQUAL)
    for number in range(5):
        guard.check(call(number))
    told = [guard.learn(call(number, {"q": "x"})).allowed for number in range(5)]
    assert told == [True] * 3 + [False] * 2


def test_it_is_the_same_as_if_they_had_been_known_from_the_start():
    known, learned = LoopGuard(), LoopGuard()
    for number in range(8):
        arguments = {"q": "x" if number % 4 else number}
        known.check(call(number, arguments), commit=True)
        learned.check(call(number), commit=True)
        learned.learn(call(number, arguments))
        for guard in (known, learned):
            guard.record(call(number, arguments, result="nothing"))
    assert known.report().violations == learned.report().violations
    assert known.report().violations


def test_a_limit_that_the_call_has_been_held_against_is_not_asked_again():
    guard = LoopGuard(Policy.none().with_limits(max_tool_calls=1, max_steps=1))
    guard.check(call(1))
    assert guard.learn(call(1, {"q": "x"})).allowed


@pytest.mark.parametrize("learned", [call(2, {"q": "x"}), call(1, {"q": "y"})])
def test_what_is_not_open_or_was_known_is_left_alone(learned: Step):
    guard = LoopGuard(THREE_EQUAL)
    assert guard.learn(learned).allowed, "without a run"
    guard.check(call(1, {"q": "x"}))
    assert guard.learn(learned).allowed
    assert guard.report().steps == 1


def test_an_abort_that_holds_refuses_it_and_every_time_it_is_told():
    told: list[str] = []
    guard = LoopGuard(Policy(), on_violation=lambda violation: told.append(violation.rule))
    for number in range(5):
        guard.check(call(number, {"q": "x"}))
        guard.record(call(number, {"q": "x"}, result="nothing"))
    guard.check(call(6), commit=True)
    told.clear()
    decision = guard.learn(call(6, {"q": "x"}))
    assert (decision.allowed, decision.rule, told[0]) == (
        False,
        "repeated_result",
        "repeated_result",
    )


def test_ids_of_calls_that_are_not_made_are_bounded_and_told_once():
    guard = LoopGuard()
    guard.not_made("before any run")
    guard.check(call(1, {"q": "x"}, call_id="c1"))
    for number in (1, *range(200)):
        guard.not_made(f"c{number}")
    guard.not_made(None)
    ids = guard.report().open_call_ids
    assert (ids[0], ids[-1], len(ids)) == ("c1", "c199", 129)


def test_invocations_hear_of_it_at_its_end():
    policy = Policy.from_mapping(
        {"agents": {"scout": {"limits": {"max_repeated_calls": 2}}}}, base=Policy.none()
    )
    guard = LoopGuard(policy)
    guard.check(Step(kind="agent", name="scout", agent="scout", agent_id="a"))
    of = {"agent": "scout", "agent_id": "a"}
    refused = 0
    for number in range(4):
        guard.check(call(number, **of), commit=True)
        guard.learn(call(number, {"q": "x"}, **of))
        refused += not guard.record(call(number, {"q": "x"}, result="r", **of)).allowed
    assert refused

"""The marker of the pytest plugin, in sessions of its own."""

from __future__ import annotations

from tests.plugin._sessions import LOOP, SPANS, Sessions


def test_it_judges_what_trips(sessions: Sessions) -> None:
    session = sessions.run(
        LOOP
        + """
@pytest.mark.loopguard(trips="llm_call_budget", at=11)
def test_that_step(model):
    with pytest.raises(LoopGuardError):
        agent(model, five())

@pytest.mark.loopguard(trips="llm_call_budget", at=12)
def test_another_step(model):
    with pytest.raises(LoopGuardError):
        agent(model, five())

@pytest.mark.loopguard(trips="step_budget")
def test_another_rule(model):
    with pytest.raises(LoopGuardError):
        agent(model, five())

@pytest.mark.loopguard(trips="step_budget")
def test_no_guard():
    agent(ScriptedModel(["done"]))

@pytest.mark.loopguard
def test_nothing_may_trip(model):
    with pytest.raises(LoopGuardError):
        agent(model, five())

@pytest.mark.loopguard
def test_nothing_trips():
    agent(ScriptedModel(["done"]), five())

@pytest.mark.loopguard(trips="llm_call_budget")
def test_that_fails_for_a_reason_of_its_own():
    assert 1 == 2

@pytest.mark.loopguard(trips="llm_call_budget", at=11)
class TestOfAClass:
    def test_heeds_it(self, model):
        with pytest.raises(LoopGuardError):
            agent(model, five())

    @pytest.mark.loopguard(at=3)
    def test_the_nearest_comes_first(self, model):
        with pytest.raises(LoopGuardError):
            agent(model, five())
"""
    )

    assert session.outcomes == {
        "test_that_step": "passed",
        "test_another_step": "failed",
        "test_another_rule": "failed",
        "test_no_guard": "failed",
        "test_nothing_may_trip": "failed",
        "test_nothing_trips": "passed",
        "test_that_fails_for_a_reason_of_its_own": "failed",
        "test_heeds_it": "passed",
        "test_the_nearest_comes_first": "failed",
    }
    step = session.failure_of("test_another_step")
    assert "llm_call_budget is to trip at step 12; llm_call_budget at step 11\n" in step
    assert "   └─ ... 4 more like these 2\n" in step
    none = session.failure_of("test_no_guard")
    assert "step_budget is to trip; no run tripped\n" in none
    assert "check: no guard is installed" in none
    assert "no run may trip, and one did: llm_call_budget at step 11\n" in session.failure_of(
        "test_nothing_may_trip"
    )
    assert "assert 1 == 2" in session.failure_of("test_that_fails_for_a_reason_of_its_own")


def test_it_puts_a_guard_in_place(sessions: Sessions) -> None:
    session = sessions.run(
        SPANS
        + """
from otel_loopguard.processor import guards_of_process

@pytest.mark.loopguard(max_llm_calls=3, trips="llm_call_budget", at=7)
def test_limit(model):
    agent(model)  # the stop that the marker names need not be caught

@pytest.mark.loopguard(policy={"rules": {"repeated_result": {"abort": 4}}}, trips="repeated_result")
def test_policy(model):
    with pytest.raises(RunAborted):
        agent(model)

@pytest.mark.loopguard(policy="policy.toml", trips="tool_call_budget")
def test_file(model):
    agent(model)

@pytest.mark.loopguard(policy=Policy.none(), max_tool_calls=2, trips="llm_call_budget")
def test_stopped_by_another_rule(model):
    agent(model)

@pytest.mark.loopguard(policy=Policy.none(), max_tool_calls=2)
def test_calm(loopguard):
    (guard,) = guards_of_process()
    assert guard.mode == "enforce"
    agent(ScriptedModel([("lookup", {"order": 1}), "done"]))
    assert [report.rule for report in loopguard.reports] == [None]

def test_it_is_gone_afterwards(loopguard):
    assert guards_of_process() == ()
    agent(ScriptedModel([("lookup", {"order": 1})] * 9 + ["done"]))
    assert loopguard.reports == ()

@pytest.mark.loopguard(policy=Policy.none(), max_duration_s=60, trips="time_budget")
def test_clock(loopguard, loopguard_clock):
    calls = []
    def model():
        calls.append(loopguard_clock.advance(25))
        return EndlessModel("lookup", {"order": 7})()
    with pytest.raises(RunAborted):
        agent(model)
    assert calls == [25, 50, 75]

@pytest.mark.loopguard(max_llm_calls=3, trips="llm_call_budget")
def test_other_guards_stay(model):
    install(Policy.none(), mode="enforce")
    try:
        agent(model)
    finally:
        (mine, *_) = [each for each in guards_of_process() if not each.policy.rule_ids]
        uninstall()
""",
        "--strict-markers",
    )

    assert session.outcomes == {
        "test_limit": "passed",
        "test_policy": "passed",
        "test_file": "error",
        "test_stopped_by_another_rule": "failed",
        "test_calm": "passed",
        "test_it_is_gone_afterwards": "passed",
        "test_clock": "passed",
        "test_other_guards_stay": "passed",
    }, session.text
    assert "policy.toml" in session.failure_of("test_file")
    other = session.failure_of("test_stopped_by_another_rule")
    assert "llm_call_budget is to trip; tool_call_budget at step 6\n" in other
    assert "   <- tool_call_budget: 3 against 2, step 6\n" in other


def test_what_it_does_not_take_is_an_error_that_says_what_it_takes(sessions: Sessions) -> None:
    session = sessions.run(
        """
import pytest

@pytest.mark.loopguard(max_lm_calls=3)
def test_name(): ...

@pytest.mark.loopguard(trips="llm_calls")
def test_rule(): ...

@pytest.mark.loopguard(trips="step_budget", at=0)
def test_step(): ...

@pytest.mark.loopguard(at=3)
def test_step_of_no_rule(): ...

@pytest.mark.loopguard(kind="integration")
def test_kind(): ...

@pytest.mark.loopguard(max_steps="many")
def test_limit(): ...

@pytest.mark.loopguard("step_budget")
def test_unnamed(): ...
"""
    )

    said = {
        "test_name": "no argument 'max_lm_calls'; did you mean 'max_llm_calls'? allowed are policy",
        "test_rule": "no rule for `trips` 'llm_calls'; ",
        "test_step": "at=0 is no step; expected its number, from 1",
        "test_step_of_no_rule": "at=3 is the step of which rule? Say trips=",
        "test_kind": "no kind 'integration'; ",
        "test_limit": "limits.max_steps: expected ",
        "test_unnamed": "the marker takes named arguments only: @pytest.mark.loopguard(max_llm",
    }
    assert session.outcomes == dict.fromkeys(said, "error")
    for test, text in said.items():
        assert text in session.failure_of(test)

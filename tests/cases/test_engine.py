"""Every public report and every scenario, as a steps file through the engine."""

from __future__ import annotations

import pytest

from otel_loopguard import LoopGuard
from otel_loopguard.replay import read_run
from tests.cases._reports import (
    CASES,
    SCENARIOS,
    Case,
    Found,
    by_engine,
    cases,
    complaints,
    replayed,
    too_late_or_touched,
)


@pytest.mark.parametrize("case", cases(CASES))
def test_a_report_gets_the_verdict_that_it_asks_for(case: Case) -> None:
    assert complaints(case, by_engine(case)) == []


@pytest.mark.parametrize("case", cases(SCENARIOS))
def test_loops_are_caught_in_time_and_healthy_runs_hear_nothing(case: Case) -> None:
    assert too_late_or_touched(case, by_engine(case)) == []


def test_every_line_of_the_files_is_here() -> None:
    assert (len(CASES), len(SCENARIOS)) == (60, 35)
    assert sum(case.expect.trip for case in CASES.values()) == 39
    assert sum(case.expect.trip for case in SCENARIOS.values()) == 21


def test_the_only_contested_report_asks_for_a_limit_that_has_to_be_set() -> None:
    (contested,) = (case for case in CASES.values() if case.expect.contested)
    assert contested.policy == {"limits": {"max_repeated_calls": 40}}
    assert by_engine(contested)[0] == Found("repeated_call_limit", "abort", 41, "pre")


def test_a_time_limit_is_reported_while_the_step_that_overruns_it_is_open() -> None:
    timed = [case for case in CASES.values() if case.expect.by_s is not None]
    assert [case.id for case in timed] == ["B12"]
    for case in timed:
        (found,) = replayed(case).violations
        assert (found.rule, found.count) == ("time_budget", 60.0)
        assert case.expect.by_s is not None
        assert found.count <= case.expect.by_s


HEEDED = {case.id: case for case in CASES.values() if case.expect.max_steps_after is not None}


def started_after_a_trip(case: Case) -> list[int]:
    """Return the steps that still start if the host heeds the guard, and stops nothing itself."""
    recorded = read_run(case.line)
    guard = LoopGuard(case.ruling, clock=lambda: 0.0)
    started: set[int] = set()
    after: list[int] = []
    tripped = False
    for moment in recorded.moments:
        entry = recorded.steps[moment.position]
        assert entry.step is not None
        if not moment.is_end:
            decision = guard.check(entry.step)
            tripped = tripped or not decision.allowed
            if decision.allowed:
                started.add(entry.index)
                after += [entry.index] * tripped
        elif entry.index in started:
            tripped = not guard.record(entry.step).allowed or tripped
    assert tripped
    return after


@pytest.mark.parametrize("case", cases(HEEDED))
def test_nothing_starts_after_a_trip_where_the_guard_is_heeded(case: Case) -> None:
    assert started_after_a_trip(case) == []


def test_reports_ask_for_few_steps_after_a_trip() -> None:
    asked = {case.id: case.expect.max_steps_after for case in HEEDED.values()}
    assert asked == {"A01": 1, "A03": 1, "B02": 0, "B07": 1}

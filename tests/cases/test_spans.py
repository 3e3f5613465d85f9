"""Every public report and every scenario as spans: seen live, and replayed from a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_loopguard.policy import Policy
from tests.cases._reports import (
    CASES,
    SCENARIOS,
    Case,
    Found,
    by_engine,
    cases,
    complaints,
    too_late_or_touched,
)
from tests.cases._written import found_in, recorded, written

NOT_ON_SPANS = ("F15", "O06")
"""Cases whose spans cannot hold what the steps say; below is what is said of them instead."""
ASKED_FOR = ("L37", "O09")
"""Cases whose tools have no spans: their spans say more of the calls than the steps do."""
NEVER_ENDED = "L33"
"""The case whose spans never end, so that no recording has them."""


def live(case: Case) -> list[Found]:
    with written(case) as (work, _):
        return work.found()


def from_recording(case: Case, folder: Path) -> list[Found]:
    with written(case) as (_, process):
        (run,) = recorded(process.spans, case.ruling, folder)
    return found_in(run, case)


def at_end(found: list[Found]) -> list[Found]:
    """Return what was found, extra turns as if each had been told of at its end."""
    return [each._replace(phase="post") if each.rule == "extra_turn" else each for each in found]


@pytest.mark.parametrize("case", cases(CASES, {}, ["F15"]))
def test_a_report_gets_its_verdict_from_live_spans(case: Case) -> None:
    assert complaints(case, live(case)) == []


@pytest.mark.parametrize("case", cases(CASES, {}, ["F15", NEVER_ENDED]))
def test_a_report_gets_its_verdict_from_recorded_spans(case: Case, tmp_path: Path) -> None:
    assert complaints(case, from_recording(case, tmp_path)) == []


@pytest.mark.parametrize("case", cases(CASES, {}, [*NOT_ON_SPANS, *ASKED_FOR, NEVER_ENDED]))
def test_spans_lead_to_the_decisions_that_their_steps_lead_to(case: Case, tmp_path: Path) -> None:
    decisions = by_engine(case)
    with written(case) as (work, process):
        seen = work.found()
        runs = recorded(process.spans, case.ruling, tmp_path)
    # Only a model call's end shows live what a person has said before it.
    assert sorted(at_end(seen)) == sorted(at_end(decisions))
    assert [found_in(run, case) for run in runs] == [decisions]


@pytest.mark.parametrize("case", cases(SCENARIOS))
def test_a_scenario_is_judged_alike_from_spans(case: Case, tmp_path: Path) -> None:
    with written(case) as (work, process):
        seen = work.found()
        (run,) = recorded(process.spans, case.ruling, tmp_path)
    assert too_late_or_touched(case, seen) == []
    assert found_in(run, case) == by_engine(case)
    assert sorted(seen) == sorted(by_engine(case))


def test_an_approval_is_on_no_span_and_the_policy_has_to_say_it() -> None:
    case = CASES["F15"]
    exempt = Policy(tools={"webfetch": {"exempt": True}})
    with written(case) as (work, _):
        assert Found("repeated_result", "abort", 5, "post") in work.found()
    with written(case, exempt) as (work, _):
        assert work.found() == []


def test_arguments_that_are_absent_are_not_empty_ones(tmp_path: Path) -> None:
    case = CASES["O06"]
    assert by_engine(case) == [Found("repeated_call", "warn", 4, "pre")]
    assert live(case) == from_recording(case, tmp_path) == []


def test_what_never_ends_is_in_no_recording(tmp_path: Path) -> None:
    case = CASES[NEVER_ENDED]
    with written(case) as (_, process):
        assert recorded(process.spans, case.ruling, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "trips", "told"),
    [
        ("L37", {"repeated_output"}, {3, 5}),
        ("O09", {"repeated_output", "repeated_result", "no_novelty"}, {3, 5}),
    ],
)
def test_calls_that_have_no_span_of_their_own_are_counted(
    name: str, trips: set[str], told: set[int], tmp_path: Path
) -> None:
    case = CASES[name]
    with written(case) as (work, process):
        seen = work.found()
        (run,) = recorded(process.spans, case.ruling, tmp_path)

    assert run.tool_calls == len(case.steps), "the run goes on after the last one was asked for"
    assert {each.rule for each in seen if each.action == "abort"} == trips
    assert {each.rule for each in run.violations if each.action == "abort"} >= trips
    assert {each.step for each in seen if each.rule == "repeated_output"} == told

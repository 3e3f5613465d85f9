"""Time and people in a steps file: what is due while nothing happens, and who spoke in between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard.policy import Policy
from otel_loopguard.replay import ReplayedRun, read_run, replay_run


def replayed(steps: list[dict[str, Any]], **limits: Any) -> ReplayedRun:
    policy = Policy.none().with_limits(**limits) if limits else Policy()
    return replay_run(read_run(json.dumps({"steps": steps})), policy, "file")


def tool(dt_s: float = 1, **more: Any) -> dict[str, Any]:
    return {"type": "tool", "name": "t", "arguments": {"n": 1}, "dt_s": dt_s, **more}


def answer(**more: Any) -> dict[str, Any]:
    return {"type": "llm", "name": "m", "result": "done", "finish_reason": "stop", **more}


USER = {"type": "user", "name": "user"}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([tool(2), tool(180)], (2, "post", 60), id="in the middle of a step"),
        pytest.param([tool(1, advance_s=70), tool()], (1, "post", 60), id="after a step"),
        pytest.param([tool(1), tool(1, gap_s=70)], (1, "post", 60), id="before a step"),
        pytest.param([tool(60)], (1, "post", 60), id="just when it ends"),
        pytest.param([tool(59.999)], None, id="a moment too early"),
        pytest.param(
            [tool(1, ended=False), tool(80)], (2, "post", 60), id="beside one that never ends"
        ),
        pytest.param([answer(), USER | {"advance_s": 70}, USER], None, id="the run is over"),
        pytest.param(
            [tool(50, run="a"), tool(50, run="b")], None, id="each run has a time of its own"
        ),
    ],
)
def test_a_limit_on_time_is_reached_when_it_is(
    steps: list[dict[str, Any]], expected: tuple[int, str, float] | None
) -> None:
    run = replayed(steps, max_duration_s=60)
    found = [(v.step, v.phase, v.count) for v in run.violations if v.action == "abort"]
    assert found == ([] if expected is None else [expected])


def child(dt_s: float = 1, **more: Any) -> dict[str, Any]:
    return tool(dt_s, agent="child", **more)


def task(dt_s: float) -> dict[str, Any]:
    return tool(dt_s, agent="parent", contains=["child"])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([tool(), tool(gap_s=299)], None, id="a pause"),
        pytest.param([tool(), tool(gap_s=301)], 1, id="a silence"),
        pytest.param([tool(), tool(400)], 2, id="a step that says nothing"),
        pytest.param(
            [task(1200), *(child(gap_s=250) for _ in range(4))], None, id="a child that works"
        ),
        pytest.param([task(1200), child(gap_s=350)], 1, id="a child that has not begun"),
        pytest.param([answer(advance_s=3600), tool()], None, id="after the last answer"),
        pytest.param(
            [
                {"type": "llm", "name": "m", "ended": False},
                tool(gap_s=2),
                answer(),
                {"type": "agent", "name": "a", "advance_s": 3600},
                USER,
            ],
            None,
            id="a stream that was given up, once the run is over",
        ),
        pytest.param(
            [{"type": "llm", "name": "m", "ended": False, "advance_s": 3600}, USER],
            1,
            id="a stream that was given up, while the run goes on",
        ),
    ],
)
def test_silence_is_that_of_all_agents(steps: list[dict[str, Any]], expected: int | None) -> None:
    run = replayed(steps, max_idle_s=300)
    found = [v.step for v in run.violations if v.action == "abort"]
    assert found == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([answer(), answer()], [3], id="nobody asked"),
        pytest.param([answer(), USER, answer(result="more")], [], id="a person asked"),
        pytest.param([answer(), USER, answer(), answer()], [5], id="a person asked for one"),
        pytest.param([USER, answer()], [], id="a person began"),
    ],
)
def test_a_turn_after_the_last_one_is_named_unless_a_person_spoke(
    steps: list[dict[str, Any]], expected: list[int]
) -> None:
    run = replayed([tool(), *steps])
    assert [v.step for v in run.violations if v.rule == "extra_turn"] == expected


def test_people_are_no_steps_and_break_no_streak() -> None:
    same = tool(result="r")
    run = replayed([same, USER, same, USER, same, USER, same, USER, same])
    assert run.steps == 5
    assert [(v.rule, v.step) for v in run.violations if v.action == "abort"] == [
        ("repeated_result", 9)
    ]


def test_equal_answers_that_nobody_asked_for_are_warned_about() -> None:
    run = replayed([answer()] * 9)
    assert [(v.rule, v.action, v.step) for v in run.violations] == [("repeated_output", "warn", 3)]


def test_equal_answers_to_a_person_are_none() -> None:
    assert replayed([entry for _ in range(9) for entry in (USER, answer())]).violations == ()

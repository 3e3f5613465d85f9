"""Runs of steps files, replayed: where rules speak, what is saved, what stays apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard.policy import Policy
from otel_loopguard.replay import ReplayedRun, ReplayError, Saved, read_run, replay_run

BY_RESULT_AND_CALL = Policy.from_mapping(
    {"rules": dict.fromkeys(("repeated_result", "repeated_call"), True)}, base=Policy.none()
)
"""Two rules whose counts are easy to follow: what is recorded, and where, is tested by them."""


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "tool", "name": "a", "arguments": {"x": 1}, "result": "r", **fields}


def turn(**fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.01}
    return {"type": "llm", "name": "m", **usage, **fields}


def replayed(*steps: dict[str, Any], given: Policy | None = None, **line: Any) -> ReplayedRun:
    recorded = read_run(json.dumps({"run_id": "r", "steps": steps, **line}))
    return replay_run(recorded, given or Policy(), "source")


def found(run: ReplayedRun) -> list[tuple[str, str, int, str]]:
    return [(v.rule, v.action, v.step, v.phase) for v in run.violations]


LOOP = [
    ("repeated_result", "warn", 3, "post"),
    ("repeated_result", "abort", 5, "post"),
]
LEFT_ALONE = [
    pytest.param([tool(result=n) for n in range(20)], id="changing results"),
    pytest.param([tool(arguments=None)] * 20, id="arguments not recorded"),
    pytest.param(
        [tool(result="cut here", result_sha=f"{n:08x}") for n in range(9)],
        id="cut results of other hashes",
    ),
    pytest.param([tool(approved_by_user=True)] * 9, id="approved"),
    pytest.param([], id="no steps"),
]


@pytest.mark.parametrize("policy", [Policy(), BY_RESULT_AND_CALL], ids=["default", "two rules"])
@pytest.mark.parametrize("steps", LEFT_ALONE)
def test_what_is_not_known_to_be_equal_is_left_alone(steps: list[dict[str, Any]], policy: Policy):
    run = replayed(*steps, given=policy)
    assert (found(run), run.tripped) == ([], False)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([tool()] * 7, LOOP, id="equal results"),
        pytest.param([tool(arguments={}, result="")] * 5, LOOP, id="empty is known"),
        pytest.param(
            [tool(result=None)] * 8,
            [("repeated_call", "warn", 4, "pre"), ("repeated_call", "abort", 8, "pre")],
            id="results not recorded",
        ),
        pytest.param(
            [{"type": "user", "name": "user"}, *[tool()] * 5],
            [(rule, action, step + 1, phase) for rule, action, step, phase in LOOP],
            id="a user turn takes a number",
        ),
        pytest.param([tool(error=True)] * 5, LOOP, id="equal errors"),
        pytest.param(
            [tool(result=f"cut {n}", result_sha="ab12") for n in range(5)],
            LOOP,
            id="cut results of one hash",
        ),
    ],
)
def test_what_is_known_to_be_equal_counts(
    steps: list[dict[str, Any]], expected: list[tuple[str, str, int, str]]
):
    run = replayed(*steps, given=BY_RESULT_AND_CALL)
    assert found(run) == expected
    assert run.tripped


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [tool()] * 5,
            [
                ("repeated_result", "warn", 3, "post"),
                ("no_novelty", "warn", 4, "post"),
                ("repeated_result", "abort", 5, "post"),
            ],
            id="equal results",
        ),
        pytest.param(
            [tool(error=True)] * 4,
            [
                ("repeated_result", "warn", 3, "post"),
                ("repeated_error", "warn", 3, "post"),
                ("no_novelty", "warn", 4, "post"),
                ("repeated_error", "abort", 4, "post"),
            ],
            id="equal errors of equal calls",
        ),
        pytest.param(
            [tool(arguments={"x": n}, error=True) for n in range(6)],
            [("repeated_error", "warn", 3, "post"), ("repeated_error", "abort", 6, "post")],
            id="equal errors of other calls",
        ),
        pytest.param(
            [tool(result=None)] * 8,
            [("repeated_call", "warn", 4, "pre"), ("repeated_call", "abort", 8, "pre")],
            id="results not recorded",
        ),
    ],
)
def test_what_the_default_policy_says_up_to_the_stop(
    steps: list[dict[str, Any]], expected: list[tuple[str, str, int, str]]
):
    assert found(replayed(*steps)) == expected


@pytest.mark.parametrize("before", [0, 1])
def test_equal_results_of_one_batch_count_when_they_come_back(before: int):
    run = replayed(*[turn()] * before, *[tool(batch=1)] * 5)
    by_result = [entry for entry in found(run) if entry[0] == "repeated_result"]
    assert by_result == [(rule, action, step + before, phase) for rule, action, step, phase in LOOP]


def test_the_run_is_counted_to_its_end_whatever_trips():
    run = replayed(*[turn(), tool()] * 8)
    assert (run.steps, run.model_calls, run.tool_calls) == (16, 8, 8)
    assert (run.input_tokens, run.output_tokens) == (800, 80)
    assert (run.run_id, run.source) == ("r", "source")


class TestSaved:
    def test_what_starts_after_a_trip_at_a_steps_end(self):
        run = replayed(*[turn(), tool()] * 8, given=BY_RESULT_AND_CALL)
        assert run.violations[-1].step == 10
        assert run.saved == Saved(steps=6, tokens=330, cost_usd=0.03)

    def test_the_step_refused_at_its_start_is_saved(self):
        run = replayed(*[turn()] * 4, given=Policy.none().with_limits(max_llm_calls=3))
        assert found(run) == [("llm_call_budget", "abort", 4, "pre")]
        assert run.saved == Saved(steps=1, tokens=110, cost_usd=0.01)

    def test_what_was_under_way_at_the_trip_is_not_saved(self):
        late = turn(batch=1, dt_s=50)
        policy = Policy.none().with_limits(max_duration_s=10)
        run = replayed(tool(batch=1, dt_s=20), late, turn(), given=policy)
        assert found(run) == [("time_budget", "abort", 2, "post")]
        assert run.saved == Saved(steps=1, tokens=110, cost_usd=0.01)

    def test_nothing_without_a_trip(self):
        assert replayed(turn(), tool(), turn()).saved == Saved()

    def test_sub_agents_are_no_steps_of_their_own(self):
        agent = {"type": "agent", "name": "child"}
        policy = Policy.none().with_limits(max_steps=1)
        run = replayed(tool(), tool(), agent, agent, given=policy)
        assert (run.steps, run.saved.steps) == (2, 1)


class TestPolicy:
    def test_a_lines_own_is_laid_over_the_given_one(self):
        given = Policy.none().with_limits(max_tool_calls=5)
        own_limits = {"limits": {"max_llm_calls": 2}}
        run = replayed(*[turn()] * 3, given=given)
        own = replayed(*[turn()] * 3, given=given, policy=own_limits)
        both = replayed(*[tool()] * 6, given=given, policy=own_limits)
        assert found(run) == []
        assert found(own) == [("llm_call_budget", "abort", 3, "pre")]
        assert found(both) == [("tool_call_budget", "abort", 6, "pre")]


def test_a_lines_policy_that_cannot_be_followed_is_an_error_of_the_line():
    with pytest.raises(ReplayError) as caught:
        replay_run(read_run('{"policy": {"limits": {"max_step": 1}}, "steps": []}'), Policy(), "f")
    assert str(caught.value).startswith("policy: limits.max_step: ")


class TestRuns:
    def test_where_run_changes_the_state_resets_and_the_numbers_are_sums(self):
        steps = [tool(run=run) for run in ("one", "two") for _ in range(4)]
        run = replayed(*steps, given=BY_RESULT_AND_CALL)
        assert found(run) == [
            ("repeated_result", "warn", 3, "post"),
            ("repeated_result", "warn", 7, "post"),
        ]
        assert (run.steps, run.tool_calls) == (8, 8)

    def test_a_trip_does_not_outlive_its_run(self):
        policy = Policy.none().with_limits(max_llm_calls=1)
        steps = [turn(run="one"), turn(run="one"), turn(run="two"), turn(run="three")]
        run = replayed(*steps, given=policy)
        assert found(run) == [("llm_call_budget", "abort", 2, "pre")]
        assert run.saved.steps == 1

    def test_steps_and_user_turns_that_do_not_say_belong_to_the_run_before(self):
        user = {"type": "user", "name": "user", "run": "other"}
        steps = [tool(run="one"), tool(), user, tool(run="one"), tool(run="one"), tool()]
        run = replayed(*steps, given=BY_RESULT_AND_CALL)
        assert found(run)[-1] == ("repeated_result", "abort", 6, "post")

    def test_the_status_is_that_of_the_last(self):
        done = turn(finish_reason="stop", result="done", tool_calls=[])
        assert replayed(turn(run=1), {**done, "run": 2}).status == "complete"
        assert (
            replayed({**done, "run": 1}, {**turn(run=2), "error": "x"}).status == "provider_error"
        )


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (turn(finish_reason="stop", result="done"), "complete"),
        (turn(finish_reason="stop", result=" "), "empty"),
        (turn(finish_reason="length", result="and so"), "truncated"),
        (turn(error="503"), "provider_error"),
        (tool(error=True), "tool_error"),
        (turn(finish_reason="tool_calls"), "running"),
    ],
)
@pytest.mark.parametrize("closing", [[], [{"type": "agent", "name": "invoke_agent"}]])
def test_status_is_how_the_recording_ended(
    last: dict[str, Any], closing: list[dict[str, Any]], status: str
):
    assert replayed(turn(), last, *closing).status == status


def test_time_is_that_of_the_file():
    policy = Policy.none().with_limits(max_duration_s=60)
    within = replayed(*[tool(dt_s=1, gap_s=5)] * 9, given=policy)
    late = replayed(*[tool(dt_s=1, gap_s=5)] * 11, given=policy)
    waiting = replayed(tool(dt_s=1, advance_s=70), tool(), given=policy)
    hanging = replayed(tool(dt_s=1), tool(dt_s=90), given=policy)
    assert found(within) == []
    assert found(late) == [("time_budget", "abort", 11, "pre")]
    assert found(waiting) == [("time_budget", "abort", 1, "post")]
    assert found(hanging) == [("time_budget", "abort", 2, "post")]


IDLE = Policy.from_mapping({"limits": {"max_idle_s": 5}}, base=Policy.none())
LONG = Policy.from_mapping({"limits": {"max_duration_s": 30}}, base=Policy.none())


class TestTimeAfterTheLastStep:
    @pytest.mark.parametrize(
        "last",
        [
            pytest.param(tool(ended=False, advance_s=50), id="time after it"),
            pytest.param(tool(ended=False, dt_s=50), id="its own time"),
            pytest.param(tool(advance_s=50), id="after one that ended"),
            pytest.param({"type": "user", "advance_s": 50}, id="after a person spoke"),
        ],
    )
    @pytest.mark.parametrize(("policy", "rule"), [(IDLE, "idle_run"), (LONG, "time_budget")])
    def test_limits_on_time_are_asked_to_the_end(
        self, last: dict[str, Any], policy: Policy, rule: str
    ):
        run = replayed(tool(), last, given=policy)
        assert found(run) == [(rule, "abort", 2 - (last["type"] == "user"), "post")]
        assert (run.tripped, run.saved.steps) == (True, 0)

    def test_less_time_than_the_limit_is_no_strike(self):
        assert found(replayed(tool(), tool(ended=False, advance_s=4), given=IDLE)) == []

    def test_a_run_that_its_last_turn_finished_is_over(self):
        over = turn(finish_reason="stop", tool_calls=[], advance_s=50)
        run = replayed(tool(), over, given=IDLE)
        assert (run.status, found(run)) == ("complete", [])

    def test_only_the_last_of_several_runs_is_waited_for(self):
        run = replayed(tool(run="a"), tool(run="b", ended=False, dt_s=50), given=IDLE)
        assert found(run) == [("idle_run", "abort", 2, "post")]


def test_what_an_agent_sums_up_is_saved_once():
    line = {"steps": [*[tool()] * 5, turn(), {**turn(), "type": "agent", "name": "sub"}]}
    priced = [entry for entry in line["steps"] if entry["type"] != "llm"]
    both, alone = (replayed(*steps, given=BY_RESULT_AND_CALL) for steps in (line["steps"], priced))
    assert (both.saved.tokens, both.saved.cost_usd) == (110, 0.01)
    assert (alone.saved.tokens, alone.saved.cost_usd) == (110, 0.01)
    twice = replayed(*priced, priced[-1], given=BY_RESULT_AND_CALL)
    assert (twice.saved.tokens, twice.input_tokens) == (110, 100), "the outer one is the sum"

"""What the reports teach, one fact a row: a case as it is, and with the one thing changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from otel_loopguard import LoopGuard, Step
from otel_loopguard.policy import Policy
from otel_loopguard.replay import read_run, replay_run
from otel_loopguard.replay.recorded_run import play_run
from tests.cases._reports import CASES

Data = dict[str, Any]
Change = Callable[[int, Data], Data]


def changed(name: str, change: Change | None, policy: Mapping[str, object] | None) -> str:
    """Return the line of a case after a change to each of its steps (counted from 0)."""
    data = json.loads(CASES[name].line)
    if change is not None:
        data["steps"] = [change(n, step) for n, step in enumerate(data["steps"])]
    if policy is not None:
        data["policy"] = policy
    return json.dumps(data)


def new_text(n: int, step: Data) -> Data:
    return {**step, "result": {**step["result"], "text": f"line {'abcdefgh'[n]}"}}


def no_error(_: int, step: Data) -> Data:
    return {**step, "error": None}


def other_command(n: int, step: Data) -> Data:
    if step["type"] == "llm":
        return step
    return {**step, "arguments": {"command": f"mvn test -pl {'abcdefgh'[n - 1]}"}, "result": f"{n}"}


def one_succeeds(n: int, step: Data) -> Data:
    return {**step, "result": "up", "error": None} if n == 4 else step


def own_cause(n: int, step: Data) -> Data:
    cause = ("refused", "no such host", "denied", "timed out", "reset", "gone", "busy", "full")
    return {**step, "error": cause[n % 8]}


def unrecorded(_: int, step: Data) -> Data:
    return {**step, "arguments": None, "result": None}


def same_result(_: int, step: Data) -> Data:
    return {**step, "result": "model a: 3 in stock"}


def unapproved(_: int, step: Data) -> Data:
    return {**step, "approved_by_user": False}


def one_agent(_: int, step: Data) -> Data:
    return {**step, "agent": "sub"}


def siblings(n: int, step: Data) -> Data:
    return {**step, "parent": None if n == 0 else "d1"}


def depth(most: int) -> Mapping[str, object]:
    return {"limits": {"max_agent_depth": most}}


_CACHE_APART = {
    "limits": {"max_cost_usd": 1.0},
    "usage": {
        "input_includes_cache": False,
        "price": {"input_per_m_usd": 3.0, "cache_read_per_m_usd": 0.3, "output_per_m_usd": 15.0},
    },
}

ROWS: Mapping[str, tuple[str, Change | None, Mapping[str, object] | None, object]] = {
    "times and process ids are no news": ("E03", None, None, ("repeated_result", 5)),
    "text is news": ("E03", new_text, None, None),
    "of a failure the error counts": ("E04", None, None, ("repeated_error", 4)),
    "of a success the output counts": ("E04", no_error, None, None),
    "equal calls of one batch are a loop": ("L08", None, None, ("repeated_result", 6)),
    "different calls of one batch are none": ("L08", other_command, None, None),
    "one cause over many tools": ("L41", None, None, ("repeated_error", 6)),
    "errors add up over tools": ("L41", own_cause, None, ("consecutive_errors", 7)),
    "a success ends the errors": ("L41", one_succeeds, None, None),
    "arguments that come late are no loop": ("O05", None, None, None),
    "what was not recorded equals nothing": ("O06", unrecorded, None, None),
    "empty arguments are known": ("O07", same_result, None, ("repeated_result", 5)),
    "and tell nothing where results differ": ("O07", None, None, None),
    "the second of three paid calls trips": ("B07", None, None, ("cost_budget", 2)),
    "cached tokens are priced once": ("O03", None, None, None),
    "cached tokens beside the input": ("O03", None, _CACHE_APART, ("cost_budget", 3)),
    "a sixth level is too deep": ("L33", None, None, ("agent_depth", 6)),
    "as deep as allowed": ("L33", None, depth(9), None),
    "one level deeper": ("L33", None, depth(8), ("agent_depth", 9)),
    "siblings are no depth": ("L33", siblings, None, None),
    "an agent's sum is no usage of its own": ("O01", None, None, None),
    "the calls below it are": (
        "O01",
        None,
        {"limits": {"max_total_tokens": 7000}},
        ("token_budget", 1),
    ),
    "a declared poll may repeat": ("F03", None, None, None),
    "an undeclared one may not": ("F03", None, {}, ("repeated_result", 5)),
    "an approved call may repeat": ("F15", None, None, None),
    "one that nobody approved may not": ("F15", unapproved, None, ("repeated_result", 5)),
    "cut turns are a loop of their own": ("L20", None, None, ("truncated_turns", 5)),
    "agents repeat each other": ("F12", None, None, None),
    "one agent repeats itself": ("F12", one_agent, None, ("cyclic_calls", 6)),
    "retries cannot reset the run's totals": ("B06", None, None, ("step_budget", 11)),
    "each attempt has totals of its own": (
        "B06",
        None,
        {"limits": {"max_steps": 10}, "scope": "agent"},
        None,
    ),
}


@pytest.mark.parametrize(
    ("name", "change", "policy", "expected"),
    [pytest.param(*row, id=fact) for fact, row in ROWS.items()],
)
def test_what_a_report_teaches(
    name: str, change: Change | None, policy: Mapping[str, object] | None, expected: object
) -> None:
    run = replay_run(read_run(changed(name, change, policy)), Policy(), "cases")
    trips = [(found.rule, found.step) for found in run.violations if found.action == "abort"]
    assert (trips[0] if trips else None) == expected


def test_the_price_of_cached_tokens_is_what_the_report_paid() -> None:
    played = play_run(read_run(CASES["O03"].line), Policy(), "cases")
    # 9,000 new, 115,000 cached and 200 written tokens a call, ten calls.
    assert played.cost_usd == pytest.approx(10 * (0.027 + 0.0345 + 0.003))


def test_usage_of_an_agent_counts_where_nothing_below_it_reported_any() -> None:
    def silent(_: int, step: Data) -> Data:
        kept = step if step["type"] == "agent" else {**step, "input_tokens": None}
        return kept if step["type"] == "agent" else {**kept, "output_tokens": None}

    run = replay_run(read_run(changed("O01", silent, None)), Policy(), "cases")
    assert (run.input_tokens, run.output_tokens) == (14_426, 771)


def test_the_state_of_a_tripped_run_does_not_kill_the_one_that_follows() -> None:
    """F27: the same call tripped the run before."""
    guard = LoopGuard(CASES["F27"].ruling)
    (step,) = (entry.step for entry in read_run(CASES["F27"].line).steps)
    assert step is not None
    for _ in range(5):
        guard.record(step)
    assert not guard.check(Step(kind="tool", name="other")).allowed
    assert guard.end().rule == "repeated_result"
    assert guard.check(step).action == "allow"
    assert guard.record(step).action == "allow"


def test_a_finished_run_is_not_failed_by_the_end_of_its_agent() -> None:
    policy = {"limits": {"max_total_tokens": 15_000}}
    run = replay_run(read_run(changed("O01", None, policy)), Policy(), "cases")
    assert [(found.rule, found.action) for found in run.violations] == [("token_budget", "warn")]

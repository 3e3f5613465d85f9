"""One table, one row per fact: under these rules, in a run that reads so, this is found.

How a run reads is told in `tests/unit/_words.py`.
"""

from __future__ import annotations

import pytest

from otel_loopguard.detectors import DETECTORS, RULES
from otel_loopguard.policy import Policy
from tests.unit._words import Found, found_in, stop, violations, warn


def rule(name: str, warn: int, abort: int) -> Policy:
    return Policy.from_mapping(
        {"rules": {name: {"warn": warn, "abort": abort}}}, base=Policy.none()
    )


CALLS = "tool_call_budget"
RESULT = "repeated_result"
CALL = "repeated_call"
CYCLE = "cyclic_calls"

result, call, cycle = rule(RESULT, 3, 5), rule(CALL, 4, 8), rule(CYCLE, 2, 3)
b_once_result = result.with_limits(max_calls_per_tool={"b": 1})
b_once_call = call.with_limits(max_calls_per_tool={"b": 1})
default = Policy()

TABLE: list[tuple[str, Policy, str, Found]] = [
    # repeated_result: equal calls with equal results since the last other success that was new.
    ("2 equal results", result, "a:1 a:1", []),
    ("3 equal results", result, "a:1 a:1 a:1", warn(RESULT, 3, 3, "post")),
    ("4 equal results", result, "a:1 a:1 a:1 a:1", warn(RESULT, 3, 3, "post")),
    (
        "5 equal results and more",
        result,
        "a:1 " * 9,
        warn(RESULT, 3, 3, "post") + stop(RESULT, 5, 5, "post"),
    ),
    ("equal results, turns between", result, "a:1 * a:1 . a:1", warn(RESULT, 5, 3, "post")),
    ("equal failures", result, "a!e a!e a!e", warn(RESULT, 3, 3, "post")),
    ("a failure is no result", result, "a:e a!e a:e a!e", []),
    ("other failures", result, "a!e a!f a!g a!h", []),
    ("polling", result, "a:1 a:2 a:3 a:4 a:5 a:6", []),
    ("results unknown", result, "aaaaa", []),
    ("nobody records", result, "- a a a a a", []),
    ("arguments unknown", result, "a(?):1 a(?):1 a(?):1 a(?):1 a(?):1", []),
    ("equal results, arguments late", result, "a:1 a:1 <a(?) >a:1", warn(RESULT, 3, 3, "post")),
    ("other arguments, equal results", result, "a(1):1 a(2):1 a(3):1 a(4):1", []),
    ("another success that is new resets", result, "a:1 a:1 b:1 a:1 a:1", []),
    ("so does a new answer", result, "a:1 a:1 a:2 a:1 a:1", []),
    ("so does one with unknown arguments", result, "a:1 a:1 b(?):1 a:1 a:1", []),
    ("so does one with an unknown result", result, "a:1 a:1 b a:1 a:1", []),
    ("what is not new does not", result, "b:1 a:1 a:1 b:1 a:1", warn(RESULT, 5, 3, "post")),
    ("nor what failed", result, "a:1 a:1 b!e a:1", warn(RESULT, 4, 3, "post")),
    ("nor what failed in the dark", result, "a:1 a:1 b(?)!e a:1", warn(RESULT, 4, 3, "post")),
    ("a failure between adds nothing", result, "a:1 a!e a:1 a!f", []),
    ("two in turn", result, "a:1 b:1 a:1 b:1 a:1 b:1", warn(RESULT, 6, 3, "post")),
    ("equal results for each agent", result, "x/a:1 y/a:1 x/a:1 y/a:1", []),
    ("others' news does not count", result, "x/a:1 y/b:1 x/a:1 x/a:1", warn(RESULT, 4, 3, "post")),
    ("approved calls are exempt", result, "+a:1 +a:1 +a:1 +a:1 +a:1", []),
    ("and do not reset", result, "a:1 +b:1 a:1 +c:1 a:1", warn(RESULT, 5, 3, "post")),
    (
        "nothing is new about a refused call that ran",
        b_once_result,
        "b:1 a:1 a:1 b:2 a:1",
        stop(CALLS, 4, 2) + warn(RESULT, 5, 3, "post"),
    ),
    ("one batch, equal results", result, "<a <a <a >a:1 >a:1 >a:1", warn(RESULT, 3, 3, "post")),
    # repeated_call: equal calls whose results are unknown, since the last other success.
    ("3 results unknown", call, "aaa", []),
    ("4 results unknown", call, "aaaa", warn(CALL, 4, 4)),
    ("7 results unknown", call, "aaaaaaa", warn(CALL, 4, 4)),
    ("8 results unknown and more", call, "aaaaaaaaaaa", warn(CALL, 4, 4) + stop(CALL, 8, 8)),
    ("nobody records at all", call, "- a a a a a a a a a", warn(CALL, 4, 4) + stop(CALL, 8, 8)),
    ("nobody records, turns between", call, "- a * a . a * a", warn(CALL, 7, 4)),
    ("turns are recorded, calls are not", call, "* <a * <a * <a * <a", warn(CALL, 8, 4)),
    ("such calls in one batch", call, "* <a <a <a <a <a <a * <a", warn(CALL, 9, 7)),
    ("calls in turn in one batch", call, "* <a <b <a <b * <b * <b", warn(CALL, 9, 4)),
    (
        "a refused call that ran",
        b_once_call,
        "b a a a b(2) a",
        stop(CALLS, 5, 2) + warn(CALL, 6, 4),
    ),
    (
        "a refused call that ran, nobody records",
        b_once_call,
        "- b a a a b(2) a",
        stop(CALLS, 5, 2) + warn(CALL, 6, 4),
    ),
    (
        "a refused call that ran, turns are recorded",
        b_once_call,
        "* <b <a <a <a <b(2) * <a",
        stop(CALLS, 6, 2) + warn(CALL, 8, 4),
    ),
    ("one batch whose results come", call, "* <a <a <a <a <a <a >a:1 >a:2 >a:3 a:4 a:5", []),
    ("the first result takes back", call, "<a <a <a >a:1 >a:2 >a:3 a:4 a:5", []),
    ("results known and equal", call, "a:1 a:1 a:1 a:1 a:1 a:1 a:1 a:1", []),
    ("results known and not equal", call, "a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8", []),
    ("failures are results", call, "a!e a!e a!e a!e", []),
    ("some known, the same call", call, "a a a:1 a a", warn(CALL, 5, 4)),
    ("known at the end", call, "a a a <a(?) >a", warn(CALL, 4, 4, "post")),
    ("all arguments unknown", call, "a(?) a(?) a(?) a(?) a(?)", []),
    ("nobody records arguments either", call, "- a(?) a(?) a(?) a(?) a(?)", []),
    ("another call that is new resets", call, "aaabaaa", []),
    ("so it does where nobody records", call, "- a a a b a a a", []),
    ("so do unknown arguments", call, "- a a a a(?) a a a", []),
    ("another known call does not", call, "b a a a b a", warn(CALL, 6, 4)),
    ("nor does a failed one", call, "a a a b!e a", warn(CALL, 5, 4)),
    ("unknown results for each agent", call, "x/a y/a x/a y/a x/a y/a", []),
    ("unknown results, others between", call, "x/a y/b x/a x/a y/c x/a", warn(CALL, 6, 4)),
    ("unknown results, approved", call, "+a +a +a +a +a a a a", []),
    # cyclic_calls: rounds of 2 to 8 calls, at least two of them different, nothing new in them.
    ("2 rounds short of one", cycle, "aba", []),
    ("2 rounds", cycle, "abab", warn(CYCLE, 4, 2)),
    ("3 rounds and more", cycle, "abababab", warn(CYCLE, 4, 2) + stop(CYCLE, 6, 3)),
    ("2 rounds, nobody records", cycle, "- a b a b", warn(CYCLE, 4, 2)),
    ("2 rounds of 3", cycle, "abcabc", warn(CYCLE, 6, 2)),
    ("2 rounds of 8", cycle, "abcdefgh" * 2, warn(CYCLE, 16, 2)),
    ("2 rounds of 9", cycle, "abcdefghi" * 2, []),
    ("one call is no cycle", cycle, "aaaaaaaaaaaaaaaaaa", []),
    ("two different ones in three are", cycle, "aabaab", warn(CYCLE, 6, 2)),
    ("rounds after many calls", cycle, "abcdefghijklmnopqropqr", warn(CYCLE, 22, 2)),
    ("rounds in the middle of a run", cycle, "xyabab", warn(CYCLE, 6, 2)),
    ("2 rounds, turns between", cycle, "a * b * a . b", warn(CYCLE, 7, 2)),
    ("2 rounds, equal results", cycle, "a:1 b:1 a:1 b:1", warn(CYCLE, 4, 2, "post")),
    ("2 rounds, equal failures", cycle, "a!e b!e a!e b!e", warn(CYCLE, 4, 2, "post")),
    ("rounds of news", cycle, "a:1 b:1 a:2 b:2 a:3 b:3 a:4 b:4", []),
    ("one new result in each round", cycle, "a:1 b:1 a:2 b:1 a:3 b:1 a:4 b:1", []),
    ("news begins rounds anew", cycle, "a:1 b:1 a:2 b:1 a:2", warn(CYCLE, 5, 2, "post")),
    ("result unknown after known ones", cycle, "a:1 b:1 a:1 b", warn(CYCLE, 4, 2, "post")),
    ("unknown arguments end a cycle", cycle, "a b a(?) b a", []),
    ("and where nobody records", cycle, "- a b a(?) b a", []),
    ("known at the end, a cycle", cycle, "a b a <b(?) >b", warn(CYCLE, 4, 2, "post")),
    ("no cycle of two agents", cycle, "x/a y/b x/a y/b x/a y/b", []),
    ("a cycle of one agent", cycle, "x/a y/c x/b y/d x/a y/e x/b", warn(CYCLE, 7, 2)),
    ("a cycle, approved calls", cycle, "a +c b a +d b", warn(CYCLE, 6, 2)),
    ("no cycle of approved calls", cycle, "+a +b +a +b +a +b", []),
    # The default policy says nothing about work.
    ("20 polls", default, " ".join(f"* a:{n}" for n in range(20)), []),
    ("reads and edits", default, "* a:1 * b(1):ok * a:2 * b(2):ok * a:3 * b(3):ok", []),
    ("twelve of a kind", default, " ".join(f"a({n}):ok" for n in range(12)), []),
    ("tries again and goes on", default, "a!e a:1 b!e b!e b:1 c:1 c:1 d:1", []),
    ("sub-agents that begin alike", default, "x/a:1 y/a:1 z/a:1 x/b:1 y/b:1 z/b:1", []),
    ("no limits by default", default, " ".join(f"* a({n}):{n} 60s" for n in range(300)), []),
]


@pytest.mark.parametrize(
    ("policy", "word", "expected"),
    [pytest.param(policy, word, expected, id=fact) for fact, policy, word, expected in TABLE],
)
def test_what_is_found(policy: Policy, word: str, expected: Found):
    assert found_in(policy, word) == expected


@pytest.mark.parametrize(
    ("word", "step", "name"),
    [
        ("* a:1 * a:1 * a:1 * a:1 * a:1 * a:1", 10, RESULT),
        ("* a:1 * b:1 * a:1 * b:1 * a:1 * b:1 * a:1", 12, CYCLE),
        ("- a a a a a a a a a", 8, CALL),
    ],
)
def test_what_stops_a_run_by_default(word: str, step: int, name: str):
    first, *_ = (v for v in violations(default, word) if v.action == "abort")

    assert (first.step, first.rule) == (step, name)


@pytest.mark.parametrize(
    ("policy", "word", "expected"),
    [
        (result, "a:1 a:1 a:1", (3, 2)),
        (result, "a:1 a:1 b!e a:1", (3, 2)),
        (call, "aaaa", (4, 3)),
        (cycle, "abab", (2, 2)),
        (cycle, "abcabc", (2, 3)),
    ],
)
def test_the_line_that_was_crossed_and_the_steps_that_only_repeated(
    policy: Policy, word: str, expected: tuple[float, int]
):
    *_, violation = violations(policy, word)

    assert (violation.threshold, violation.wasted_steps) == expected


OF_LIMITS = {
    "agent_depth": "MAX_AGENT_DEPTH_EXCEEDED",
    "consecutive_errors": "MAX_CONSECUTIVE_ERRORS_EXCEEDED",
    "context_budget": "MAX_CONTEXT_EXCEEDED",
    "cost_budget": "MAX_COST_EXCEEDED",
    "idle_run": "MAX_IDLE_EXCEEDED",
    "idle_turns": "MAX_TURNS_WITHOUT_TOOL_EXCEEDED",
    "llm_call_budget": "MAX_LLM_CALLS_EXCEEDED",
    "loop_pattern": "LOOP_PATTERN_DETECTED",
    "repeated_call_limit": "REPEATED_CALL_LIMIT_EXCEEDED",
    "same_tool": "SAME_TOOL_LIMIT_EXCEEDED",
    "step_budget": "MAX_STEPS_EXCEEDED",
    "step_rate": "MAX_STEP_RATE_EXCEEDED",
    "time_budget": "MAX_DURATION_EXCEEDED",
    "token_budget": "MAX_TOKENS_EXCEEDED",
    "tool_call_budget": "MAX_TOOL_CALLS_EXCEEDED",
}


def test_a_reason_is_the_name_of_its_rule_or_of_its_limit():
    reasons = {kind.rule: kind.reason for kind in DETECTORS}

    assert reasons == OF_LIMITS | {name: f"{name.upper()}_DETECTED" for name in RULES}

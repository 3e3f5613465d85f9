"""One table, one row per fact: under this limit, in a run that reads so, this is found.

How a run reads is told in `tests/unit/_words.py`.
"""

from __future__ import annotations

from datetime import date

import pytest

from otel_loopguard.detectors import DETECTORS, RULES
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step, StepKind
from tests.unit._words import Found, found_in, limit, stop, violations, warn

STEPS = "step_budget"
TURNS = "llm_call_budget"
CALLS = "tool_call_budget"
TIME = "time_budget"
IDLE = "idle_run"
TOKENS = "token_budget"
CONTEXT = "context_budget"
COST = "cost_budget"
DEPTH = "agent_depth"
RATE = "step_rate"
ERRORS = "consecutive_errors"
TALK = "idle_turns"
ROW = "repeated_call_limit"
SAME = "same_tool"
PATTERN = "loop_pattern"

steps_5, steps_2 = limit(max_steps=5), limit(max_steps=2)
turns_1, turns_2 = limit(max_llm_calls=1), limit(max_llm_calls=2)
calls_1, calls_2 = limit(max_tool_calls=1), limit(max_tool_calls=2)
a_once, a_twice = limit(max_calls_per_tool={"a": 1}), limit(max_calls_per_tool={"a": 2})
both_calls = limit(max_tool_calls=2, max_calls_per_tool={"a": 1})
seconds_10 = limit(max_duration_s=10)
row_3 = limit(max_repeated_calls=3)
names_2 = limit(max_repeated_calls=2, compare_arguments=False)
same_3 = limit(max_same_tool_calls=3)
window_2, window_4 = limit(loop_pattern_window=2), limit(loop_pattern_window=4)
window_6, window_7 = limit(loop_pattern_window=6), limit(loop_pattern_window=7)
window_8, window_256 = limit(loop_pattern_window=8), limit(loop_pattern_window=256)
MUCH = "x" * 201
"""A result that is not short: a step that brings it and is new is of no interest to most rules."""
idle_5 = limit(max_idle_s=5)
read_10, written_5 = limit(max_input_tokens=10), limit(max_output_tokens=5)
tokens_10 = limit(max_total_tokens=10)
all_tokens = limit(max_input_tokens=10, max_output_tokens=5, max_total_tokens=12)
context_10 = limit(max_context_tokens=10)
dollars_1, cents_30 = limit(max_cost_usd=1.0), limit(max_cost_usd=0.3)
depth_2 = limit(max_agent_depth=2)
rate_3 = limit(max_steps_per_minute=3)
errors_2 = limit(max_consecutive_errors=2)
talk_2 = limit(max_turns_without_tool=2)

TABLE: list[tuple[str, Policy, str, Found]] = [
    # Limits: of N the N-th is allowed and the next one is not, before it happens.
    ("5 of 5 steps", steps_5, "abcde", []),
    ("6 of 5 steps", steps_5, "abcdef", stop(STEPS, 6, 6)),
    ("reported once", steps_2, "abcdef", stop(STEPS, 3, 3)),
    ("model turns and custom steps are steps", steps_2, "* . a", stop(STEPS, 3, 3)),
    ("sub-agents are none", steps_2, "@ @ @ a @ a @", []),
    ("nor have they numbers", steps_2, "@ a @ a a", stop(STEPS, 3, 3)),
    ("approved calls are steps", steps_2, "+a +a +a", stop(STEPS, 3, 3)),
    ("2 of 2 turns", turns_2, "* a * a a . a @", []),
    ("3 of 2 turns", turns_2, "* a * *", stop(TURNS, 4, 3)),
    ("failed turns count", turns_1, "*!e *", stop(TURNS, 2, 2)),
    ("turns of all agents", turns_1, "x/* y/*", stop(TURNS, 2, 2)),
    ("2 of 2 calls", calls_2, "a * b * . @", []),
    ("3 of 2 calls", calls_2, "a b * c", stop(CALLS, 4, 3)),
    ("failed calls count", calls_1, "a!e a", stop(CALLS, 2, 2)),
    ("approved calls count", calls_1, "+a a", stop(CALLS, 2, 2)),
    ("calls with unknown arguments count", calls_1, "a(?) a(?)", stop(CALLS, 2, 2)),
    ("2 calls of a tool", a_twice, "a b b b a b", []),
    ("3 calls of a tool", a_twice, "a b a b a", stop(CALLS, 5, 3)),
    ("calls of a tool by all agents", a_once, "x/a y/a", stop(CALLS, 2, 2)),
    ("a tool before all", both_calls, "a a", stop(CALLS, 2, 2)),
    ("all before a tool", both_calls, "a b c", stop(CALLS, 3, 3)),
    # Time: late at equality, before a step and after it.
    ("in time", seconds_10, "a 9s b", []),
    ("late at equality", seconds_10, "a 10s b", stop(TIME, 2, 10)),
    ("late at the end of a call", seconds_10, "<a 10s >a", stop(TIME, 1, 10, "post")),
    ("late at the end of a turn", seconds_10, "<* 10s >*", stop(TIME, 1, 10, "post")),
    ("late sub-agent", seconds_10, "a 10s @", stop(TIME, 1, 10)),
    ("late custom step", seconds_10, "<. 11s >.", stop(TIME, 1, 11, "post")),
    ("late approved call", seconds_10, "<+a 11s >+a", stop(TIME, 1, 11, "post")),
    (
        "a finished run is not failed, but does not go on",
        seconds_10,
        "<$ 12s >$ a",
        warn(TIME, 1, 12, "post") + stop(TIME, 2, 12),
    ),
    # max_idle_s: silence between any two things, late at equality.
    ("not silent for long", idle_5, "a 4s b 4s <* 4s >* 4s @", []),
    ("silent at equality", idle_5, "a 5s b", stop(IDLE, 2, 5)),
    ("silent in a call", idle_5, "4s <a 5s >a", stop(IDLE, 1, 5, "post")),
    (
        "silent in a call that brings much",
        idle_5,
        f"a:{MUCH} <a(2) 5s >a(2):more{MUCH}",
        stop(IDLE, 2, 5, "post"),
    ),
    ("silent in a turn", idle_5, "<* 6s >*", stop(IDLE, 1, 6, "post")),
    ("silent before a sub-agent", idle_5, "a 5s @", stop(IDLE, 1, 5)),
    ("silent before a custom step", idle_5, "a 5s .", stop(IDLE, 2, 5)),
    ("a long call, others meanwhile", idle_5, "<a 4s b 4s c 4s >a", []),
    ("approved calls break the silence", idle_5, "a 4s +b 4s c", []),
    ("a finished run may rest", idle_5, "$ 9s a", []),
    # Tokens: the sum that is over is known at the end of a step.
    ("10 of 10 tokens read", read_10, "*#6,9 *#4,9 a", []),
    ("11 of 10 tokens read", read_10, "*#6,9 *#5,9 a", stop(TOKENS, 2, 11, "post")),
    ("5 of 5 tokens written", written_5, "*#90,3 *#90,2 a", []),
    ("6 of 5 tokens written", written_5, "*#90,3 *#90,3 a", stop(TOKENS, 2, 6, "post")),
    ("10 of 10 tokens", tokens_10, "*#6,1 *#2,1 a", []),
    ("11 of 10 tokens", tokens_10, "*#6,1 *#3,1 a", stop(TOKENS, 2, 11, "post")),
    ("read before written", all_tokens, "*#11,6", stop(TOKENS, 1, 11, "post")),
    ("written before all", all_tokens, "*#10,6", stop(TOKENS, 1, 6, "post")),
    ("all at last", all_tokens, "*#9,4", stop(TOKENS, 1, 13, "post")),
    ("tokens of all agents", tokens_10, "x/*#6,0 y/*#6,0", stop(TOKENS, 2, 12, "post")),
    ("tokens of tools", tokens_10, "a#6,0 .#6,0", stop(TOKENS, 2, 12, "post")),
    ("tokens that tools write", written_5, "a#0,3 b#0,3", stop(TOKENS, 2, 6, "post")),
    ("tokens of failed turns", tokens_10, "*#6,0!e *#6,0!e", stop(TOKENS, 2, 12, "post")),
    ("nobody says how many", tokens_10, "* * a", []),
    (
        "tokens of a finished run, which does not go on",
        tokens_10,
        "$#9,9 a",
        warn(TOKENS, 1, 18, "post") + stop(TOKENS, 2, 18),
    ),
    # max_context_tokens: one call by itself.
    ("each call reads 10 of 10", context_10, "*#10,99 *#10,99", []),
    ("a call reads 11 of 10", context_10, "*#10,0 *#11,0 a", stop(CONTEXT, 2, 11, "post")),
    ("what tools read is no context", context_10, "a#99,0 .#99,0", []),
    # max_cost_usd: the sum that is over is known at the end of a step.
    ("a dollar of one", dollars_1, "*=0.5 a=0.25 .=0.25 b", []),
    ("more than a dollar", dollars_1, "*=0.5 a=0.25 .=0.5 b", stop(COST, 3, 1.25, "post")),
    ("three times ten cents", cents_30, "*=0.1 *=0.1 *=0.1 a", []),
    ("and another cent", cents_30, "*=0.25 *=0.0625", stop(COST, 2, 0.3125, "post")),
    ("cost of all agents", dollars_1, "x/*=0.75 y/*=0.75", stop(COST, 2, 1.5, "post")),
    (
        "cost of a finished run, which does not go on",
        dollars_1,
        "$=1.5 a",
        warn(COST, 1, 1.5, "post") + stop(COST, 2, 1.5),
    ),
    # max_agent_depth: known before an agent starts. Agents have no numbers.
    ("agents 2 deep", depth_2, "x/@ y^x/@ y^x/@ z^x/@", []),
    ("agents 3 deep", depth_2, "x/@ y^x/@ z^y/@", stop(DEPTH, 0, 3)),
    ("agents side by side", depth_2, "x/@ y/@ z/@ v/@", []),
    ("what deep agents do", depth_2, "x/@ y^x/@ y^x/a y^x/*", []),
    # max_steps_per_minute: what is 60 seconds ago is over.
    ("3 steps in a minute", rate_3, "a * .", []),
    ("4 steps in a minute", rate_3, "a * . a", stop(RATE, 4, 4)),
    ("59 seconds", rate_3, "a 59s b c d", stop(RATE, 4, 4)),
    ("60 seconds", rate_3, "a 60s b c d", []),
    ("any 60 seconds", rate_3, "a 30s b c 30s d e", stop(RATE, 5, 4)),
    ("one at a time", rate_3, "a 20s b 20s c 20s d 20s e 20s f", []),
    ("sub-agents do not count", rate_3, "@ @ a @ b @ c @", []),
    ("steps of all agents", rate_3, "x/a y/a z/a v/a", stop(RATE, 4, 4)),
    # max_consecutive_errors: known when a step comes back.
    ("2 errors in a row", errors_2, "a!e b!f", []),
    ("3 errors in a row", errors_2, "a!e *!f b!g", stop(ERRORS, 3, 3, "post")),
    ("a success breaks the row", errors_2, "a!e b!f c b!f b!f", []),
    ("so does a turn's", errors_2, "a!e b!f * b!f b!f", []),
    ("custom steps and agents do not", errors_2, "a!e . @ b!f . c!g", stop(ERRORS, 5, 3, "post")),
    ("what is still out does not", errors_2, "a!e b!f <c d!g", stop(ERRORS, 4, 3, "post")),
    ("errors of each agent", errors_2, "x/a!e y/a!e x/a!e y/a!e", []),
    ("errors of one agent", errors_2, "x/a!e y/a x/a!e y/* x/a!e", stop(ERRORS, 5, 3, "post")),
    # max_turns_without_tool: turns that neither ask for a tool nor are followed by one.
    ("2 turns of talk", talk_2, "* *", []),
    ("3 turns of talk", talk_2, "* * *", stop(TALK, 3, 3, "post")),
    ("a tool between", talk_2, "* * a * * a!e * *", []),
    ("a turn that asks", talk_2, "* * *? * *", []),
    ("failed turns add nothing", talk_2, "* *!e * *!e", []),
    ("failed turns break nothing", talk_2, "* *!e * *!e *", stop(TALK, 5, 3, "post")),
    ("custom steps and agents break nothing", talk_2, "* . @ * . *", stop(TALK, 5, 3, "post")),
    ("talk of each agent", talk_2, "x/* y/* x/* y/*", []),
    ("tools of others", talk_2, "x/* y/a x/* y/a x/*", stop(TALK, 5, 3, "post")),
    ("talk that ends", talk_2, "* * $", warn(TALK, 3, 3, "post")),
    # max_repeated_calls: strictly consecutive, whatever comes back.
    ("3 in a row", row_3, "aaa", []),
    ("4 in a row", row_3, "aaaa", stop(ROW, 4, 4)),
    ("whatever comes back", row_3, "a:1 a:2 a!e a:4", stop(ROW, 4, 4)),
    ("turns between hide nothing", row_3, "a * a * . a @ * a", stop(ROW, 8, 4)),
    ("another call breaks", row_3, "aaabaaabaaa", []),
    ("a failed call breaks", row_3, "a a a b!e a", []),
    ("other arguments break", row_3, "a(1) a(1) a(1) a(2) a(1) a(1) a(1)", []),
    ("unknown arguments break", row_3, "a a a a(?) a a a", []),
    ("and break where nobody records", row_3, "- a a a a(?) a a a", []),
    ("unknown arguments equal nothing", row_3, "a(?) a(?) a(?) a(?) a(?)", []),
    ("arguments known at the end", row_3, "a a a <a(?) >a", stop(ROW, 4, 4, "post")),
    ("in the order of getting known", row_3, "a a <b(?) a >b a a a a", stop(ROW, 8, 4)),
    ("approved calls end the row", row_3, "a a +b a a a a", stop(ROW, 7, 4)),
    ("each agent has a row of its own", row_3, "x/a y/a x/a y/a x/a y/a", []),
    ("others do not break it", row_3, "x/a y/b x/a y/b x/a y/c x/a", stop(ROW, 7, 4)),
    ("names alone", names_2, "a(1) a(2) b a(3) a(?) a(4)", stop(ROW, 6, 3)),
    # max_same_tool_calls: names are enough.
    ("a tool 3 times", same_3, "a(1) a(2) a(3)", []),
    ("a tool 4 times", same_3, "a(1) a(2) a(?) a(4)", stop(SAME, 4, 4)),
    ("a tool, turns between", same_3, "a(1) * a(2) * . a(3) * a(4)", stop(SAME, 8, 4)),
    ("another tool breaks", same_3, "aaabaaa", []),
    ("a tool, for each agent", same_3, "x/a y/a x/a y/a x/a y/a", []),
    ("a tool, approved calls between", same_3, "a a +b a a a a", stop(SAME, 7, 4)),
    # loop_pattern_window: two full periods fill it, and part of another.
    ("window 6, period 2", window_6, "ababab", stop(PATTERN, 6, 6)),
    ("window 6, one call short", window_6, "ababa", []),
    ("window 6, period 3", window_6, "xabcabc", stop(PATTERN, 7, 6)),
    ("window 8, period 3 and a part", window_8, "abcabcab", stop(PATTERN, 8, 8)),
    ("window 8, period 3, one call short", window_8, "abcabca", []),
    ("window 8, period 4", window_8, "abcdabcd", stop(PATTERN, 8, 8)),
    ("window 8, not two periods of 5", window_8, "abcdeabcdeabc", []),
    ("window 7, period 3 and a part", window_7, "abcabca", stop(PATTERN, 7, 7)),
    ("window 7, not two periods of 4", window_7, "abcdabcd", []),
    ("window 4, period 1", window_4, "baaaa", stop(PATTERN, 5, 4)),
    ("window 2", window_2, "abbc", stop(PATTERN, 3, 2)),
    ("the widest window", window_256, "ab" * 128, stop(PATTERN, 256, 256)),
    ("a pattern, whatever comes back", window_4, "a:1 b:2 a:3 b!e", stop(PATTERN, 4, 4)),
    ("a pattern, turns between", window_4, "a * b * a . b", stop(PATTERN, 7, 4)),
    ("a pattern that breaks", window_4, "abacab", []),
    ("a pattern, unknown arguments", window_4, "a b a(?) b a b", []),
    ("a pattern, known at the end", window_4, "a b a <b(?) >b", stop(PATTERN, 4, 4, "post")),
    ("a pattern of one agent", window_4, "x/a y/c x/b y/d x/a x/b", stop(PATTERN, 6, 4)),
    ("no pattern of two agents", window_4, "x/a y/b x/a y/b", []),
    ("a pattern, approved calls", window_4, "a b +b a b a b", stop(PATTERN, 7, 4)),
]


@pytest.mark.parametrize(
    ("policy", "word", "expected"),
    [pytest.param(policy, word, expected, id=fact) for fact, policy, word, expected in TABLE],
)
def test_what_is_found(policy: Policy, word: str, expected: Found):
    assert found_in(policy, word) == expected


def test_every_limit_has_rows_in_which_it_speaks():
    spoken = {name for _, _, _, entries in TABLE for _, name, _, _, _ in entries}

    assert spoken == {detector.rule for detector in DETECTORS} - RULES


@pytest.mark.parametrize(
    ("policy", "word", "expected"),
    [
        (window_8, "abcabcab", (8, 5)),
        (window_4, "aaaa", (4, 3)),
        (steps_2, "abc", (2, 0)),
        (row_3, "aaaa", (3, 0)),
        (idle_5, "a 7s b", (5, 0)),
        (all_tokens, "*#11,0", (10, 0)),
        (all_tokens, "*#0,6", (5, 0)),
        (all_tokens, "*#9,4", (12, 0)),
        (context_10, "*#12,0", (10, 0)),
        (cents_30, "*=0.5", (0.3, 0)),
        (depth_2, "x/@ y^x/@ z^y/@", (2, 0)),
        (rate_3, "abcd", (3, 0)),
        (errors_2, "a!e a!e a!e", (2, 0)),
        (talk_2, "* * *", (2, 0)),
    ],
)
def test_the_line_that_was_crossed_and_the_steps_that_only_repeated(
    policy: Policy, word: str, expected: tuple[float, int]
):
    *_, violation = violations(policy, word)

    assert (violation.threshold, violation.wasted_steps) == expected


def test_what_a_violation_says_of_the_step():
    (tool,) = violations(window_2, "x/a x/a")
    (turn,) = violations(turns_1, "* *")

    assert (tool.kind, tool.tool, tool.agent) == ("tool", "a", "x")
    assert tool.message == (
        "loop_pattern: tool 'a' by agent 'x' at step 2: 2 against a threshold of 2 (stop)"
    )
    assert (turn.kind, turn.tool, turn.agent) == ("llm", "", "")
    assert turn.message == (
        "llm_call_budget: llm step at step 2: 2 against a threshold of 1 (stop)"
    )


@pytest.mark.parametrize(
    ("policy", "spent"),
    [
        (tokens_10, Step(kind="llm", input_tokens=6, output_tokens=5)),
        (dollars_1, Step(kind="llm", cost_usd=1.5)),
    ],
)
@pytest.mark.parametrize("kind", ["llm", "tool", "agent", "custom"])
def test_what_is_spent_is_spent_for_every_later_step(policy: Policy, spent: Step, kind: StepKind):
    guard = LoopGuard(policy)

    assert not guard.record(spent).allowed
    assert not guard.check(Step(kind=kind)).allowed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a,Sb", "c"], ["a", "b,Sc"]),
        ({"a": 1}, {"a": "1"}),
        ({"a": True}, {"a": 1}),
        ({}, None),
        ("", None),
        ({"when": date(2024, 1, 1)}, {"when": date(2024, 1, 2)}),
        ({1, 2}, {1, 3}),
    ],
)
def test_arguments_that_look_alike_are_different(one: object, other: object):
    guard = LoopGuard(limit(max_repeated_calls=1))

    for arguments in (one, other, one):
        assert guard.check(Step(kind="tool", name="a", arguments=arguments)).allowed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, '{ "a": 1.0 }'),
        ({"when": date(2024, 1, 1)}, {"when": date(2024, 1, 1)}),
        ({1, 2}, {2, 1}),
        ("caf\u00e9", "cafe\u0301"),
        ({}, "{}"),
    ],
)
def test_arguments_that_look_different_are_alike(one: object, other: object):
    guard = LoopGuard(limit(max_repeated_calls=1))

    assert guard.check(Step(kind="tool", name="a", arguments=one)).allowed
    assert not guard.check(Step(kind="tool", name="a", arguments=other)).allowed


def test_two_tools_with_the_same_arguments_are_different_calls():
    guard = LoopGuard(limit(max_repeated_calls=1))

    assert guard.check(Step(kind="tool", name="a", arguments={})).allowed
    assert guard.check(Step(kind="tool", name="b", arguments={})).allowed

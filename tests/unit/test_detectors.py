"""One table, one row per fact: under these rules, in a run that reads so, this is found.

A run is a word of steps. `a` is a call of tool `a` whose result is unknown, `a:1` one that answers
1, `a!e` one that fails with `e`; `a(x)` has the arguments `x`, `a(?)` unknown ones; `x/a` is called
by agent `x`, `+a` was approved by a person. `*` is a model turn, `$` one that finishes the run, `.`
a custom step, `@` a sub-agent. `5s` lets five seconds pass. `<a` only starts a step, `>a` only ends
one, and in a word that begins with `-` nobody records anything. A word of letters has no spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Violation
from otel_loopguard.detectors import DETECTORS
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step, StepKind

TOKEN = re.compile(
    r"(?P<part>[<>]?)(?P<approved>\+?)((?P<agent>\w+)/)?(?P<name>\w+|[*$.@])"
    r"(\((?P<arguments>[^)]*)\))?(:(?P<result>\S+)|!(?P<error>\S+))?"
)
KINDS: Mapping[str, StepKind] = {"*": "llm", "$": "llm", ".": "custom", "@": "agent"}

Found = list[tuple[int, str, str, str, float]]


def violations(policy: Policy, word: str) -> Iterator[Violation]:
    now_s = 0.0
    guard = LoopGuard(policy, clock=lambda: now_s)
    tokens = word.removeprefix("- ").split()
    for token in list(word) if word.isalpha() else tokens:
        if seconds := re.fullmatch(r"(\d+)s", token):
            now_s += int(seconds[1])
            continue
        read = TOKEN.fullmatch(token)
        assert read, token
        step = step_of(read)
        if read["part"] != ">":
            yield from guard.check(step, commit=True).violations
        if read["part"] != "<" and not word.startswith("- "):
            yield from guard.record(step).violations


def step_of(read: re.Match[str]) -> Step:
    return Step(
        kind=KINDS.get(read["name"], "tool"),
        name=read["name"],
        arguments=UNKNOWN if read["arguments"] == "?" else {"of": read["arguments"]},
        result=UNKNOWN if read["result"] is None else read["result"],
        error=read["error"],
        agent=read["agent"] or "",
        approved=bool(read["approved"]),
        output="done" if read["name"] == "$" else UNKNOWN,
        tool_calls=() if read["name"] == "$" else UNKNOWN,
        finish_reasons=("stop",) if read["name"] == "$" else (),
    )


def rule(name: str, warn: int, abort: int) -> Policy:
    return Policy.from_mapping(
        {"rules": {name: {"warn": warn, "abort": abort}}}, base=Policy.none()
    )


def found(name: str, *entries: tuple[int, str, str, float]) -> Found:
    return [(step, name, action, phase, count) for step, action, phase, count in entries]


limit = Policy.none().with_limits
STEPS = "step_budget"
TURNS = "llm_call_budget"
CALLS = "tool_call_budget"
TIME = "time_budget"
ROW = "repeated_call_limit"
SAME = "same_tool"
PATTERN = "loop_pattern"
RESULT = "repeated_result"
CALL = "repeated_call"
CYCLE = "cyclic_calls"


def stop(name: str, step: int, count: float, phase: str = "pre") -> Found:
    return found(name, (step, "abort", phase, count))


def warn(name: str, step: int, count: float, phase: str = "pre") -> Found:
    return found(name, (step, "warn", phase, count))


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
result, call, cycle = rule(RESULT, 3, 5), rule(CALL, 4, 8), rule(CYCLE, 2, 3)
b_once_result = result.with_limits(max_calls_per_tool={"b": 1})
b_once_call = call.with_limits(max_calls_per_tool={"b": 1})
default = Policy()

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
    ("approved calls are passed over", row_3, "a a +b a +a a", stop(ROW, 6, 4)),
    ("each agent has a row of its own", row_3, "x/a y/a x/a y/a x/a y/a", []),
    ("others do not break it", row_3, "x/a y/b x/a y/b x/a y/c x/a", stop(ROW, 7, 4)),
    ("names alone", names_2, "a(1) a(2) b a(3) a(?) a(4)", stop(ROW, 6, 3)),
    # max_same_tool_calls: names are enough.
    ("a tool 3 times", same_3, "a(1) a(2) a(3)", []),
    ("a tool 4 times", same_3, "a(1) a(2) a(?) a(4)", stop(SAME, 4, 4)),
    ("a tool, turns between", same_3, "a(1) * a(2) * . a(3) * a(4)", stop(SAME, 8, 4)),
    ("another tool breaks", same_3, "aaabaaa", []),
    ("a tool, for each agent", same_3, "x/a y/a x/a y/a x/a y/a", []),
    ("a tool, approved calls between", same_3, "a a +b a a", stop(SAME, 5, 4)),
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
    ("a pattern, approved calls", window_4, "a +a b +b a b", stop(PATTERN, 6, 4)),
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
    # The default policy.
    (
        "a call that gets nowhere",
        default,
        "* a:1 * a:1 * a:1 * a:1 * a:1 * a:1",
        warn(RESULT, 6, 3, "post") + stop(RESULT, 10, 5, "post"),
    ),
    (
        "two calls that get nowhere",
        default,
        "* a:1 * b:1 * a:1 * b:1 * a:1 * b:1",
        warn(CYCLE, 8, 2, "post") + warn(RESULT, 12, 3, "post") + stop(CYCLE, 12, 3, "post"),
    ),
    ("nobody records a thing", default, "- a a a a a a a a", warn(CALL, 4, 4) + stop(CALL, 8, 8)),
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
    assert [(v.step, v.rule, v.action, v.phase, v.count) for v in violations(policy, word)] == (
        expected
    )


def test_every_rule_has_rows_in_which_it_speaks():
    spoken = {name for _, _, _, entries in TABLE for _, name, _, _, _ in entries}

    assert spoken == {detector.rule for detector in DETECTORS}


@pytest.mark.parametrize(
    ("policy", "word", "expected"),
    [
        (result, "a:1 a:1 a:1", (3, 2)),
        (result, "a:1 a:1 b!e a:1", (3, 2)),
        (call, "aaaa", (4, 3)),
        (cycle, "abab", (2, 2)),
        (cycle, "abcabc", (2, 3)),
        (window_8, "abcabcab", (8, 5)),
        (window_4, "aaaa", (4, 3)),
        (steps_2, "abc", (2, 0)),
        (row_3, "aaaa", (3, 0)),
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

"""One table for the rules that look at what came of a step: a run that reads so, this is found.

A run is a word of steps, filled with facts as the engine fills them. `a:1` is a call of tool `a`
that answers 1, `a` one that answers something unknown, `a!e` one that fails with `e`, `a!` one that
fails without a word; `a(x)` has the arguments `x`, `a(?)` unknown ones; `x/a` is called by agent
`x`. `a:-` finds nothing. `*:hi` is a model turn that says `hi`, `*` one whose output is unknown,
`*!e` a failed one, `$` one that is known to have finished the run; `@` is a sub-agent that ends.
What follows is a flag: `~` has nearly the arguments of the call before, `/` was cut by the token
limit, `?` asks for tools or calls an unknown one, `^` comes after a word of a person, `&1`
belongs to batch 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from otel_loopguard.detectors._base import REMEMBERED, Detector, Facts, Turn
from otel_loopguard.detectors.agent_handoff_cycle import AgentHandoffCycle
from otel_loopguard.detectors.extra_turn import ExtraTurn
from otel_loopguard.detectors.no_novelty import NoNovelty
from otel_loopguard.detectors.repeated_error import RepeatedError
from otel_loopguard.detectors.repeated_output import RepeatedOutput
from otel_loopguard.detectors.revisited_results import RevisitedResults
from otel_loopguard.detectors.truncated_turns import TruncatedTurns
from otel_loopguard.detectors.unchanged_result import UnchangedResult
from otel_loopguard.detectors.unknown_tool import UnknownTool
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.settings import Limits, Settings, Thresholds, ToolOptions
from otel_loopguard.steps import Step, StepKind, ToolCall

TOKEN = re.compile(
    r"((?P<agent>\w+)/)?(?P<name>\w+|[*$@])(\((?P<arguments>[^)]*)\))?"
    r"(:(?P<result>[\w-]+)|!(?P<error>\w*))?(?P<flags>[~/?^]*)(&(?P<batch>\d+))?"
)
KINDS: dict[str, StepKind] = {"*": "llm", "$": "llm", "@": "agent"}

Found = list[tuple[int, str, float]]
"""Step, action and count."""


def facts_of(word: str) -> Iterator[Facts]:
    """Read a word: what is known of each step at its end."""
    seen: dict[str, set[object]] = {}
    for token in word.split():
        read = TOKEN.fullmatch(token)
        assert read, token
        name, agent, flags = read["name"], read["agent"] or "", read["flags"]
        kind, result, error = KINDS.get(name, "tool"), read["result"], read["error"]
        failed, call, outcome, novel, turn = error is not None, None, None, True, None
        if kind == "tool":
            call = None if read["arguments"] == "?" else hash((agent, name, read["arguments"]))
            known = call is not None and (result or error) is not None
            outcome = hash((call, result, error)) if known else None
            key = outcome or call
            had = seen.setdefault(agent, set())
            novel = key is None or key not in had
            had.add(key)
        elif kind == "llm" and not failed:
            final = name == "$"
            text = result or ("done" if final else None)
            turn = Turn(None if text is None else hash(text), "/" in flags, final, "?" in flags)
        yield Facts(
            kind,
            name,
            agent,
            0.0,
            call,
            outcome,
            pending=False,
            failed=failed,
            novel=novel,
            result=hash((agent, name, result)) if kind == "tool" and result else None,
            error=hash(error) if error else None,
            nothing=result == "-",
            near="~" in flags,
            batch=int(read["batch"]) if read["batch"] else None,
            unknown_tool=kind == "tool" and "?" in flags,
            turn=turn,
            spoken="^" in flags,
        )


def said_of(rule: type[Detector], word: str, thresholds: Thresholds) -> Found:
    """Return what is found first at each level in a run that nothing stops."""
    settings = Settings(Limits(), {rule.rule: thresholds})
    detectors: dict[str, Detector] = {}
    said: dict[str, tuple[int, str, float]] = {}
    for number, facts in enumerate(facts_of(word), 1):
        if facts.kind not in rule.kinds:
            continue
        key = facts.agent if rule.reach == "agent" else ""
        detector = detectors.get(key) or rule.of(settings)
        assert detector is not None
        detectors[key] = detector
        started = Facts(facts.kind, facts.name, facts.agent, 0.0, facts.call, spoken=facts.spoken)
        for known in (started, facts) if rule.foresees else (facts,):
            if finding := detector.check(known):
                said.setdefault(finding.action, (number, finding.action, finding.count))
        detector.commit(facts)
    return list(said.values())


def many(part: str, times: int) -> str:
    """Return a part again and again, its `#` counted up."""
    return " ".join(part.replace("#", str(number)) for number in range(1, times + 1))


REVISITED, NOVELTY, UNCHANGED = RevisitedResults, NoNovelty, UnchangedResult
ERROR, OUTPUT, CUT = RepeatedError, RepeatedOutput, TruncatedTurns
UNKNOWN_TOOL, EXTRA, HANDOFF = UnknownTool, ExtraTurn, AgentHandoffCycle

LINES: dict[type[Detector], Thresholds] = {
    REVISITED: Thresholds(warn=4, abort=7),
    NOVELTY: Thresholds(warn=3, abort=5),
    UNCHANGED: Thresholds(warn=4, abort=8),
    ERROR: Thresholds(warn=3, abort=6),
    OUTPUT: Thresholds(warn=3, abort=5),
    CUT: Thresholds(warn=2, abort=3),
    UNKNOWN_TOOL: Thresholds(warn=3, abort=5),
    EXTRA: Thresholds(warn=1),
    HANDOFF: Thresholds(warn=3, abort=6),
}

W, A = "warn", "abort"
ROUND = "x/*:to_y y/*:to_x"
"""Two agents that hand over to each other; the first round is new, so the count begins in it."""

TABLE: list[tuple[str, type[Detector], str, Found]] = [
    # revisited_results
    ("scattered repeats", REVISITED, "a:1 " + many("a:1 n#:1", 5), [(8, W, 4)]),
    ("7 of 10", REVISITED, "a:1 b:1 c:1 " + many("a:1 b:1 n#:1 c:1", 3), [(8, W, 4), (12, A, 7)]),
    ("news does not reset", REVISITED, "a:1 a:1 a:1 n:1 m:1 a:1 o:1 a:1", [(8, W, 4)]),
    ("the window moves on", REVISITED, "a:1 a:1 a:1 a:1 " + many("n#:1", 7) + " a:1", []),
    ("9 between leave 2", REVISITED, "a:1 a:1 a:1 a:1 " + many("n#:1", 6) + " a:1", [(11, W, 4)]),
    ("unknown results have no place", REVISITED, "a:1 " + many("a:1 b c d", 4), [(14, W, 4)]),
    ("other results are no repeats", REVISITED, many("a:#", 20), []),
    ("failures repeat too", REVISITED, many("a!e", 5), [(5, W, 4)]),
    ("one agent does not repeat another", REVISITED, many("x#/a:1", 9), []),
    ("different repeats of one batch count", REVISITED, many("a:1 b:1 c:1&1 d:1", 2), [(8, W, 4)]),
    # no_novelty
    ("old steps in another order", NOVELTY, "a:1 b:1 c:1 b:1 a:1 c:1", [(6, W, 3)]),
    ("5 old steps", NOVELTY, "a:1 b:1 b:1 a:1 a:1 b:1 b:1", [(5, W, 3), (7, A, 5)]),
    ("a new failure ends it", NOVELTY, "a:1 a:1 a:1 b!e a:1 a:1", []),
    ("a known failure does not", NOVELTY, "a!e a!e a!e a!e", [(4, W, 3)]),
    ("a known call without result is passed over", NOVELTY, "b a:1 a:1 a:1 b a:1", [(6, W, 3)]),
    ("a new one ends it", NOVELTY, "a:1 a:1 a:1 b a:1 a:1", []),
    ("so do unknown arguments", NOVELTY, "a:1 a:1 a:1 b(?):1 a:1 a:1", []),
    ("model turns do not", NOVELTY, "a:1 a:1 a:1 *:hi a:1", [(5, W, 3)]),
    # unchanged_result
    ("nothing found", UNCHANGED, many("a(#):-", 8), [(4, W, 4), (8, A, 8)]),
    ("nearly equal arguments", UNCHANGED, "a(1):1 " + many("a(2#):1~", 7), [(4, W, 4), (8, A, 8)]),
    ("different arguments, full answers", UNCHANGED, many("a(#):ok", 20), []),
    ("a different question begins anew", UNCHANGED, "a(0):1 a(1):1~ a(2):1 a(3):1~ a(4):1~", []),
    ("another answer does too", UNCHANGED, "a(1):- a(2):- a(3):- a(4):1 a(5):-", []),
    ("a failure does too", UNCHANGED, "a(1):- a(2):- a(3):- a(4)!e a(5):-", []),
    ("an unknown answer does too", UNCHANGED, "a(1):- a(2):- a(3):- a(4) a(5):-", []),
    ("equal calls are left to others", UNCHANGED, many("a:-", 20), []),
    (
        "they do not break",
        UNCHANGED,
        "a(1):- a(2):- a(2):- a(2):- a(3):- a(4):-",
        [(6, W, 4)],
    ),
    ("unknown arguments do not add", UNCHANGED, many("a(?):-", 20), []),
    ("nor break", UNCHANGED, "a(1):- a(2):- a(?):- a(3):- a(4):-", [(5, W, 4)]),
    ("a batch counts once", UNCHANGED, many("a(#):-&1", 9), []),
    (
        "each batch counts",
        UNCHANGED,
        "a(1):-&1 a(2):-&1 a(3):-&2 a(4):-&2 a(5):-&3 a(6):-&4",
        [(6, W, 4)],
    ),
    ("other tools between", UNCHANGED, many("a(#):- b(#):#", 4), [(7, W, 4)]),
    ("tools have rows of their own", UNCHANGED, many("a(#):- b(#):-", 3), []),
    # repeated_error
    ("other arguments, same error", ERROR, many("a(#)!e", 6), [(3, W, 3), (6, A, 6)]),
    ("same arguments too", ERROR, many("a!e", 4), [(3, W, 3), (4, A, 4)]),
    (
        "4 equal at the end of others",
        ERROR,
        "a(1)!e a(2)!e a(2)!e a(2)!e a(3)!e",
        [(3, W, 3)],
    ),
    ("unknown arguments are not equal", ERROR, many("a(?)!e", 5), [(3, W, 3)]),
    ("another error restarts", ERROR, "a(1)!e a(2)!e a(3)!f a(4)!e a(5)!e", []),
    ("so does one without a word", ERROR, "a(1)!e a(2)!e a(3)! a(4)!e a(5)!e", []),
    ("failures without a word", ERROR, many("a!", 9), []),
    ("a new success ends it", ERROR, "a(1)!e a(2)!e b:1 a(3)!e a(4)!e", []),
    ("one nobody can judge ends it", ERROR, "b b a(1)!e a(2)!e b a(3)!e a(4)!e", []),
    ("an old success does not", ERROR, "b:1 a(1)!e a(2)!e b:1 a(3)!e", [(5, W, 3)]),
    ("model turns do not", ERROR, "a(1)!e *:x a(2)!e *:y a(3)!e", [(5, W, 3)]),
    ("over different tools", ERROR, many("t#!e", 6), [(3, W, 3), (6, A, 6)]),
    ("with model turns between", ERROR, "a!e *:x b!e *:y c!e", [(5, W, 3)]),
    ("over different agents", ERROR, "x/a!e y/b!e z/c!e", [(3, W, 3)]),
    ("another error of another tool", ERROR, "a!e b!f a(1)!e b!g a(2)!e", [(5, W, 3)]),
    ("agents have rows of their own", ERROR, "x/a(1)!e y/b!f x/a(2)!e y/c:1 x/a(3)!e", [(5, W, 3)]),
    ("another agent's success", ERROR, "x/a!e x/b!e y/c:1 x/d!e", []),
    ("a batch counts once", ERROR, many("a(#)!e&1", 9), []),
    ("over different tools too", ERROR, many("t#!e&1", 9), []),
    ("equal calls of a batch count", ERROR, many("a!e&1", 4), [(3, W, 3), (4, A, 4)]),
    ("failed model calls", ERROR, many("*!e", 6), [(3, W, 3), (6, A, 6)]),
    ("of each agent", ERROR, many("x/*!e y/*!e", 2), []),
    ("a model turn ends them", ERROR, "*!e *!e *:hi *!e *!e", []),
    ("a tool's error is not the model's", ERROR, "a!e *!e b!e", []),
    # repeated_output
    ("the same words", OUTPUT, many("*:hi", 5), [(3, W, 3), (5, A, 5)]),
    ("other words", OUTPUT, "*:hi *:hi *:ho *:hi *:hi", []),
    ("unknown ones neither add nor break", OUTPUT, "*:hi * *:hi * *:hi", [(5, W, 3)]),
    ("nor do failed calls", OUTPUT, "*:hi *!e *:hi *!e *:hi", [(5, W, 3)]),
    ("nothing but unknown ones", OUTPUT, many("*", 9), []),
    ("news between", OUTPUT, many("*:go a(#):#", 9), []),
    ("a new failure between", OUTPUT, many("*:go a(#)!e", 9), []),
    ("results that nobody knows between", OUTPUT, many("*:go a", 9), []),
    ("an old result between", OUTPUT, "a:1 " + many("*:go a:1", 3), [(6, W, 3)]),
    ("a person between", OUTPUT, many("*:hello^", 9), []),
    ("of each agent", OUTPUT, many("x/*:hi y/*:hi", 2), []),
    # truncated_turns
    ("cut turns", CUT, "*:a/ *:b/ *:c/", [(2, W, 2), (3, A, 3)]),
    ("tools between", CUT, "*:a/ a:1 *:b/ b:1 */", [(3, W, 2), (5, A, 3)]),
    ("a whole turn between", CUT, "*:a/ *:b *:c/ * *:d/", []),
    ("a failed call between", CUT, "*/ *!e */", [(3, W, 2)]),
    ("of each agent", CUT, "x/*/ y/*/", []),
    # unknown_tool
    ("made-up tools", UNKNOWN_TOOL, many("t#!e#?", 5), [(3, W, 3), (5, A, 5)]),
    ("arguments that cannot be read", UNKNOWN_TOOL, many("a(#)!e?", 5), [(3, W, 3), (5, A, 5)]),
    ("a success is none", UNKNOWN_TOOL, many("a(#):1?", 9), []),
    ("a success between", UNKNOWN_TOOL, "a!e? b!e? c:1 d!e? e!e?", []),
    ("a failure between", UNKNOWN_TOOL, "a!e? b!e? c!e d!e?", [(4, W, 3)]),
    ("a batch counts once", UNKNOWN_TOOL, many("t#!e?&1", 9), []),
    ("each batch counts", UNKNOWN_TOOL, "a!e?&1 b!e?&1 c!e?&2 d!e?&3", [(4, W, 3)]),
    ("equal calls of a batch count", UNKNOWN_TOOL, many("a!e?&1", 3), [(3, W, 3)]),
    # extra_turn
    ("after the last turn", EXTRA, "a:1 $ *", [(3, W, 1)]),
    ("in an agent that asked for a tool only", EXTRA, "*? $ *", [(3, W, 1)]),
    ("in one that never acts", EXTRA, "$ $ $", []),
    ("a tool between", EXTRA, "a:1 $ a:2 *", []),
    ("a sub-agent between", EXTRA, "a:1 $ @ *", []),
    ("a person between", EXTRA, "a:1 $ *^", []),
    ("a failed attempt between", EXTRA, "a:1 $ *!e *", [(3, W, 1)]),
    ("after a turn that did not finish", EXTRA, "a:1 * *:hi *", []),
    ("another agent", EXTRA, "x/a:1 x/$ y/a:1 y/*", []),
    # agent_handoff_cycle
    ("rounds", HANDOFF, many(ROUND, 7), [(7, W, 3), (13, A, 6)]),
    ("rounds of three", HANDOFF, many("x/*:no y/*:no z/*:no", 4), [(9, W, 3)]),
    ("with old results", HANDOFF, many("x/*:no x/a:1 y/*:no y/b:1", 4), [(13, W, 3)]),
    ("new words", HANDOFF, many("x/*:a# y/*:b#", 20), []),
    ("new results", HANDOFF, many("x/*:go x/a:# y/*:ok", 20), []),
    ("unknown words", HANDOFF, many("x/* y/*", 20), []),
    ("unknown results", HANDOFF, many("x/*:go x/a y/*:ok", 20), []),
    ("a person between", HANDOFF, many("x/*:hello^ y/*:hello", 20), []),
    ("failed calls bring nothing", HANDOFF, many("x/*!e y/*!e", 3), [(6, W, 3)]),
    ("nameless steps hand nothing over", HANDOFF, many("x/*:no *:no", 20), []),
    ("but may bring something", HANDOFF, many("x/*:no y/*:no a:#", 20), []),
    ("a sub-agent that ends", HANDOFF, many("x/*:no z/@ y/*:no", 3), [(9, W, 3)]),
    ("one agent", HANDOFF, many("x/*:no", 20), []),
]


@pytest.mark.parametrize(
    ("rule", "word", "expected"),
    [row[1:] for row in TABLE],
    ids=[f"{row[1].rule}-{row[0]}" for row in TABLE],
)
def test_what_is_found(rule: type[Detector], word: str, expected: Found):
    assert said_of(rule, word, LINES[rule]) == expected


@pytest.mark.parametrize("rule", LINES, ids=lambda rule: rule.rule)
def test_a_rule_without_thresholds_is_off(rule: type[Detector]):
    assert rule.of(Settings(Limits(), {})) is None
    assert rule.of(Settings(Limits(), {rule.rule: Thresholds()})) is None


@pytest.mark.parametrize("others", [REMEMBERED - 1, REMEMBERED])
@pytest.mark.parametrize(
    ("rule", "first", "other", "last"),
    [
        (UNCHANGED, "a(1):- a(2):- a(3):- ", "t#:1", " a(4):-"),
        (ERROR, "a(1)!e a(2)!e ", "t#!f#", " a(3)!e"),
        (HANDOFF, "x/*:no y/*:no ", "y/*:w#", " x/*:no y/*:no x/*:no y/*:no x/*:no"),
    ],
    ids=["tools", "errors", "outputs"],
)
def test_what_is_least_recent_goes_first(
    rule: type[Detector], first: str, other: str, last: str, others: int
):
    said = said_of(rule, first + many(other, others) + last, LINES[rule])

    assert bool(said) is (others < REMEMBERED)


@pytest.mark.parametrize(
    ("rule", "first", "other", "again", "last"),
    [
        (UNCHANGED, "a(1):- a(2):- ", "t#:1", " a(3):- ", " a(4):-"),
        (ERROR, "a(1)!e ", "t#!f#", " a(2)!e ", " a(3)!e"),
        (HANDOFF, "x/*:no ", "y/*:w#", " y/*:no ", " x/*:no y/*:no x/*:no y/*:no x/*:no"),
    ],
    ids=["tools", "errors", "outputs"],
)
def test_what_came_again_is_recent(
    rule: type[Detector], first: str, other: str, again: str, last: str
):
    more = many(other.replace("#", "0#"), REMEMBERED - 1)

    assert said_of(rule, first + many(other, 9) + again + more + last, LINES[rule])


TOOL_RULES = [
    (REVISITED, "a:1 a:1"),
    (NOVELTY, "a:1 a:1"),
    (UNCHANGED, "a:1"),
    (ERROR, "a!e"),
    (UNKNOWN_TOOL, "a!e?"),
]


@pytest.mark.parametrize(("rule", "word"), TOOL_RULES, ids=[row[0].rule for row in TOOL_RULES])
def test_a_tool_has_thresholds_of_its_own(rule: type[Detector], word: str):
    once, never = Thresholds(warn=1), Thresholds()
    policy = Settings(
        Limits(), {rule.rule: never}, tools={"a": ToolOptions(rules={rule.rule: once})}
    )
    detector = rule.of(policy)
    assert detector is not None
    *before, last = facts_of(word)
    for facts in before:
        detector.commit(facts)

    assert detector.check(last) is None
    assert detector.check(replace(last, own={"another_rule": once})) is None
    found = detector.check(replace(last, own={rule.rule: once}))
    assert found is not None
    assert (found.action, found.threshold) == ("warn", 1)


def test_equal_calls_need_two_thirds_of_the_thresholds_of_their_tool():
    for abort, enough in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 4), (9, 6)]:
        said = said_of(ERROR, many("a!e", 20), Thresholds(abort=abort))
        assert said == [(enough, "abort", enough)]

    assert said_of(ERROR, many("a!e", 20), Thresholds(warn=3)) == [(3, "warn", 3)]


def test_what_began_beside_a_finishing_turn_is_no_extra_turn():
    """Two model calls of one agent at once: the second ends after the first has finished."""
    detector = EXTRA.of(Settings(Limits(), {EXTRA.rule: Thresholds(warn=1)}))
    assert detector is not None
    tool, turn = facts_of("a:1 $")
    detector.commit(tool)
    detector.commit(turn)

    assert detector.check(turn) is None
    assert detector.check(replace(turn, pending=True, turn=None)) is not None


def test_extra_turns_are_counted_in_a_row():
    assert said_of(EXTRA, "a:1 $ $ $ $", Thresholds(warn=1, abort=3)) == [(3, W, 1), (5, A, 3)]
    assert said_of(EXTRA, "a:1 $ $ $^ $", Thresholds(abort=2)) == []


def call(name: str, of: object, result: object = "ok", **more: Any) -> Step:
    return Step(kind="tool", name=name, arguments={"of": of}, result=result, **more)


def failure(name: str, of: object, error: str) -> Step:
    return Step(kind="tool", name=name, arguments={"of": of}, error=error)


def unreadable(arguments: str) -> Step:
    return Step(kind="tool", name="get", arguments=arguments, error="no JSON")


def turn(output: str, agent: str = "", **more: Any) -> Step:
    return Step(kind="llm", name="m", agent=agent, output=output, **more)


ASKS = turn("", tool_calls=(ToolCall(name="a", arguments={}),), finish_reasons=("tool_calls",))
DONE = turn("done", tool_calls=(), finish_reasons=("stop",))
PLACES = (
    "an archive",
    "a bakery",
    "a cinema",
    "a depot",
    "an embassy",
    "a forge",
    "a garage",
    "a hut",
)

OFFERED = frozenset("a")

RUNS: list[tuple[type[Detector], list[Step], Found]] = [
    (REVISITED, [call("a", 1), *[call("a", 1), call("b", 2)] * 7], [(6, W, 4), (9, A, 7)]),
    (NOVELTY, [call("a", n) for n in (1, 2, 2, 1, 1, 2, 1)], [(5, W, 3), (7, A, 5)]),
    (UNCHANGED, [call("find", place, "[]") for place in PLACES], [(4, W, 4), (8, A, 8)]),
    (
        ERROR,
        [failure("get", n, f"HTTP 404 for item {n}") for n in range(6)],
        [(3, W, 3), (6, A, 6)],
    ),
    (ERROR, [failure("get", 1, "HTTP 404")] * 4, [(3, W, 3), (4, A, 4)]),
    (ERROR, [failure(name, 1, "connection refused") for name in "abcdef"], [(3, W, 3), (6, A, 6)]),
    (ERROR, [turn("", error="HTTP 429")] * 6, [(3, W, 3), (6, A, 6)]),
    (ERROR, [s for n in range(9) for s in (failure("get", 1, "timeout"), call("get", 1, n))], []),
    (OUTPUT, [turn("")] * 5, [(3, W, 3), (5, A, 5)]),
    (OUTPUT, [ASKS] * 5, [(3, W, 3), (5, A, 5)]),
    (OUTPUT, [step for n in range(9) for step in (ASKS, call("a", n, n))], []),
    (CUT, [turn("so", finish_reasons=("length",)), call("a", 1)] * 3, [(3, W, 2), (5, A, 3)]),
    (
        UNKNOWN_TOOL,
        [s for n in "bcdef" for s in (turn("", offered_tools=OFFERED), failure(n, 1, f"no {n}"))],
        [(6, W, 3), (10, A, 5)],
    ),
    (
        UNKNOWN_TOOL,
        [s for n in range(5) for s in (turn(""), unreadable(f'{{"q": {n}'))],
        [(6, W, 3), (10, A, 5)],
    ),
    (
        UNKNOWN_TOOL,
        [turn("", offered_tools=OFFERED), *[failure(n, 1, f"no {n}") for n in "bcdef"]],
        [],
    ),
    (EXTRA, [ASKS, call("a", 1), DONE, DONE], [(4, W, 1)]),
    (EXTRA, [DONE] * 9, []),
    (HANDOFF, [turn("no", agent="x"), turn("no", agent="y")] * 6, [(6, W, 3), (12, A, 6)]),
]


@pytest.mark.parametrize(
    ("rule", "steps", "expected"), RUNS, ids=[f"{n}-{row[0].rule}" for n, row in enumerate(RUNS)]
)
def test_a_guard_tells_the_rules_what_they_need(
    rule: type[Detector], steps: list[Step], expected: Found
):
    line = {"warn": LINES[rule].warn or 0, "abort": LINES[rule].abort or 0}
    policy = Policy.from_mapping({"rules": {rule.rule: line}}, base=Policy.none())
    guard = LoopGuard(policy, clock=lambda: 0.0)
    said: Found = []
    for step in steps:
        for decision in (guard.check(step, commit=True), guard.record(step)):
            said += [(v.step, v.action, v.count) for v in decision.violations]

    assert said == expected

"""The rules that look at what came of a step equal their definitions, whatever they are told.

A definition is said slowly, over all the steps that a detector was told, the newest last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from otel_loopguard.detectors._base import REMEMBERED, Detector, Facts, Turn
from otel_loopguard.detectors.agent_handoff_cycle import LONGEST_CYCLE, AgentHandoffCycle
from otel_loopguard.detectors.extra_turn import ExtraTurn
from otel_loopguard.detectors.no_novelty import NoNovelty
from otel_loopguard.detectors.repeated_error import RepeatedError
from otel_loopguard.detectors.repeated_output import RepeatedOutput
from otel_loopguard.detectors.revisited_results import WINDOW, RevisitedResults
from otel_loopguard.detectors.truncated_turns import TruncatedTurns
from otel_loopguard.detectors.unchanged_result import UnchangedResult
from otel_loopguard.detectors.unknown_tool import UnknownTool
from otel_loopguard.settings import Limits, Settings, Thresholds

# Anything at all, of few letters, so that things repeat; consistent or not.

few = st.sampled_from([None, 1, 1, 1, 2])
seldom = st.sampled_from([False, False, False, True])
calls = st.builds(
    Facts,
    kind=st.just("tool"),
    name=st.sampled_from("aaab"),
    elapsed_s=st.just(0.0),
    call=st.sampled_from([None, 1, 2, 3]),
    outcome=few,
    pending=st.just(False),  # noqa: FBT003
    failed=st.booleans(),
    novel=seldom,
    result=few,
    error=few,
    nothing=st.booleans(),
    near=seldom,
    batch=st.sampled_from([None, None, 1, 2]),
    agent=st.sampled_from(["x", "x", "y", ""]),
    unknown_tool=st.booleans(),
)
turns = st.builds(
    Facts,
    kind=st.just("llm"),
    name=st.just("m"),
    elapsed_s=st.just(0.0),
    call=st.none(),
    pending=st.booleans(),
    novel=st.booleans(),
    failed=seldom,
    error=few,
    agent=st.sampled_from(["x", "y", "z", ""]),
    turn=st.none()
    | st.builds(
        Turn,
        output=st.sampled_from([None, 1, 1, 1, 1, 2]),
        cut=st.booleans(),
        final=st.sampled_from([False, True, True]),
        asks=seldom,
    ),
    spoken=seldom,
)
ends = st.builds(
    Facts,
    kind=st.just("agent"),
    name=st.just("s"),
    elapsed_s=st.just(0.0),
    call=st.none(),
    agent=st.sampled_from("xyz"),
)


def words_of(item: SearchStrategy[Facts]) -> SearchStrategy[list[Facts]]:
    """Return runs of anything, and runs in which short parts come again and again."""
    part = st.tuples(st.lists(item, min_size=1, max_size=4), st.integers(1, 9))
    return st.lists(item, max_size=40) | st.lists(part, max_size=5).map(
        lambda parts: [facts for some, times in parts for facts in some * times]
    )


words = words_of(st.one_of(calls, calls, turns, turns, ends))
one_tool = words_of(calls.map(lambda facts: replace(facts, name="a")))
failing = words_of(
    calls.map(lambda facts: replace(facts, failed=True, error=facts.error or 1))
    | calls.map(lambda facts: replace(facts, failed=False))
    | turns
)
talking = words_of(
    st.one_of(*[turns.map(lambda facts: replace(facts, agent="x"))] * 3, calls, ends)
)
any_word = words | one_tool | failing | talking
"""Runs of all that there is, and runs that are rich in what one rule or another looks for."""


def trailing(steps: Iterable[Facts], belongs: Callable[[Facts], bool]) -> list[Facts]:
    """Return the last steps that belong, newest first."""
    return list(takewhile(belongs, reversed(list(steps))))


# The definitions: how often, this step included; 0 where the rule says nothing.


def revisited_results(steps: Sequence[Facts]) -> int:
    known = [facts for facts in steps if facts.outcome is not None][-WINDOW:]
    repeats = [facts for facts in known if not facts.novel]
    return len(repeats) if repeats and repeats[-1] is steps[-1] else 0


def no_novelty(steps: Sequence[Facts]) -> int:
    row = [facts for facts in trailing(steps, is_old) if facts.outcome is not None]
    return attempts(row) if row and row[0] is steps[-1] else 0


def is_old(facts: Facts) -> bool:
    return not facts.novel


def unchanged_result(steps: Sequence[Facts]) -> int:
    row = answers([facts for facts in steps if facts.name == steps[-1].name])
    return turns_in(row)


def answers(steps: Sequence[Facts]) -> list[Facts]:
    """Return the row of equal answers, without those that do not count."""
    *before, last = steps
    if last.failed or last.result is None:
        return []
    row = answers(before) if before else []
    if not row or row[-1].result != last.result:
        return [last]
    if last.call is None or last.call == row[-1].call:
        return row
    return [*row, last] if last.nothing or last.near else [last]


def turns_in(row: Iterable[Facts]) -> int:
    """Count the responses that asked for these calls; unknown ones are all different."""
    batches = groupby(row, key=lambda facts: facts.batch)
    return sum(1 if batch is not None else len(list(some)) for batch, some in batches)


def repeated_error(steps: Sequence[Facts]) -> int:
    last = steps[-1]
    if not last.failed or last.error is None:
        return 0
    own = attempts(error_row(steps, of_run=False))
    return max(own, attempts(error_row(steps, of_run=True)) if last.kind == "tool" else 0)


def equal_errors(steps: Sequence[Facts]) -> int:
    """Count the last failures of the tool that were of the same call."""
    last = steps[-1]
    if last.error is None or last.call is None or not last.failed:
        return 0
    row = error_row(steps, of_run=False)
    return len(list(takewhile(lambda facts: facts.call == last.call, row)))


def error_row(steps: Sequence[Facts], *, of_run: bool) -> list[Facts]:
    """Return the equal errors, newest first."""
    last, row = steps[-1], list[Facts]()
    for past in reversed(steps):
        if past.kind != last.kind:
            continue
        proves_nothing = past.kind == "tool" and not past.novel and past.outcome is not None
        if not past.failed and not proves_nothing and (of_run or past.agent == last.agent):
            break
        if past.failed and (of_run or (past.agent, past.name) == (last.agent, last.name)):
            if past.error != last.error:
                break
            row.append(past)
    return row


def attempts(row: Sequence[Facts]) -> int:
    """Count errors; different calls of one batch, one after the other, are one attempt."""
    return len(row) - sum(
        one.batch is not None
        and one.batch == other.batch
        and (one.call is None or one.call != other.call)
        for one, other in pairwise(row)
    )


def repeated_output(steps: Sequence[Facts]) -> int:
    turn, count = steps[-1].turn, 0
    if turn is None or turn.output is None:
        return 0
    for number in range(len(steps), 0, -1):
        past = steps[number - 1]
        if past.kind == "tool" and (past.novel or past.outcome is None):
            break
        if past.turn is None or past.turn.output is None:
            continue
        if past.agent != steps[-1].agent:
            if says_something_new(steps[:number]):
                break
            continue
        if past.turn.output != turn.output:
            break
        count += 1
        if past.spoken:
            break
    return count


def says_something_new(steps: Sequence[Facts]) -> bool:
    """Say whether the output of the last step is none of the last ones of the run."""
    *before, last = steps
    outputs = [f.turn.output for f in before if f.turn is not None and f.turn.output is not None]
    known = list(dict.fromkeys(reversed(outputs)))[:REMEMBERED]
    return last.turn is not None and last.turn.output not in known


def truncated_turns(steps: Sequence[Facts]) -> int:
    known = [facts.turn for facts in steps if facts.turn is not None]
    cut = len(list(takewhile(lambda turn: turn.cut, reversed(known))))
    return cut if steps[-1].turn is not None else 0


def unknown_tool(steps: Sequence[Facts]) -> int:
    row = trailing(steps, lambda facts: facts.failed)
    made_up = [facts for facts in row if facts.unknown_tool]
    return attempts(made_up) if made_up and made_up[0] is steps[-1] else 0


def extra_turn(steps: Sequence[Facts]) -> int:
    *before, last = steps
    if last.kind != "llm" or last.spoken or not last.pending:
        return 0
    acts = any(f.kind == "tool" or (f.turn is not None and f.turn.asks) for f in before)
    count = 0
    for past in reversed([f for f in before if f.kind != "llm" or f.turn is not None]):
        if past.turn is None or not past.turn.final:
            break
        count += 1
        if past.spoken:
            break
    return count if acts else 0


def agent_handoff_cycle(steps: Sequence[Facts]) -> int:
    told = [facts for facts in steps if facts.kind != "agent"]
    if not told or told[-1] is not steps[-1] or not steps[-1].agent or steps[-1].pending:
        return 0
    named = [facts.agent for facts in told if facts.agent]
    news = [n for n in range(len(told)) if brings(told[: n + 1])]
    since = news[-1] if news else 0
    holder = [facts.agent for facts in told[: since + 1] if facts.agent][-1:]
    hands = holder + [facts.agent for facts in told[since + 1 :] if facts.agent]
    if news and news[-1] == len(told) - 1:
        return 0
    if named[-2:-1] == named[-1:]:
        return 0
    return rounds_in([agent for agent, _ in groupby(hands)])


def brings(steps: Sequence[Facts]) -> bool:
    """Say whether the last step brings something, or what nobody can judge."""
    *before, last = steps
    if last.kind == "tool":
        return last.novel or last.outcome is None
    outputs = [f.turn.output for f in before if f.turn is not None and f.turn.output is not None]
    known = list(dict.fromkeys(reversed(outputs)))[:REMEMBERED]
    return last.spoken or (last.turn is not None and last.turn.output not in known)


def rounds_in(hands: Sequence[str]) -> int:
    rounds = 0
    for period in range(2, LONGEST_CYCLE + 1):
        pairs = list(zip(hands[period:], hands, strict=False))
        equal = len(list(takewhile(lambda pair: pair[0] == pair[1], reversed(pairs))))
        rounds = max(rounds, equal // period + 1 if equal else 0)
    return rounds


DEFINITIONS: dict[type[Detector], Callable[[Sequence[Facts]], int]] = {
    RevisitedResults: revisited_results,
    NoNovelty: no_novelty,
    UnchangedResult: unchanged_result,
    RepeatedError: repeated_error,
    RepeatedOutput: repeated_output,
    TruncatedTurns: truncated_turns,
    UnknownTool: unknown_tool,
    ExtraTurn: extra_turn,
    AgentHandoffCycle: agent_handoff_cycle,
}


def made(rule: type[Detector], thresholds: Thresholds) -> Detector:
    detector = rule.of(Settings(Limits(), {rule.rule: thresholds}))
    assert detector is not None
    return detector


def told_to(rule: type[Detector], word: Iterable[Facts]) -> list[Facts]:
    """Return the steps that one detector of this rule is told."""
    return [facts for facts in word if facts.kind in rule.kinds]


every_rule = pytest.mark.parametrize("rule", DEFINITIONS, ids=[r.rule for r in DEFINITIONS])


@every_rule
@given(any_word)
def test_a_rule_counts_what_its_definition_counts(rule: type[Detector], word: list[Facts]):
    detector, steps = made(rule, Thresholds(warn=1)), told_to(rule, word)
    for number, facts in enumerate(steps, 1):
        found = detector.check(facts)
        counted = 0 if found is None else found.count
        assert counted == DEFINITIONS[rule](steps[:number]), number
        detector.commit(facts)


@every_rule
@given(any_word, st.integers(1, 4), st.integers(1, 6))
def test_it_speaks_at_its_thresholds(
    rule: type[Detector], word: list[Facts], warn: int, abort: int
):
    detector, steps = made(rule, Thresholds(warn=warn, abort=abort)), told_to(rule, word)
    for number, facts in enumerate(steps, 1):
        count = DEFINITIONS[rule](steps[:number])
        equal = equal_errors(steps[:number]) if rule is RepeatedError else 0
        stops = count >= abort or 3 * equal >= 2 * abort
        found = detector.check(facts)
        said = "" if found is None else found.action
        assert said == ("abort" if stops else "warn" if count >= warn else "")
        detector.commit(facts)


@every_rule
@given(any_word, words)
def test_to_ask_changes_nothing(rule: type[Detector], word: list[Facts], asked: list[Facts]):
    curious, plain = (made(rule, Thresholds(warn=1, abort=3)) for _ in range(2))
    for facts in told_to(rule, word):
        for other in told_to(rule, asked):
            curious.check(other)
        assert curious.check(facts) == plain.check(facts)
        curious.commit(facts)
        plain.commit(facts)


@every_rule
@given(any_word)
def test_it_is_silent_about_news_where_it_says_so(rule: type[Detector], word: list[Facts]):
    detector = made(rule, Thresholds(warn=1))
    for facts in told_to(rule, word):
        is_news = facts.kind == "tool" and facts.novel and not facts.failed
        is_news = is_news and facts.outcome is not None and not (facts.nothing or facts.near)
        assert detector.on_news or not is_news or detector.check(facts) is None
        detector.commit(facts)

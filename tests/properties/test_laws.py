"""What holds for every run under every policy."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard import open_steps, rule_sets, run_state, run_totals
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.detectors import DETECTORS, _base
from otel_loopguard.endings import finished
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import SpanKey, Step
from tests.properties import strategies
from tests.properties.oracles import Timed

worlds = st.fixed_dictionaries({"records": st.booleans(), "commits": st.booleans()})
"""Are results recorded? Do refused steps happen all the same?"""


class Player:
    """A guard on a clock of its own."""

    def __init__(
        self, policy: Policy, *, records: bool = True, commits: bool = True, curious: bool = False
    ) -> None:
        self.now_s = 0
        self.guard = LoopGuard(policy, clock=lambda: self.now_s)
        self.guard.start()
        self._records = records
        self._commits = commits
        self._curious = curious

    def step(self, timed: Timed) -> list[Decision]:
        """Play a step; one who is curious asks before about this one and others."""
        self.now_s += timed.pause_s
        asked = asked_of(timed)
        decision = self._foreseen(asked) if self._curious else self._check(asked)
        if not self._records or not (decision.allowed or self._commits):
            return [decision]
        self.now_s += timed.took_s
        return [decision, self.guard.record(timed.step)]

    def _check(self, asked: Step) -> Decision:
        return self.guard.check(asked, commit=self._commits)

    def _foreseen(self, asked: Step) -> Decision:
        self.guard.preview(Step(kind="tool", name="other", arguments="other", agent="other"))
        self.guard.preview(asked, ahead=3)
        preview, decision = self.guard.preview(asked), self._check(asked)
        assert (preview.refusal, preview.violations) == (decision.refusal, decision.violations)
        assert preview.step_count == decision.step_count or not decision.allowed
        return decision

    def play(self, word: Iterable[Timed]) -> list[list[Decision]]:
        return [self.step(timed) for timed in word]


def asked_of(timed: Timed) -> Step:
    """Return a step as it is known when it starts."""
    arguments = UNKNOWN if timed.late else timed.step.arguments
    return msgspec.structs.replace(timed.step, arguments=arguments)


def reported(decisions: Iterable[Iterable[Decision]]) -> list[Violation]:
    return [v for step in decisions for decision in step for v in decision.violations]


@given(strategies.words, strategies.policies, worlds)
def test_preview_says_what_check_says_and_leaves_no_trace(
    word: list[Timed], policy: Policy, world: dict[str, bool]
):
    curious, plain = Player(policy, curious=True, **world), Player(policy, **world)

    assert curious.play(word) == plain.play(word)
    assert curious.guard.stats() == plain.guard.stats()
    assert curious.guard.report() == plain.guard.report()


@given(strategies.words, strategies.words, strategies.policies, worlds)
def test_runs_that_interleave_are_as_runs_alone(
    one: list[Timed], other: list[Timed], policy: Policy, world: dict[str, bool]
):
    first, second = Player(policy, **world), Player(policy, **world)
    said: tuple[list[Any], list[Any]] = ([], [])
    for a, b in zip_longest(one, other):
        said[0].extend([first.step(a)] if a else [])
        said[1].extend([second.step(b)] if b else [])

    assert said[0] == Player(policy, **world).play(one)
    assert said[1] == Player(policy, **world).play(other)


@given(strategies.words, strategies.words, strategies.policies, worlds)
def test_a_fresh_run_is_as_one_of_a_new_guard(
    before: list[Timed], word: list[Timed], policy: Policy, world: dict[str, bool]
):
    used, new = Player(policy, **world), Player(policy, **world)
    used.play(before)
    used.guard.end()
    used.now_s = 0
    used.guard.start()

    assert used.play(word) == new.play(word)
    assert used.guard.stats() == new.guard.stats()
    assert used.guard.end() == new.guard.end()


@given(strategies.words, strategies.policies, strategies.limits, strategies.rules, st.booleans())
def test_more_rules_never_make_a_verdict_milder(
    word: list[Timed],
    policy: Policy,
    limits: dict[str, Any],
    rules: dict[str, Any],
    records: bool,  # noqa: FBT001 -- hypothesis draws it
):
    has = policy.settings.limits
    new_limits = {
        name: value
        for name, value in limits.items()
        if not getattr(has, name) and value is not None
    }
    new_limits["compare_arguments"] = has.compare_arguments
    new_rules = {name: rules[name] for name in rules if name not in policy.settings.rules}
    stricter = Policy.from_mapping({"limits": new_limits, "rules": new_rules}, base=policy)
    mild, strict = Player(policy, records=records), Player(stricter, records=records)

    for timed in word:
        for less, more in zip(mild.step(timed), strict.step(timed), strict=True):
            assert less.allowed or not more.allowed
    assert {v.rule for v in mild.guard.report().violations} <= {
        v.rule for v in strict.guard.report().violations
    }


@given(strategies.words, strategies.policies, st.booleans())
def test_a_refused_step_changes_nothing(
    word: list[Timed],
    policy: Policy,
    records: bool,  # noqa: FBT001 -- hypothesis draws it
):
    insistent, modest = (Player(policy, records=records, commits=False) for _ in range(2))
    for timed in word:
        decisions = insistent.step(timed)
        if decisions[0].allowed:
            said = [(d.allowed, d.rule, d.step_count) for d in modest.step(timed)]
            assert said == [(d.allowed, d.rule, d.step_count) for d in decisions]
        else:
            insistent.guard.check(asked_of(timed))
            modest.now_s = insistent.now_s

    assert insistent.guard.stats() == modest.guard.stats()


@given(strategies.words, strategies.policies)
def test_a_record_alone_says_what_check_and_record_say_until_the_run_trips(
    word: list[Timed], policy: Policy
):
    timeless = policy.with_limits(max_duration_s=0)
    whole, late = LoopGuard(timeless), LoopGuard(timeless)
    for step, *_ in word:
        checked, recorded, alone = (
            whole.check(step, commit=True),
            whole.record(step),
            late.record(step),
        )
        # A turn that is known to have finished the run is forgiven what nobody could refuse.
        if not finished(step):
            assert {(v.rule, v.action, v.count) for v in alone.violations} == {
                (v.rule, v.action, v.count) for v in (*checked.violations, *recorded.violations)
            }
        if not (alone.allowed and checked.allowed):
            break


def renamed(step: Step) -> Step:
    names = {"a": "read file", "b": "", "c": "b"}
    agents = {"": "main", "x": "y", "y": "z", "z": ""}
    return msgspec.structs.replace(
        step, name=names.get(step.name, step.name), agent=agents[step.agent]
    )


@given(strategies.words, strategies.policies, worlds)
def test_names_do_not_matter(word: list[Timed], policy: Policy, world: dict[str, bool]):
    per_tool = policy.settings.limits.max_calls_per_tool
    new_names = {renamed(Step(kind="tool", name=name)).name: n for name, n in per_tool.items()}
    other = policy.with_limits(max_calls_per_tool=new_names)
    plain = Player(policy, **world).play(word)
    new_word = [timed._replace(step=renamed(timed.step)) for timed in word]

    for one, two in zip(
        reported(plain), reported(Player(other, **world).play(new_word)), strict=True
    ):
        as_step = renamed(Step(kind="tool", name=one.tool, agent=one.agent))
        tool = as_step.name if one.kind == "tool" else ""
        assert msgspec.structs.replace(one, tool=tool, agent=as_step.agent) == two


def any_stream(chance: random.Random, length: int) -> Iterator[Step]:
    """Yield steps of which almost none is like another, now and then of a few that are."""
    for number in range(length):
        own = str(number if chance.random() < 0.8 else number % 5)
        yield Step(
            kind=chance.choice(["tool", "tool", "tool", "llm", "custom", "agent"]),
            name=own,
            arguments=chance.choice([own, [own] * 9, UNKNOWN]),
            result=chance.choice([own, UNKNOWN]),
            error=chance.choice([None, None, own]),
            agent=own if chance.random() < 0.3 else "",
            call_id=own if chance.random() < 0.3 else None,
            span=SpanKey(0, number) if chance.random() < 0.3 else None,
        )


def stores(guard: LoopGuard) -> Iterator[tuple[str, int, int]]:
    """Yield what a run keeps: what it is, how many there are, and how many there may be."""
    run: Any = guard._run  # pyright: ignore[reportPrivateUsage] -- it says nothing of its size
    yield "outcomes", len(run._seen), run_state.SEEN
    yield "calls that wait", len(run._waiting), run_state.WAITING
    yield "violations", len(run._reported), 2 * len(DETECTORS)
    yield "open steps", len(run._open), open_steps.NAMED + open_steps.NAMELESS
    yield "ids of open steps", len(run._open._by_id), 2 * open_steps.NAMED
    yield "tools", len(run.totals._tools), run_totals.TOOL_NAMES
    yield "labels", len(run.totals._trace), run_totals.TRACED
    yield "agents", len(run._rules._agents), rule_sets.AGENTS
    for rules in run._rules._agents.values():
        for detector in rules.every:
            counts, periods = getattr(detector, "_counts", ()), getattr(detector, "_periods", None)
            yield f"counts of {detector.rule}", len(counts), _base.REMEMBERED
            if periods is not None:
                yield f"calls of {detector.rule}", len(periods._calls), periods._longest
                yield f"recent of {detector.rule}", len(periods._recent), 2 * periods._longest
                yield f"periods of {detector.rule}", len(periods.matched), periods._longest


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("records", [1.0, 0.5, 0.0])
def test_what_a_run_keeps_is_bounded(records: float, seed: int):
    chance = random.Random(seed)  # noqa: S311 -- no secret
    guard = LoopGuard(max_steps=10**6, max_repeated_calls=9, loop_pattern_window=20)
    for number, step in enumerate(any_stream(chance, 1_200)):
        guard.check(step, commit=True)
        if chance.random() < records:
            guard.record(step)
        if number % 100 == 99:
            assert [store for store in stores(guard) if store[1] > store[2]] == []


@pytest.mark.parametrize("records", [True, False])
def test_a_run_keeps_at_most_32_kib(records: bool):  # noqa: FBT001 -- a row
    gc.collect()
    tracemalloc.start()
    try:
        guard = LoopGuard()
        empty = tracemalloc.get_traced_memory()[0]
        for step in calls(2_000):
            guard.check(step)
            if records:
                guard.record(step)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - empty <= 32 * 1024
    finally:
        tracemalloc.stop()


def calls(length: int) -> Iterator[Step]:
    """Yield tool calls, none like another."""
    for number in range(length):
        yield Step(
            kind="tool",
            name=("search", "fetch", "read_file", "run_query")[number % 4],
            arguments={"query": f"annual report of company {number}", "pages": [number] * 9},
            result=f"{number} rows",
        )

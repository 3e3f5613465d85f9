"""What holds for every run under every policy."""

from __future__ import annotations

import gc
import random
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_loopguard
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.detectors import DETECTORS, _base
from otel_loopguard.endings import finished
from otel_loopguard.engine import (
    agent_rules,
    invocations,
    memory,
    open_steps,
    rule_kits,
    rule_sets,
    run_totals,
    sight,
)
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


any_policies = strategies.policies | strategies.overridden_policies


@given(strategies.words, any_policies, worlds)
def test_preview_says_what_check_says_and_leaves_no_trace(
    word: list[Timed], policy: Policy, world: dict[str, bool]
):
    curious, plain = Player(policy, curious=True, **world), Player(policy, **world)

    assert curious.play(word) == plain.play(word)
    assert curious.guard.stats() == plain.guard.stats()
    assert curious.guard.report() == plain.guard.report()


@given(strategies.words, strategies.words, any_policies, worlds)
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


@given(strategies.words, strategies.words, any_policies, worlds)
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


@given(strategies.words, any_policies, st.booleans())
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
    # A hand-over is one between agents with names.
    same = Policy.from_mapping({"rules": {"agent_handoff_cycle": False}}, base=policy)
    other = same.with_limits(max_calls_per_tool=new_names)
    plain = Player(same, **world).play(word)
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
            agent_id=chance.choice([None, own]),
            agent_parent_id=chance.choice([None, own, "1"]),
            call_id=own if chance.random() < 0.3 else None,
            span=SpanKey(0, number) if chance.random() < 0.3 else None,
            batch=chance.choice([None, own]),
            approved=chance.random() < 0.1,
            output=chance.choice([UNKNOWN, own]),
            finish_reasons=(chance.choice(["stop", "length", "tool_calls"]),),
            tool_calls=chance.choice([UNKNOWN, ()]),
            offered_tools=chance.choice([UNKNOWN, frozenset(own)]),
            input_tokens=chance.choice([None, 5]),
        )


ALL_LIMITS: dict[str, Any] = {
    "max_steps": 10**6,
    "max_llm_calls": 10**6,
    "max_tool_calls": 10**6,
    "max_calls_per_tool": {"1": 10**6, "2": 10**6},
    "max_duration_s": 10**6,
    "max_idle_s": 10**6,
    "max_input_tokens": 10**6,
    "max_output_tokens": 10**6,
    "max_total_tokens": 10**6,
    "max_context_tokens": 10**6,
    "max_cost_usd": 10**6,
    "max_agent_depth": 99,
    "max_steps_per_minute": 500,
    "max_consecutive_errors": 10**6,
    "max_turns_without_tool": 10**6,
    "max_repeated_calls": 9,
    "max_same_tool_calls": 9,
    "loop_pattern_window": 20,
}
WATCHFUL = Policy.from_mapping(
    {
        "limits": ALL_LIMITS,
        "tools": {"3": {"poll": True}, "4": {"exempt": True}, "7": {"writes": True}},
        "agents": {"*": {"limits": {"max_steps": 10**6, "max_steps_per_minute": 500}}},
    }
)
"""The default rules, all limits, and limits for each invocation of each agent."""

BOUNDS = {
    "AgentRules._detectors": len(DETECTORS),
    "AgentRules._unjudged": 2,
    "AgentRules.answers": agent_rules.TOOLS,
    "AgentRules.by_kind": len(rule_kits.KINDS),
    "AgentRules.calls": agent_rules.RECALLED,
    "AgentHandoffCycle._outputs": _base.REMEMBERED,
    "Invocation.calm": len(rule_kits.KINDS),
    "Invocation.own": len(rule_kits.KINDS),
    "Invocation.whole": len(rule_kits.KINDS),
    "Invocations._apart": invocations.INVOCATIONS,
    "Invocations._by_id": invocations.INVOCATIONS,
    "Invocations._first": invocations.INVOCATIONS,
    "Memory._answers": memory.RECENT,
    "Memory._calls": memory.RECENT,
    "Memory._seen": memory.SEEN,
    "OpenSteps._by_id": 2 * open_steps.NAMED,
    "OpenSteps._named": open_steps.NAMED,
    "OpenSteps._nameless": open_steps.NAMELESS,
    "OpenSteps._not_made": open_steps.NAMED,
    "Periods._calls": 10,  # half the window of `loop_pattern` above
    "Periods._recent": 20,
    "Periods.matched": 10,
    "RepeatedCall._counts": _base.REMEMBERED,
    "RepeatedError._rows": _base.REMEMBERED,
    "RepeatedOutput._outputs": _base.REMEMBERED,
    "RepeatedOutput._rows": _base.REMEMBERED,
    "RepeatedResult._counts": _base.REMEMBERED,
    "RuleSets._of_run": len(DETECTORS),
    "RuleSets.agents": rule_sets.AGENTS,
    "RuleSets.totals": len(DETECTORS),
    "Reports._reported": 2 * len(DETECTORS),
    "RunTotals._cost_at": run_totals.SPENT,
    "RunTotals._owners": run_totals.SPENT,
    "RunTotals._tokens_at": run_totals.SPENT,
    "RunTotals._tools": run_totals.TOOL_NAMES,
    "RunTotals._trace": run_totals.TRACED,
    "Stagnation._answers": _base.REMEMBERED,
    "Stagnation._errors": _base.REMEMBERED,
    "StepRate._starts_s": 500,
    "ToolCallBudget._by_tool": 2,
    "UnchangedResult._rows": _base.REMEMBERED,
    "Sight._waiting": sight.WAITING,
}
"""Every store of a run, with how much there may be in it."""


GIVEN = frozenset(
    {
        "AgentRules.tools",
        "Facts.own",
        "OpenSteps._arguments",  # of one step, whatever they are
        "Stagnation._weights",
        "ToolCallBudget._limits_by_tool",
    }
)
"""What a run refers to and does not fill."""


def stores(
    thing: object, where: str = "", known: set[int] | None = None
) -> Iterator[tuple[str, int]]:
    """Yield what a run keeps, all the way down: what it is called and how many things are in it."""
    visited = set[int]() if known is None else known
    if id(thing) in visited or isinstance(thing, (str, bytes, int)):
        return
    visited.add(id(thing))
    if isinstance(thing, (dict, list, set, deque, array)):
        yield where, len(cast("list[object]", thing))
    for store, part in _parts_of(cast("object", thing), where):
        yield from stores(part, store, visited)


def _parts_of(thing: object, where: str) -> Iterator[tuple[str, object]]:
    kind = type(thing)
    if isinstance(thing, (dict, list, set, deque, tuple)):
        parts = [*cast("list[object]", thing)]
        if isinstance(thing, dict):
            parts += cast("dict[object, object]", thing).values()
        yield from ((f"{where}[]", part) for part in parts)
    elif kind.__module__.startswith("otel_loopguard") and not _is_given(kind):
        names = [name for above in kind.__mro__ for name in getattr(above, "__slots__", ())]
        for name in (*names, *getattr(kind, "__struct_fields__", ())):
            store = f"{kind.__name__}.{name}"
            if hasattr(thing, name) and store not in GIVEN:
                yield store, getattr(thing, name)


def _is_given(kind: type[object]) -> bool:
    elsewhere = (".settings", ".pricing", ".volatile", ".canonical")
    return kind is Step or kind.__module__.endswith(elsewhere)


def run_of(guard: LoopGuard) -> object:
    return guard._run  # pyright: ignore[reportPrivateUsage] -- it says nothing of its size


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("of_turns", "of_others"), [(1.0, 1.0), (0.5, 0.5), (1.0, 0.0), (0.0, 0.0)]
)
def test_what_a_run_keeps_is_bounded(of_turns: float, of_others: float, seed: int):
    chance = random.Random(seed)  # noqa: S311 -- no secret
    guard = LoopGuard(WATCHFUL, clock=lambda: 0.0)
    for number, step in enumerate(any_stream(chance, 1_200)):
        guard.check(step, commit=True)
        if chance.random() < (of_turns if step.kind == "llm" else of_others):
            guard.record(step)
        if number % 300 == 299:
            found = [store for store in stores(run_of(guard)) if not store[0].endswith("[]")]
            assert {name for name, _ in found} <= BOUNDS.keys()
            assert [store for store in found if store[1] > BOUNDS[store[0]]] == []


def test_every_store_that_is_listed_is_one():
    chance = random.Random(7)  # noqa: S311 -- no secret
    guard = LoopGuard(Policy.from_mapping({"scope": "agent"}, base=WATCHFUL), clock=lambda: 0.0)
    for step in any_stream(chance, 400):
        guard.check(step, commit=True)
        guard.record(step)

    assert {name for name, _ in stores(run_of(guard)) if not name.endswith("[]")} == BOUNDS.keys()


OURS = (Path(otel_loopguard.__file__).parent, Path(__file__).parent)


class Kept(NamedTuple):
    """How many KiB a run holds after some of its steps."""

    early: float
    late: float


def kept_by(word: Callable[[int], Iterator[Step]], *, records: bool) -> Kept:
    """Play 1,000 rounds and 3,000 more, and measure."""
    guard = LoopGuard()
    for number in range(1_100):  # what is made once for a process, as caches of code, is no part
        for step in word(number):
            guard.check(step)
            guard.record(step)
    guard.end()
    sizes: list[float] = []
    gc.collect()
    tracemalloc.start()
    try:
        guard = LoopGuard()
        for number in range(4_000):
            for step in word(number):
                guard.check(step)
                if records:
                    guard.record(step)
            if number in (1_000, 3_999):
                gc.collect()
                sizes.append(_traced_kib())
    finally:
        tracemalloc.stop()
    return Kept(*sizes)


def _traced_kib() -> float:
    """Measure what this file and the package hold: threads of other tests go on beside."""
    ours = [tracemalloc.Filter(True, f"{folder}/*") for folder in OURS]  # noqa: FBT003 -- inclusive
    found = tracemalloc.take_snapshot().filter_traces(ours).statistics("filename")
    return sum(each.size for each in found) / 1024


def calls(number: int) -> Iterator[Step]:
    """Yield a tool call like no other, of 300 characters, with a result of 500."""
    yield Step(
        kind="tool",
        name=("search", "fetch", "read_file", "run_query")[number % 4],
        arguments={"query": f"{number:08}{'x' * 280}"},
        result=f"{number:08}{'y' * 490}",
    )


def calls_and_turns(number: int) -> Iterator[Step]:
    """Yield a model turn like no other beside it."""
    yield Step(
        kind="llm",
        output=f"{number:08}{'z' * 300}",
        finish_reasons=("tool_calls",),
        input_tokens=1_000,
        output_tokens=100,
    )
    yield from calls(number)


@pytest.mark.parametrize(
    ("word", "records", "most"),
    [
        pytest.param(calls, True, 38, id="calls and results"),
        pytest.param(calls_and_turns, True, 45, id="turns, calls and results"),
        pytest.param(calls, False, 51, id="calls without results"),
    ],
)
def test_a_run_stays_small(
    word: Callable[[int], Iterator[Step]],
    records: bool,  # noqa: FBT001 -- a row
    most: float,
):
    kept = kept_by(word, records=records)

    assert kept.late <= kept.early + 3, "a byte a round would be as much"
    assert kept.late <= most

"""Runs and policies for hypothesis: few letters, so that things repeat."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.detectors import DEFAULT_RULES
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step
from tests.properties.oracles import Timed

names = st.sampled_from("abc")
agents = st.sampled_from(["", "", "", "x", "y", "z"])
times = st.sampled_from([0, 0, 0, 1, 5])
results = st.sampled_from(["1", "1", "1", "2", UNKNOWN]) | st.integers(0, 999).map(str)

tool_calls = st.builds(
    Step,
    kind=st.just("tool"),
    name=names,
    arguments=st.sampled_from(["1", "1", "1", "2", UNKNOWN]),
    result=results,
    error=st.sampled_from([None, None, None, None, "e", "f"]),
    agent=agents,
    approved=st.sampled_from([False] * 9 + [True]),
)
turns = st.builds(
    Step,
    kind=st.just("llm"),
    agent=agents,
    error=st.sampled_from([None, None, "e"]),
    output=st.sampled_from([UNKNOWN, "", "done"]),
    finish_reasons=st.sampled_from([(), ("stop",)]),
    tool_calls=st.sampled_from([UNKNOWN, (), ()]),
)
others = st.builds(Step, kind=st.sampled_from(["agent", "custom"]), name=names, agent=agents)
any_step = tool_calls | tool_calls | tool_calls | turns | others


def words_of(item: SearchStrategy[Timed]) -> SearchStrategy[list[Timed]]:
    """Return runs of any steps, and runs in which short parts come again and again."""
    part = st.tuples(st.lists(item, min_size=1, max_size=4), st.integers(1, 9))
    parts = st.lists(part, max_size=6)
    return st.lists(item, max_size=40) | parts.map(
        lambda parts: [item for items, times in parts for item in items * times]
    )


words = words_of(st.builds(Timed, any_step, times, times, st.sampled_from([False] * 5 + [True])))
"""Runs of all that there is."""

plain_calls = st.builds(
    Step,
    kind=st.just("tool"),
    name=st.sampled_from("aaabc"),
    arguments=st.sampled_from(["1"] * 8 + [UNKNOWN]),
    result=st.sampled_from(["1", "1", "1", "2", UNKNOWN]),
    error=st.sampled_from([None] * 5 + ["e"]),
    agent=st.sampled_from(["", "", "", "x", "y"]),
)
late = st.sampled_from([False] * 9 + [True])
repetitive_words = words_of(
    st.builds(Timed, st.one_of(*[plain_calls] * 5, turns), st.just(0), st.just(0), late)
)
"""Runs of calls that are much like each other."""

few = st.none() | st.integers(1, 9)
limits = st.fixed_dictionaries(
    {},
    optional={
        "max_steps": few,
        "max_llm_calls": few,
        "max_tool_calls": few,
        "max_calls_per_tool": st.dictionaries(names, st.integers(1, 5), max_size=2),
        "max_duration_s": st.integers(1, 30),
        "max_repeated_calls": few,
        "compare_arguments": st.booleans(),
        "max_same_tool_calls": few,
        "loop_pattern_window": st.integers(2, 9),
    },
)
thresholds = st.fixed_dictionaries({"warn": st.integers(0, 5), "abort": st.integers(0, 9)})
rules = st.fixed_dictionaries({}, optional=dict.fromkeys(DEFAULT_RULES, thresholds))


def policy_of(limits: dict[str, Any], rules: dict[str, Any]) -> Policy:
    """Return the policy that has these limits and rules and no others."""
    return Policy.from_mapping({"limits": limits, "rules": rules}, base=Policy.none())


policies = st.builds(policy_of, limits, rules) | st.just(Policy())

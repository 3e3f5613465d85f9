"""Runs and policies for hypothesis: few letters, so that things repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.detectors import DEFAULT_RULES
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step, ToolCall
from tests.properties.oracles import Timed

_Item = TypeVar("_Item")

names = st.sampled_from("abc")
agents = st.sampled_from(["", "", "", "x", "y", "z"])
times = st.sampled_from([0, 0, 0, 1, 5])


def long_text(number: int) -> str:
    """Return a result that is not short: what is new in it is of no interest to most rules."""
    return f"page {number}: " + "and so on " * 20


results = (
    st.sampled_from(["1", "1", "1", "2", UNKNOWN])
    | st.integers(0, 999).map(str)
    | st.integers(0, 9).map(long_text)
)

tool_calls = st.builds(
    Step,
    kind=st.just("tool"),
    name=names,
    arguments=st.sampled_from(["1", "1", "1", "2", UNKNOWN]),
    result=results,
    error=st.sampled_from([None, None, None, None, "e", "f"]),
    agent=agents,
    approved=st.sampled_from([False] * 9 + [True]),
    batch=st.sampled_from([None] * 9 + ["one"]),
    input_tokens=st.sampled_from([None] * 9 + [7]),
    cost_usd=st.sampled_from([None] * 9 + [0.25]),
)
turns = st.builds(
    Step,
    kind=st.just("llm"),
    agent=agents,
    error=st.sampled_from([None, None, "e"]),
    output=st.sampled_from([UNKNOWN, "", "done"]),
    finish_reasons=st.sampled_from([(), ("stop",), ("stop",), ("tool_calls",), ("length",)]),
    tool_calls=st.sampled_from([UNKNOWN, (), (), (ToolCall(name="a", arguments="1"),)]),
    input_tokens=st.sampled_from([None, 10, 100]),
    output_tokens=st.sampled_from([None, 1, 20]),
    cost_usd=st.sampled_from([None, 0.0, 0.25]),
)
others = st.builds(Step, kind=st.sampled_from(["agent", "custom"]), name=names, agent=agents)
any_step = tool_calls | tool_calls | tool_calls | turns | others


def words_of(item: SearchStrategy[_Item]) -> SearchStrategy[list[_Item]]:
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


def stretch_of(length: int, text: Callable[[int], str], agent: str) -> list[Step]:
    """Return calls of which each brings something new the first time."""
    first = Step(kind="tool", name="a", agent=agent)
    return [replace(first, arguments=f"{n}", result=text(n)) for n in range(length)]


def at_once(parts: list[tuple[list[Step], bool]]) -> list[Timed]:
    """Return a run without pauses."""
    return [Timed(step, late=is_late) for steps, is_late in parts for step in steps]


stretches = st.builds(
    stretch_of,
    st.integers(1, 14),
    st.sampled_from(["n{}".format, long_text]),
    st.sampled_from(["", "", "x", "y"]),
)
one = st.one_of(*[plain_calls] * 7, turns).map(lambda step: [step])
repetitive_words = words_of(st.tuples(st.one_of(*[one] * 8, stretches), late)).map(at_once)
"""Runs of calls that are much like each other, with stretches of news between."""

few = st.none() | st.integers(1, 9)
limits = st.fixed_dictionaries(
    {},
    optional={
        "max_steps": few,
        "max_llm_calls": few,
        "max_tool_calls": few,
        "max_calls_per_tool": st.dictionaries(names, st.integers(1, 5), max_size=2),
        "max_duration_s": st.integers(1, 30),
        "max_input_tokens": st.integers(1, 900),
        "max_output_tokens": st.integers(1, 200),
        "max_total_tokens": st.integers(1, 1_000),
        "max_context_tokens": st.sampled_from([10, 99]),
        "max_cost_usd": st.sampled_from([0.2, 1.0, 3.0]),
        "max_steps_per_minute": st.integers(5, 20),
        "max_consecutive_errors": few,
        "max_turns_without_tool": few,
        "max_repeated_calls": few,
        "compare_arguments": st.booleans(),
        "max_same_tool_calls": few,
        "loop_pattern_window": st.integers(2, 9),
    },
)
DEFINED = (
    "repeated_result",
    "repeated_call",
    "cyclic_calls",
    "revisited_results",
    "no_novelty",
    "repeated_error",
    "repeated_output",
    "truncated_turns",
    "extra_turn",
)
"""The rules that have a definition among the oracles."""

thresholds = st.fixed_dictionaries({"warn": st.integers(0, 5), "abort": st.integers(0, 9)})


def rules_of(*names: str) -> SearchStrategy[dict[str, Any]]:
    """Return tables of thresholds for some of these rules."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, thresholds))


rules = st.fixed_dictionaries(
    {},
    optional={rule: thresholds for rule in DEFAULT_RULES if rule != "stagnation"}
    | {
        "stagnation": st.fixed_dictionaries(
            {"warn": st.integers(0, 9), "abort": st.integers(0, 20)}
        )
    },
)


def policy_of(limits: dict[str, Any], rules: dict[str, Any]) -> Policy:
    """Return the policy that has these limits and rules and no others."""
    return Policy.from_mapping({"limits": limits, "rules": rules}, base=Policy.none())


policies = st.builds(policy_of, limits, rules) | st.just(Policy())
defined_policies = st.builds(policy_of, limits, rules_of(*DEFINED)) | st.just(
    Policy(rules={rule: False for rule in DEFAULT_RULES if rule not in DEFINED})
)
"""Policies whose every rule and limit has a definition among the oracles."""

tool_options = st.fixed_dictionaries(
    {},
    optional={
        "poll": st.booleans(),
        "exempt": st.booleans(),
        "writes": st.booleans(),
        "ignore_arguments": st.booleans(),
        "finish": st.booleans(),
        "error_patterns": st.just(["^2$"]),
        "rules": rules_of("repeated_result", "repeated_error", "no_novelty", "cyclic_calls"),
    },
)
agent_options = st.fixed_dictionaries(
    {},
    optional={
        "limits": limits,
        "rules": rules_of("repeated_result", "no_novelty", "truncated_turns", "unknown_tool"),
        "tools": st.dictionaries(names, tool_options, max_size=1),
    },
)


def overridden(base: Policy, scope: str, tools: dict[str, Any], agents: dict[str, Any]) -> Policy:
    """Return a policy with what is said of tools and agents."""
    return Policy.from_mapping({"scope": scope, "tools": tools, "agents": agents}, base=base)


overridden_policies = st.builds(
    overridden,
    policies,
    st.sampled_from(["run", "agent"]),
    st.dictionaries(names | st.just("*"), tool_options, max_size=2),
    st.dictionaries(st.sampled_from(["x", "[xy]", "*"]), agent_options, max_size=2),
)
"""Policies that say something of single tools and agents."""

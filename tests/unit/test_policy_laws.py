"""What holds for any policy: a bad one is a `PolicyError`, and three ways of writing agree."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from hypothesis import given
from hypothesis import strategies as some

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS
from otel_loopguard.detectors._stagnation_classes import WEIGHTS
from otel_loopguard.options.rules import RULES
from otel_loopguard.options.tables import SECTIONS
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.pricing import Price, Usage
from otel_loopguard.settings import AgentOptions, Limits, ToolOptions
from otel_loopguard.values.volatile import Masking

WORDS = sorted(
    {
        *SECTIONS,
        *(
            name
            for kind in (Limits, ToolOptions, AgentOptions, Usage, Price, Masking)
            for name in kind.__struct_fields__
        ),
        *RULES["run"],
        *("warn", "abort", "enabled", "weights", "*", "run", "observe", "(", "a b"),
    }
)
json_like = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-3, 12)
    | some.integers()
    | some.floats()
    | some.sampled_from(WORDS)
    | some.text(max_size=8),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.sampled_from(WORDS) | some.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)

# What is right.
Anything: TypeAlias = "some.SearchStrategy[dict[str, Any]]"
names = some.text(string.ascii_letters + string.digits + '*?_. "\\', min_size=1, max_size=6)
keys = some.sampled_from(["etag", "x-id", "seq_no"])
counts = some.integers(0, 500)
amounts = some.integers(0, 100) | some.floats(0, 1e6, allow_nan=False)
AMOUNTS = {"max_duration_s", "max_idle_s", "max_cost_usd"}
limits = some.fixed_dictionaries(
    {},
    optional={
        name: some.booleans()
        if name == "compare_arguments"
        else some.dictionaries(names, counts, max_size=3)
        if name == "max_calls_per_tool"
        else some.integers(2, 256)
        if name == "loop_pattern_window"
        else amounts
        if name in AMOUNTS
        else counts
        for name in Limits.__struct_fields__
    },
)
levels = some.fixed_dictionaries({"warn": counts, "abort": counts})
weighted = some.fixed_dictionaries(
    {"weights": some.dictionaries(some.sampled_from(sorted(WEIGHTS)), some.floats(-9, 9))},
    optional={"warn": amounts, "enabled": some.booleans()},
)


def rules_of(ids: tuple[str, ...]) -> some.SearchStrategy[dict[str, Any]]:
    partly = some.fixed_dictionaries({}, optional={"warn": counts, "enabled": some.booleans()})
    return some.fixed_dictionaries(
        {},
        optional={
            rule: levels | some.just(value=False) | (partly if rule in DEFAULT_RULES else levels)
            for rule in ids
        },
    )


tools: Anything = some.dictionaries(
    names,
    some.fixed_dictionaries(
        {},
        optional={
            "poll": some.booleans(),
            "exempt": some.booleans(),
            "writes": some.booleans(),
            "finish": some.booleans(),
            "ignore_arguments": some.booleans() | some.lists(names, max_size=2),
            "error_patterns": some.lists(some.sampled_from(["^Error", "x+"]), max_size=2),
            "rules": rules_of(RULES["tool"]),
        },
    ),
    max_size=3,
)
price = some.fixed_dictionaries(
    {"input_per_m_usd": amounts, "output_per_m_usd": amounts},
    optional={"cache_read_per_m_usd": amounts, "per_request_usd": amounts},
)
policies: Anything = some.fixed_dictionaries(
    {},
    optional={
        "mode": some.sampled_from(["observe", "enforce"]),
        "scope": some.sampled_from(["run", "agent", "conversation"]),
        "limits": limits,
        "rules": rules_of(RULES["run"]) | some.fixed_dictionaries({"stagnation": weighted}),
        "tools": tools,
        "agents": some.dictionaries(
            names,
            some.fixed_dictionaries(
                {},
                optional={"limits": limits, "rules": rules_of(RULES["agent"]), "tools": tools},
            ),
            max_size=2,
        ),
        "usage": some.fixed_dictionaries(
            {},
            optional={
                "input_includes_cache": some.booleans(),
                "price": price,
                "prices": some.dictionaries(names, price, max_size=2),
            },
        ),
        "masking": some.fixed_dictionaries(
            {}, optional={"enabled": some.booleans(), "keys": some.lists(keys, max_size=2)}
        ),
    },
)


def keywords(said: Mapping[str, Any]) -> dict[str, Any]:
    """Write the limits of a mapping as keyword arguments."""
    beside = {name: value for name, value in said.items() if name != "limits"}
    return {**beside, **said.get("limits", {})}


def toml(value: object) -> str:
    """Write a value as TOML does within a line."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        inside = ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in entries.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        items = cast("list[object]", value)
        return f"[{', '.join(map(toml, items))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


def read(said: Any) -> tuple[Policy | None, str]:
    """Return a policy, or the complaint about it."""
    try:
        return Policy.from_mapping(said), ""
    except PolicyError as error:
        return None, str(error)


@given(json_like)
def test_what_is_wrong_is_a_policy_error_and_nothing_else(said: Any):
    policy, complaint = read(said)

    assert policy == Policy.from_mapping(said) if policy else complaint


@given(some.dictionaries(some.sampled_from(SECTIONS), json_like))
def test_so_it_is_below_the_sections(said: Any):
    policy, complaint = read(said)

    assert policy == Policy.from_mapping(said) if policy else complaint.startswith(tuple(said))


@given(policies)
def test_a_file_a_mapping_and_keywords_say_the_same(said: dict[str, Any]):
    policy = Policy.from_mapping(said)
    text = "\n".join(f"{name} = {toml(value)}" for name, value in said.items())

    assert Policy(**keywords(said)) == policy
    assert Policy.from_toml(text) == policy


@given(policies)
def test_what_is_shown_makes_the_same(said: dict[str, Any]):
    policy = Policy.from_mapping(said)

    assert eval(repr(policy), {"Policy": Policy}) == policy  # noqa: S307 -- what it showed itself


@given(policies, policies)
def test_what_is_laid_over_twice_is_laid_over_once(one: dict[str, Any], other: dict[str, Any]):
    both = Policy.from_mapping(other, base=Policy.from_mapping(one))

    assert Policy.from_mapping(other, base=both) == both
    assert Policy.from_mapping({}, base=both) == both


@given(policies)
def test_what_is_in_force_for_an_agent_is_in_force(said: dict[str, Any]):
    policy = Policy.from_mapping(said)

    for name in ("someone", *policy.settings.agents):
        own = policy.settings.for_agent(name)
        of_each = {kind: own if kind.reach == "agent" else policy.settings for kind in DETECTORS}
        made = {kind.rule for kind, settings in of_each.items() if kind.of(settings) is not None}
        assert made <= set(policy.rule_ids)

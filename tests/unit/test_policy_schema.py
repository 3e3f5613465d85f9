"""The JSON Schema of a policy file: as the options are, and of one mind with what reads them."""

from __future__ import annotations

import copy
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from otel_loopguard.detectors import DETECTORS
from otel_loopguard.policy import Policy, PolicyError
from scripts.policy_schema import LEVELS, TARGET, written
from scripts.rule_page_policy import policy_text
from tests._json_schema import accepts
from tests._tables import is_list, is_table
from tests.unit import test_policy, test_policy_laws, test_policy_tools, test_policy_usage

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SHIPPED: dict[str, Any] = json.loads(TARGET.read_text(encoding="utf-8"))


def table_of(test: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a parametrized test."""
    [marked] = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    return [*marked.args[1]]


def in_file(value: Any) -> bool:
    """Say whether a file can say this: TOML has no null, and names are text."""
    if is_table(value):
        return all(isinstance(key, str) and in_file(each) for key, each in value.items())
    if is_list(value):
        return all(map(in_file, value))
    return isinstance(value, (str, int, float))


def beyond_a_schema(value: Any) -> bool:
    """Say whether JSON has no such number, or takes it for a whole one."""
    if is_table(value):
        return any(map(beyond_a_schema, value.values()))
    if is_list(value):
        return any(map(beyond_a_schema, value))
    return isinstance(value, float) and (math.isnan(value) or value.is_integer())


NO_DEFAULTS = {
    rule
    for rule, of in SHIPPED["$defs"]["rules_of_run"]["properties"].items()
    if "default" not in of
}


def asks_the_rest(value: Any) -> bool:
    """Say whether a rule is switched on whose thresholds have to stand elsewhere in the file."""

    def has_none(said: Any) -> bool:
        return said is True or (is_table(said) and not (said.get("warn") or said.get("abort")))

    return is_table(value) and any(
        (name in NO_DEFAULTS and has_none(said)) or asks_the_rest(said)
        for name, said in value.items()
    )


BAD: list[Any] = [
    *({"limits": limits} for limits, _ in table_of(test_policy.TestErrors.test_limits)),
    *(said for said, _ in table_of(test_policy.TestErrors.test_mappings)),
    *(
        {"rules": {"stagnation": said}}
        for said, _ in table_of(test_policy.TestStagnation.test_mistakes)
    ),
    *({section: said} for section, said, _ in test_policy_tools.NEAR_AND_BAD),
    *(said for said, _ in table_of(test_policy_usage.test_a_mistake_names_its_place)),
]
REFUSED = [said for said in BAD if in_file(said) and not beyond_a_schema(said)]
NO_EXPRESSIONS = (
    {"tools": {"t": {"error_patterns": ["x", "(a"]}}},
    {"masking": {"patterns": ["[a"]}},
)
OTHERS: list[Any] = [
    *(True, False, 0, 1, 3, -1, 257, 2**63, 0.5, -0.5, math.inf),
    *("", "x", "run", "observe", "9", [], ["x"], [""], [3]),
    *({}, {"x": 1}, {"warn": 2}, {"enabled": False}, {"abort": "x", "enabled": False}),
]
FILES = [
    *(policy_text(detector) for detector in DETECTORS),
    *(path.read_text() for path in sorted(ROOT.glob("examples/**/loopguard.toml"))),
    *(
        part.partition('""")')[0]
        for part in (ROOT / "docs" / "policy.md").read_text().split('from_toml("""')[1:]
    ),
]


def test_the_shipped_file_is_what_the_options_say():
    assert TARGET.read_text(encoding="utf-8") == written(), "run `make policy-schema`"


@pytest.mark.parametrize("said", REFUSED, ids=repr)
def test_what_is_refused_is_refused(said: Any):
    assert accepts(said, SHIPPED) == (said in NO_EXPRESSIONS)
    with pytest.raises(PolicyError):
        Policy.from_mapping(said)


def test_most_mistakes_can_stand_in_a_file():
    assert len(REFUSED) > 80


@pytest.mark.parametrize("text", FILES)
def test_what_is_shown_is_accepted(text: str):
    assert accepts(tomllib.loads(text), SHIPPED)


@pytest.mark.parametrize(
    "said",
    [
        {"rules": {"sweep": True}},
        {"rules": {"sweep": {"enabled": True}}},
        {"rules": {"sweep": {}}},
        {"limits": {"loop_pattern_window": 1}},
    ],
)
def test_what_no_rule_takes_by_itself_is_refused(said: Any):
    assert not accepts(said, SHIPPED)
    with pytest.raises(PolicyError):
        Policy.from_mapping(said)


@pytest.mark.parametrize(
    "said",
    [
        {"rules": {"sweep": False, "repeated_call": True, "repeated_result": 0}},
        {"rules": {"sweep": {"enabled": False}, "similar_calls": {"abort": 3}}},
        {"rules": {"sweep": {"abort": 5}}, "tools": {"t": {"rules": {"sweep": True}}}},
        {"limits": {"loop_pattern_window": 0, "max_steps": 0, "max_cost_usd": 0}},
        {"rules": {"stagnation": {"weights": {"again": -100}, "warn": 1.5}}},
    ],
)
def test_what_is_accepted_is_accepted(said: Any):
    assert accepts(said, SHIPPED)
    assert Policy.from_mapping(said)


@given(test_policy_laws.policies)
def test_any_policy_is_accepted(said: dict[str, Any]):
    assert accepts(said, SHIPPED)


def is_valid(said: Any) -> bool:
    try:
        Policy.from_mapping(said)
    except PolicyError:
        return False
    return True


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return each container in a value with each of its keys, all the way down."""
    keys: Any = value if is_table(value) else range(len(value))
    here = [(value, key) for key in keys]
    inside: list[Any] = [value[key] for _, key in here if type(value[key]) in (dict, list)]
    return [*here, *(place for each in inside for place in places(each))]


@some.composite
def nearly_policies(draw: some.DrawFn) -> dict[str, Any]:
    """Draw a policy with one thing changed."""
    said = copy.deepcopy(draw(test_policy_laws.policies.filter(bool)))
    container, key = draw(some.sampled_from(places(said)))
    other = draw(some.sampled_from(OTHERS))
    if isinstance(container, dict) and draw(some.booleans()):
        container[draw(some.sampled_from(test_policy_laws.WORDS))] = other
    else:
        container[key] = other
    return said


@given(nearly_policies())
def test_what_is_nearly_a_policy_is_judged_alike(said: Any):
    if not (beyond_a_schema(said) or asks_the_rest(said)):
        assert accepts(said, SHIPPED) == is_valid(said)


def test_defaults_of_rules_are_in_it():
    rules = SHIPPED["$defs"]["rules_of_run"]["properties"]

    assert rules["repeated_result"]["default"] == dict(zip(LEVELS, (3, 5), strict=True))
    assert rules["extra_turn"]["default"] == {"warn": 1}
    assert "default" not in rules["sweep"]


def test_everything_that_can_be_set_is_described():
    undescribed = [
        (kind, name)
        for kind, of in SHIPPED["$defs"].items()
        for table in (of, *of.get("anyOf", ()))
        for name, option in table.get("properties", {}).items()
        if len(option.get("description", "")) < 10 and option != {"const": False}
    ]

    assert undescribed == []

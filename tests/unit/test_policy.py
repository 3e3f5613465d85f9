"""Policies: what is in force, and what is said of a bad one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard.detectors import DEFAULT_RULES, Thresholds
from otel_loopguard.policy import Policy, PolicyError

OFF = "(0 or None switches it off)"
WHOLE = f"expected a whole number of at least 1 {OFF}"
SECONDS = f"expected a number of seconds above 0 {OFF}"
WINDOW = "expected a whole number from 2 to 256 (0 or nothing switches it off)"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_steps": True}, f"max_steps: {WHOLE}, got True"),
        ({"max_steps": -1}, f"max_steps: {WHOLE}, got -1"),
        ({"max_steps": 2.5}, f"max_steps: {WHOLE}, got 2.5"),
        ({"max_steps": "5"}, f"max_steps: {WHOLE}, got '5'"),
        ({"max_llm_calls": [1]}, f"max_llm_calls: {WHOLE}, got [1]"),
        ({"max_duration_s": True}, f"max_duration_s: {SECONDS}, got True"),
        ({"max_duration_s": -0.5}, f"max_duration_s: {SECONDS}, got -0.5"),
        ({"max_duration_s": math.inf}, f"max_duration_s: {SECONDS}, got inf"),
        ({"max_duration_s": math.nan}, f"max_duration_s: {SECONDS}, got nan"),
        ({"max_duration_s": "60"}, f"max_duration_s: {SECONDS}, got '60'"),
        ({"compare_arguments": 1}, "compare_arguments: expected true or false, got 1"),
        ({"loop_pattern_window": 1}, f"loop_pattern_window: {WINDOW}, got 1"),
        ({"loop_pattern_window": 257}, f"loop_pattern_window: {WINDOW}, got 257"),
        (
            {"max_calls_per_tool": {"send": True}},
            f"max_calls_per_tool.send: {WHOLE}, got True",
        ),
        (
            {"max_calls_per_tool": 3},
            "max_calls_per_tool: expected a table of names and values, got 3",
        ),
        (
            {"max_calls_per_tool": {1: 3}},
            "max_calls_per_tool: expected names as keys, got 1",
        ),
        ({"max_stepz": 5}, "max_stepz: there is no such option; did you mean 'max_steps'?"),
    ],
)
def test_a_bad_limit_is_named_with_its_value_and_what_was_expected(
    limits: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError) as in_code:
        Policy(**limits)
    assert str(in_code.value) == message
    with pytest.raises(PolicyError) as in_a_file:
        Policy.from_mapping({"limits": limits})
    assert str(in_a_file.value) == f"limits.{message}"


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"mode": "enforced"}, "mode: expected 'observe' or 'enforce', got 'enforced'"),
        ({"mode": ["enforce"]}, "mode: expected 'observe' or 'enforce', got ['enforce']"),
        ({"limit": {}}, "limit: there is no such option; did you mean 'limits'?"),
        ({"zzz": 1}, "zzz: there is no such option; expected one of mode, limits, rules"),
        ({"limits": 5}, "limits: expected a table of names and values, got 5"),
        ({"rules": []}, "rules: expected a table of names and values, got []"),
        (
            {"rules": {"repeated_results": {}}},
            "rules.repeated_results: there is no such option; did you mean 'repeated_result'?",
        ),
        (
            {"rules": {"repeated_result": {"abbort": 5}}},
            "rules.repeated_result.abbort: there is no such option; did you mean 'abort'?",
        ),
        (
            {"rules": {"repeated_result": {"abort": True}}},
            f"rules.repeated_result.abort: {WHOLE}, got True",
        ),
        (
            {"rules": {"repeated_result": {"enabled": 1}}},
            "rules.repeated_result.enabled: expected true or false, got 1",
        ),
        (
            {"rules": {"repeated_result": 5}},
            "rules.repeated_result: expected a table of names and values, got 5",
        ),
    ],
)
def test_a_bad_policy_is_told_by_path(mapping: Mapping[str, object], message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        Policy.from_mapping(mapping)
    assert str(raised.value) == message


def test_a_policy_that_is_no_table_is_told() -> None:
    not_a_mapping: Any = [1]
    with pytest.raises(PolicyError, match=r"policy: expected a table of names and values, got \[1"):
        Policy.from_mapping(not_a_mapping)


def test_a_file_is_named_in_errors() -> None:
    with pytest.raises(PolicyError, match=r"^team\.toml: limits\.max_steps: expected a whole"):
        Policy.from_toml("[limits]\nmax_steps = -1", source="team.toml")
    with pytest.raises(PolicyError, match=r"^team\.toml: expected a TOML file, but .*line 2"):
        Policy.from_toml("[limits]\nmax_steps = = 1", source="team.toml")


def test_the_default_policy_has_the_default_rules_and_no_limits() -> None:
    assert Policy().rule_ids == ("repeated_result", "repeated_call", "cyclic_calls")
    assert dict(Policy().settings.rules) == DEFAULT_RULES
    assert Policy().mode is None


def test_none_has_nothing_but_what_is_named() -> None:
    assert Policy.none().rule_ids == ()
    assert Policy.none().with_limits(max_steps=5).rule_ids == ("step_budget",)


def test_zero_and_none_switch_a_limit_off() -> None:
    on = Policy(max_steps=5, max_duration_s=2, max_calls_per_tool={"send": 1})
    assert on.rule_ids[:3] == ("step_budget", "tool_call_budget", "time_budget")
    assert on.with_limits(max_steps=0, max_duration_s=0.0, max_calls_per_tool=None) == Policy()
    assert on.with_limits(max_steps=None, max_duration_s=None, max_calls_per_tool={}) == Policy()
    assert Policy(max_calls_per_tool={"send": 0}) == Policy()


@pytest.mark.parametrize("off", [False, {"enabled": False}])
def test_a_rule_can_be_switched_off_and_on_again(off: object) -> None:
    without = Policy(rules={"cyclic_calls": off})
    assert "cyclic_calls" not in without.rule_ids
    again = Policy.from_mapping({"rules": {"cyclic_calls": True}}, base=without)
    assert again == Policy()


def test_thresholds_are_laid_over_the_defaults() -> None:
    policy = Policy(rules={"repeated_result": {"abort": 4}, "cyclic_calls": {"warn": 0}})
    assert policy.settings.rules["repeated_result"] == Thresholds(warn=3, abort=4)
    assert policy.settings.rules["cyclic_calls"] == Thresholds(warn=None, abort=3)


def test_a_mapping_is_laid_over_its_base() -> None:
    base = Policy(mode="enforce", max_steps=5, rules={"cyclic_calls": False})
    assert Policy.from_mapping({}, base=base) == base
    changed = Policy.from_mapping({"mode": "observe", "limits": {"max_llm_calls": 2}}, base=base)
    assert changed.mode == "observe"
    assert changed.settings.limits.max_steps == 5
    assert changed.settings.limits.max_llm_calls == 2
    assert "cyclic_calls" not in changed.rule_ids


def test_code_mapping_and_file_say_the_same() -> None:
    in_code = Policy(mode="observe", max_steps=100, rules={"repeated_call": {"warn": 2}})
    mapping = {
        "mode": "observe",
        "limits": {"max_steps": 100},
        "rules": {"repeated_call": {"warn": 2}},
    }
    text = 'mode = "observe"\n[limits]\nmax_steps = 100\n[rules.repeated_call]\nwarn = 2\n'
    assert in_code == Policy.from_mapping(mapping) == Policy.from_toml(text)
    assert in_code != Policy()
    assert in_code != "a policy"


def test_a_policy_cannot_be_changed_and_shows_what_it_holds() -> None:
    policy: Any = Policy(max_steps=5)
    with pytest.raises(AttributeError):
        policy.mode = "enforce"
    assert "max_steps=5" in repr(policy)
    with pytest.raises(TypeError):
        hash(policy)

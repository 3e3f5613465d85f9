"""Policies: what they accept, what is in force then, and what is said of a bad one."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_type_hints

import pytest

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS, Limits, Thresholds
from otel_loopguard.guard import LoopGuard
from otel_loopguard.options.kinds import mode_of
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.options.rules import RULES
from otel_loopguard.options.tables import SECTIONS
from otel_loopguard.policy import LimitOptions, Policy, PolicyError
from otel_loopguard.settings import Settings

NUMBER = "expected a whole number of at least 1 (0 switches it off)"
SECONDS = "expected a number of seconds above 0 (0 switches it off)"
DOLLARS = "expected US dollars above 0 (0 switches it off)"
RATE = "expected a whole number from 1 to 10000 (0 switches it off)"
WINDOW = "expected a whole number from 2 to 256 (0 switches it off)"
LARGEST = "a whole number of at most 9223372036854775807"
SCORE = "expected a score above 0 (0 switches it off)"
WEIGHT = "expected a number from -100 to 100"
SCOPE = "expected 'run', 'agent' or 'conversation'"
SWITCH = "expected true or false"
TABLE = "expected a table of names and values"
RULE = "expected a table of warn, abort and enabled, or true or false"

MEASURES = {"max_calls_per_tool", "max_duration_s", "max_idle_s", "max_cost_usd"}
COUNTS = sorted({*Limits.__struct_fields__} - MEASURES - {"compare_arguments"})


def limits_of(**limits: Any) -> Limits:
    return Policy(**limits).settings.limits


def rules_of(rules: Mapping[str, object], base: Policy | None = None) -> Mapping[str, Thresholds]:
    return Policy.from_mapping({"rules": rules}, base=base).settings.rules


class TestWhatIsInForce:
    def test_by_default_the_rules_and_no_limits(self):
        policy = Policy()

        assert policy.mode is None
        assert policy.settings == Settings(Limits(), DEFAULT_RULES)
        assert policy.rule_ids == tuple(d.rule for d in DETECTORS if d.rule in DEFAULT_RULES)
        assert policy.warnings == ()

    def test_nothing(self):
        assert Policy.none().settings == Settings(Limits(), {})
        assert Policy.none().rule_ids == ()

    def test_the_ids_of_what_is_on(self):
        every: Any = dict.fromkeys(LIMIT_OF_RULE.values(), 2)
        policy = Policy(**every, rules={"cyclic_calls": False})
        on = {*LIMIT_OF_RULE, *DEFAULT_RULES} - {"cyclic_calls"}

        assert policy.rule_ids == tuple(d.rule for d in DETECTORS if d.rule in on)

    @pytest.mark.parametrize(
        ("limits", "rule"),
        [
            *(({option: 2}, rule) for rule, option in LIMIT_OF_RULE.items()),
            ({"max_calls_per_tool": {"a": 1}}, "tool_call_budget"),
            ({"max_input_tokens": 1}, "token_budget"),
            ({"max_output_tokens": 1}, "token_budget"),
        ],
    )
    def test_a_limit_switches_on_its_rule(self, limits: Any, rule: str):
        assert Policy.none().with_limits(**limits).rule_ids == (rule,)

    def test_a_mapping_says_the_same_as_keywords(self):
        keywords = Policy(mode="enforce", max_steps=5, rules={"repeated_call": {"warn": 2}})
        mapping = {
            "mode": "enforce",
            "limits": {"max_steps": 5},
            "rules": {"repeated_call": {"warn": 2}},
        }

        assert Policy.from_mapping(mapping) == keywords

    def test_so_does_a_file(self):
        text = """
            mode = "observe"

            [limits]
            max_steps = 50
            max_duration_s = 2.5
            compare_arguments = false

            [limits.max_calls_per_tool]
            send_mail = 3
            "read file" = 0

            [rules.repeated_result]
            warn = 4
            abort = 6

            [rules.cyclic_calls]
            enabled = false
        """

        assert Policy.from_toml(text) == Policy(
            mode="observe",
            max_steps=50,
            max_duration_s=2.5,
            compare_arguments=False,
            max_calls_per_tool={"send_mail": 3},
            rules={"repeated_result": {"warn": 4, "abort": 6}, "cyclic_calls": False},
        )

    def test_an_empty_mapping_and_an_empty_file_say_nothing(self):
        assert Policy.from_mapping({}) == Policy.from_toml("") == Policy()
        assert Policy.from_mapping({"mode": None, "limits": None, "rules": None}) == Policy()

    def test_a_mapping_is_laid_over_a_base(self):
        base = Policy(mode="enforce", max_steps=5, max_tool_calls=7, rules={"repeated_call": False})
        policy = Policy.from_mapping({"limits": {"max_steps": 0}}, base=base)

        assert policy.mode == "enforce"
        assert policy.settings.limits == Limits(max_tool_calls=7)
        assert set(policy.settings.rules) == {*DEFAULT_RULES} - {"repeated_call"}
        assert Policy.from_mapping({}, base=base) == base
        assert Policy.from_mapping({"mode": "observe"}, base=base).mode == "observe"

    @pytest.mark.parametrize("scope", ["run", "agent", "conversation"])
    def test_a_scope(self, scope: Any):
        policy = Policy(scope=scope)

        assert policy.settings.scope == scope
        assert Policy.from_toml(f"scope = '{scope}'") == policy
        assert Policy.from_mapping({}, base=policy) == policy
        assert Policy.from_mapping({"scope": None}, base=policy) == policy


class TestLimits:
    @pytest.mark.parametrize("name", COUNTS)
    def test_whole_numbers(self, name: str):
        assert getattr(limits_of(**{name: 7}), name) == 7
        assert getattr(limits_of(**{name: 0}), name) is None
        assert getattr(limits_of(**{name: None}), name) is None

    @pytest.mark.parametrize("name", ["max_duration_s", "max_idle_s", "max_cost_usd"])
    def test_seconds_and_dollars(self, name: str):
        assert getattr(limits_of(**{name: 60}), name) == 60.0
        assert getattr(limits_of(**{name: 0.25}), name) == 0.25
        assert getattr(limits_of(**{name: 0}), name) is None
        assert getattr(limits_of(**{name: None}), name) is None

    def test_the_largest_of_each(self):
        assert limits_of(max_steps=2**63 - 1).max_steps == 2**63 - 1
        assert limits_of(max_steps_per_minute=10_000).max_steps_per_minute == 10_000
        assert limits_of(max_duration_s=sys.float_info.max).max_duration_s == sys.float_info.max

    def test_calls_per_tool(self):
        assert limits_of(max_calls_per_tool={"a": 2, "b": 0}).max_calls_per_tool == {"a": 2}
        assert limits_of(max_calls_per_tool=None).max_calls_per_tool == {}

    def test_the_shortest_and_the_widest_window(self):
        assert limits_of(loop_pattern_window=2).loop_pattern_window == 2
        assert limits_of(loop_pattern_window=256).loop_pattern_window == 256

    def test_they_can_be_changed(self):
        policy = Policy(mode="enforce", max_steps=5, rules={"repeated_call": False})
        changed = policy.with_limits(max_steps=None, max_tool_calls=2)

        assert changed == Policy(mode="enforce", max_tool_calls=2, rules={"repeated_call": False})
        assert policy.settings.limits.max_steps == 5


class TestRules:
    def test_thresholds(self):
        rules = rules_of({"repeated_result": {"warn": 2, "abort": 9}})

        assert rules["repeated_result"] == Thresholds(warn=2, abort=9)
        assert rules["cyclic_calls"] == DEFAULT_RULES["cyclic_calls"]

    def test_what_is_not_said_stays(self):
        rules = rules_of({"repeated_result": {"abort": 9}})

        assert rules["repeated_result"] == Thresholds(warn=3, abort=9)
        assert rules_of({"repeated_result": {}}) == DEFAULT_RULES

    def test_a_level_can_be_off(self):
        no_abort = rules_of({"repeated_result": {"abort": 0}})
        no_warn = rules_of({"repeated_result": {"warn": None}})

        assert no_abort["repeated_result"] == Thresholds(warn=3)
        assert no_warn["repeated_result"] == Thresholds(abort=5)

    @pytest.mark.parametrize(
        "off", [False, None, 0, {"enabled": False}, {"enabled": False, "warn": 3}]
    )
    def test_a_rule_can_be_off(self, off: object):
        assert set(rules_of({"repeated_result": off})) == {*DEFAULT_RULES} - {"repeated_result"}
        assert rules_of({"repeated_result": off}, base=Policy.none()) == {}

    @pytest.mark.parametrize("on", [True, {"enabled": True}, {}])
    def test_a_rule_can_be_on(self, on: object):
        assert rules_of({"repeated_result": on}, base=Policy.none()) == {
            "repeated_result": Thresholds(warn=3, abort=5)
        }

    def test_a_rule_that_is_on_keeps_its_thresholds(self):
        base = Policy(rules={"repeated_result": {"warn": 7, "abort": 8}})
        rules = rules_of({"repeated_result": True}, base=base)

        assert rules["repeated_result"] == Thresholds(warn=7, abort=8)

    def test_a_rule_without_thresholds_of_its_own(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delitem(DEFAULT_RULES, "no_novelty")

        assert "no_novelty" not in rules_of({})
        assert rules_of({"no_novelty": {"warn": 4}})["no_novelty"] == Thresholds(warn=4)
        base = Policy(rules={"no_novelty": {"warn": 4, "abort": 9}})
        assert rules_of({"no_novelty": True}, base=base) == base.settings.rules
        for on in (True, {}, {"enabled": True}):
            with pytest.raises(PolicyError) as caught:
                rules_of({"no_novelty": on})
            assert str(caught.value) == (
                "rules.no_novelty: expected warn, abort or both, "
                f"for this rule has no thresholds of its own, got {on!r}"
            )


class TestStagnation:
    def test_it_goes_by_a_score(self):
        rules = rules_of({"stagnation": {"warn": 7.5, "abort": 12}})

        assert rules["stagnation"] == Thresholds(warn=7.5, abort=12.0)
        assert rules_of({"stagnation": {"warn": 0}})["stagnation"].warn is None

    def test_weights(self):
        weights = {"again": 3, "error": -0.5}
        base = Policy(rules={"stagnation": {"warn": 9.5, "abort": 99, "weights": weights}})
        said = {"rules": {"stagnation": {"weights": {"again": None, "novel": 0}}}}

        assert base.settings.weights == {"again": 3.0, "error": -0.5}
        assert base.settings.rules["stagnation"] == Thresholds(warn=9.5, abort=99.0)
        assert Policy.from_mapping(said, base=base).settings.weights == {
            "error": -0.5,
            "novel": 0.0,
        }
        assert Policy.from_mapping({"rules": {"stagnation": False}}, base=base) != base
        assert repr(base) == (
            "Policy(rules={'stagnation': {'warn': 9.5, 'abort': 99.0, "
            "'weights': {'again': 3.0, 'error': -0.5}}})"
        )

    def test_weights_are_kept_where_it_is_off(self):
        policy = Policy(rules={"stagnation": {"enabled": False, "weights": {"again": 3}}})

        assert repr(policy) == (
            "Policy(rules={'stagnation': {'enabled': False, 'weights': {'again': 3.0}}})"
        )

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            ({"warn": "x"}, f"warn: {SCORE}, got 'x'"),
            ({"abort": -1}, f"abort: {SCORE}, got -1"),
            ({"weights": 5}, "weights: expected a table of classes and numbers, got 5"),
            ({"weights": {"again": "3"}}, f"weights.again: {WEIGHT}, got '3'"),
            ({"weights": {"again": True}}, f"weights.again: {WEIGHT}, got True"),
            ({"weights": {"again": math.nan}}, f"weights.again: {WEIGHT}, got nan"),
            ({"weights": {"again": -100.5}}, f"weights.again: {WEIGHT}, got -100.5"),
            ({"weights": {"again": 101}}, f"weights.again: {WEIGHT}, got 101"),
            (
                {"weights": {"agan": 3}},
                "weights.agan: there is no such option here; did you mean 'again'?",
            ),
        ],
    )
    def test_mistakes(self, said: Mapping[str, object], message: str):
        with pytest.raises(PolicyError) as caught:
            Policy(rules={"stagnation": said})

        assert str(caught.value) == f"rules.stagnation.{message}"

    @pytest.mark.parametrize("section", ["tools", "agents"])
    def test_weights_are_for_all(self, section: str):
        said: Any = {section: {"a": {"rules": {"stagnation": {"weights": {}}}}}}
        with pytest.raises(PolicyError, match=r"set them under \[rules\.stagnation\], for all"):
            Policy.from_mapping(said)


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


class TestErrors:
    @pytest.mark.parametrize(
        ("limits", "message"),
        [
            ({"max_steps": True}, f"max_steps: {NUMBER}, got True"),
            ({"max_steps": False}, f"max_steps: {NUMBER}, got False"),
            ({"max_steps": -1}, f"max_steps: {NUMBER}, got -1"),
            ({"max_steps": 1.0}, f"max_steps: {NUMBER}, got 1.0"),
            ({"max_llm_calls": "5"}, f"max_llm_calls: {NUMBER}, got '5'"),
            ({"max_tool_calls": []}, f"max_tool_calls: {NUMBER}, got []"),
            ({"max_repeated_calls": -3}, f"max_repeated_calls: {NUMBER}, got -3"),
            ({"max_same_tool_calls": 2.5}, f"max_same_tool_calls: {NUMBER}, got 2.5"),
            ({"loop_pattern_window": 1}, f"loop_pattern_window: {WINDOW}, got 1"),
            ({"loop_pattern_window": 257}, f"loop_pattern_window: {WINDOW}, got 257"),
            ({"loop_pattern_window": True}, f"loop_pattern_window: {NUMBER}, got True"),
            ({"max_steps": 2**63}, f"max_steps: expected {LARGEST}, got {2**63}"),
            ({"max_total_tokens": 1.5}, f"max_total_tokens: {NUMBER}, got 1.5"),
            ({"max_context_tokens": "9k"}, f"max_context_tokens: {NUMBER}, got '9k'"),
            ({"max_steps_per_minute": 10_001}, f"max_steps_per_minute: {RATE}, got 10001"),
            ({"max_steps_per_minute": -1}, f"max_steps_per_minute: {NUMBER}, got -1"),
            ({"max_idle_s": -1}, f"max_idle_s: {SECONDS}, got -1"),
            ({"max_idle_s": 10**400}, f"max_idle_s: {SECONDS}, got 1{'0' * 199}..."),
            ({"max_cost_usd": True}, f"max_cost_usd: {DOLLARS}, got True"),
            ({"max_cost_usd": -0.01}, f"max_cost_usd: {DOLLARS}, got -0.01"),
            ({"max_cost_usd": math.inf}, f"max_cost_usd: {DOLLARS}, got inf"),
            ({"max_cost_usd": "$1"}, f"max_cost_usd: {DOLLARS}, got '$1'"),
            (
                {"max_calls_per_tool": {"a b": 1.5}},
                f'max_calls_per_tool."a b": {NUMBER}, got 1.5',
            ),
            ({"max_duration_s": True}, f"max_duration_s: {SECONDS}, got True"),
            ({"max_duration_s": -0.5}, f"max_duration_s: {SECONDS}, got -0.5"),
            ({"max_duration_s": math.nan}, f"max_duration_s: {SECONDS}, got nan"),
            ({"max_duration_s": math.inf}, f"max_duration_s: {SECONDS}, got inf"),
            ({"max_duration_s": "1m"}, f"max_duration_s: {SECONDS}, got '1m'"),
            ({"compare_arguments": 1}, f"compare_arguments: {SWITCH}, got 1"),
            ({"compare_arguments": None}, f"compare_arguments: {SWITCH}, got None"),
            ({"max_calls_per_tool": 3}, f"max_calls_per_tool: {TABLE}, got 3"),
            ({"max_calls_per_tool": {"a": True}}, f"max_calls_per_tool.a: {NUMBER}, got True"),
            ({"max_calls_per_tool": {1: 1}}, "max_calls_per_tool: expected names as keys, got 1"),
            ({"max_step": 3}, "max_step: there is no such option here; did you mean 'max_steps'?"),
            (
                {"repeated_result": True},
                (
                    "repeated_result: there is no such option here; "
                    "that is a rule: set rules.repeated_result"
                ),
            ),
        ],
    )
    def test_limits(self, limits: dict[str, Any], message: str):
        made: list[tuple[str, Callable[[], object]]] = [
            ("", lambda: Policy(**limits)),
            ("", lambda: Policy.none().with_limits(**limits)),
            ("limits.", lambda: Policy.from_mapping({"limits": limits})),
        ]
        for path, make in made:
            with pytest.raises(PolicyError) as caught:
                make()
            assert str(caught.value) == path + message

    @pytest.mark.parametrize("part", sorted({*SECTIONS} - {"limits"}))
    def test_where_limits_alone_are_taken(self, part: str):
        given: Any = {part: None}
        for make in (LoopGuard, Policy().with_limits):
            with pytest.raises(PolicyError) as caught:
                make(**given)
            assert str(caught.value) == (
                f"{part}: there is no such option here; LoopGuard and with_limits take limits "
                f"alone; write LoopGuard(Policy({part}=...))"
            )

    def test_limits_are_arguments_of_their_own(self):
        given: Any = {"limits": {"max_steps": 100}}
        for make in (LoopGuard, Policy, Policy().with_limits):
            with pytest.raises(PolicyError) as caught:
                make(**given)
            assert str(caught.value) == (
                "limits: there is no such option here; "
                "each limit is an argument of its own: max_steps=100"
            )

    @pytest.mark.parametrize(
        ("mapping", "message"),
        [
            ({"mode": "stop"}, "mode: expected 'observe' or 'enforce', got 'stop'"),
            ({"mode": True}, "mode: expected 'observe' or 'enforce', got True"),
            ({"mode": ["observe"]}, "mode: expected 'observe' or 'enforce', got ['observe']"),
            ({"scope": "thread"}, f"scope: {SCOPE}, got 'thread'"),
            ({"scope": 1}, f"scope: {SCOPE}, got 1"),
            ({"limits": 5}, f"limits: {TABLE}, got 5"),
            ({"limits": {5: 5}}, "limits: expected names as keys, got 5"),
            ({"rules": ["repeated_call"]}, f"rules: {TABLE}, got ['repeated_call']"),
            ({"rules": {"repeated_call": 3}}, f"rules.repeated_call: {RULE}, got 3"),
            ({"rules": {"repeated_call": "on"}}, f"rules.repeated_call: {RULE}, got 'on'"),
            (
                {"rules": {"repeated_call": {"warn": "3"}}},
                f"rules.repeated_call.warn: {NUMBER}, got '3'",
            ),
            (
                {"rules": {"repeated_call": {"abort": True}}},
                f"rules.repeated_call.abort: {NUMBER}, got True",
            ),
            (
                {"rules": {"repeated_call": {"enabled": 0}}},
                f"rules.repeated_call.enabled: {SWITCH}, got 0",
            ),
            (
                {"rules": {"repeated_call": {"warning": 3}}},
                "rules.repeated_call.warning: there is no such option here; did you mean 'warn'?",
            ),
            (
                {"rules": {"repeated_calls": True}},
                "rules.repeated_calls: there is no such option here; did you mean 'repeated_call'?",
            ),
            (
                {"rules": {"xyz": True}},
                "rules.xyz: there is no such option here; expected one of "
                + ", ".join(RULES["run"]),
            ),
            (
                {"rules": {"token_budget": {"abort": 5}}},
                (
                    "rules.token_budget: there is no such option here; "
                    "that rule is a limit: set limits.max_total_tokens"
                ),
            ),
            (
                {"rules": {"max_steps": 100}},
                (
                    "rules.max_steps: there is no such option here; "
                    "that is a limit: set limits.max_steps"
                ),
            ),
            (
                {"agents": {"a": {"rules": {"max_steps": 100}}}},
                (
                    'agents."a".rules.max_steps: there is no such option here; '
                    "that is a limit: set limits.max_steps"
                ),
            ),
            (
                {"rules": {"repeated_call": {"weights": {}}}},
                (
                    "rules.repeated_call.weights: there is no such option here; "
                    "only stagnation has weights"
                ),
            ),
            (
                {"repeated_call": True},
                "repeated_call: there is no such option here; write it under [rules]",
            ),
            (
                {"poll": True},
                "poll: there is no such option here; write it under [tools] and the tool's name",
            ),
            (
                {"price": {}},
                "price: there is no such option here; write it under [usage]",
            ),
            (
                {"m" * 300: 3},
                (
                    f"{'m' * 200}...: there is no such option here; expected one of mode, scope, "
                    "steer, limits, rules, tools, agents, usage, masking"
                ),
            ),
            (
                {"limit": {"max_steps": 3}},
                "limit: there is no such option here; did you mean 'limits'?",
            ),
            (
                {"max_steps": 3},
                "max_steps: there is no such option here; write it under [limits]",
            ),
            ({1: 2}, "policy: expected names as keys, got 1"),
            (["limits"], f"policy: {TABLE}, got ['limits']"),
        ],
    )
    def test_mappings(self, mapping: Any, message: str):
        with pytest.raises(PolicyError) as caught:
            Policy.from_mapping(mapping)

        assert str(caught.value) == message

    def test_keywords(self):
        rules: Any = ["repeated_call"]
        mode: Any = "on"
        with pytest.raises(PolicyError, match=r"^rules: expected a table"):
            Policy(rules=rules)
        with pytest.raises(PolicyError, match=r"^rules\.repeated_call\.warn: expected a whole"):
            Policy(rules={"repeated_call": {"warn": -1}})
        with pytest.raises(PolicyError, match=r"^mode: expected 'observe' or 'enforce', got 'on'"):
            Policy(mode=mode)

    def test_files(self):
        with pytest.raises(PolicyError) as caught:
            Policy.from_toml("[limits]\nmax_steps = -1", source="agents.toml")
        assert str(caught.value) == f"agents.toml: limits.max_steps: {NUMBER}, got -1"

        with pytest.raises(PolicyError) as caught:
            Policy.from_toml("[limits]\nmax_steps = = 3")
        assert str(caught.value).startswith("expected TOML, but ")
        assert "line 2" in str(caught.value)

        with pytest.raises(PolicyError, match=r"^expected TOML, but more than 30 tables and "):
            Policy.from_toml(".".join(3000 * "a") + " = 1")

        with pytest.raises(PolicyError, match=r"^agents\.toml: expected a TOML file, but "):
            Policy.from_toml("[limits]\nmax_steps = = 3", source="agents.toml")
        with pytest.raises(PolicyError, match=r"^limits\.max_steps: expected a whole number"):
            Policy.from_toml("[limits]\nmax_steps = -1")

    def test_they_are_value_errors_without_a_trail(self):
        with pytest.raises(ValueError, match="TOML") as caught:
            Policy.from_toml("=")

        assert caught.value.__suppress_context__

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ("x" * 1000, f"'{'x' * 199}..."),
            (Unshowable(), "a Unshowable that cannot be shown"),
            (10**5000, "a int that cannot be shown"),
        ],
        ids=["long", "raises", "has too many digits"],
    )
    def test_what_is_long_or_cannot_be_shown(self, value: Any, shown: str):
        with pytest.raises(PolicyError) as caught:
            Policy(max_duration_s=value)

        assert str(caught.value) == f"max_duration_s: {SECONDS}, got {shown}"

    @pytest.mark.parametrize("value", [None, "observe", "enforce"])
    def test_a_mode_that_there_is(self, value: str | None):
        assert mode_of(value, "OTEL_LOOPGUARD_MODE") == value

    def test_a_mode_that_there_is_not(self):
        with pytest.raises(PolicyError, match=r"^OTEL_LOOPGUARD_MODE: expected 'observe' or"):
            mode_of("Observe", "OTEL_LOOPGUARD_MODE")


class TestChecked:
    def test_a_policy_and_nothing_will_do(self):
        policy = Policy(max_steps=3)

        assert Policy.checked(policy) is policy
        assert Policy.checked(None) == Policy()

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                "loopguard.toml",
                (
                    "policy: expected a Policy or None; read a file with "
                    "read_policy('loopguard.toml'), got 'loopguard.toml'"
                ),
            ),
            (
                {"max_steps": 3},
                (
                    "policy: expected a Policy or None; make one with "
                    "Policy.from_mapping(...), got {'max_steps': 3}"
                ),
            ),
            (5, "policy: expected a Policy or None, got 5"),
            (
                Policy,
                "policy: expected a Policy or None, got <class 'otel_loopguard.policy.Policy'>",
            ),
        ],
    )
    def test_nothing_else_will(self, given: object, message: str):
        with pytest.raises(PolicyError) as caught:
            Policy.checked(given)

        assert str(caught.value) == message

    def test_a_base_is_checked(self):
        base: Any = {"max_steps": 3}
        with pytest.raises(PolicyError, match=r"^policy: expected a Policy"):
            Policy.from_mapping({}, base=base)


class TestValue:
    def test_policies_are_equal_by_what_is_in_force(self):
        assert Policy(max_steps=3) == Policy.from_toml("[limits]\nmax_steps = 3")
        assert Policy(max_steps=0) == Policy()
        assert Policy(max_steps=3) != Policy(max_steps=4)
        assert Policy(mode="observe") != Policy()
        assert Policy(rules={"repeated_call": False}) != Policy()
        assert Policy() != "policy"

    def test_they_are_no_keys(self):
        with pytest.raises(TypeError, match="unhashable"):
            hash(Policy())

    def test_they_show_what_is_in_force(self):
        assert repr(Policy()) == "Policy()"
        assert repr(Policy.none()) == "Policy.none()"
        assert repr(Policy.none().with_limits(max_steps=3)) == (
            "Policy.none().with_limits(max_steps=3)"
        )
        observing = Policy.from_mapping({"mode": "observe"}, base=Policy.none())
        assert repr(observing).startswith("Policy(mode='observe', rules={")
        policy = Policy(
            mode="enforce",
            scope="agent",
            max_steps=3,
            rules={"cyclic_calls": False, "repeated_call": {"warn": 9, "abort": 19}},
        )
        assert repr(policy) == (
            "Policy(mode='enforce', scope='agent', max_steps=3, rules={"
            "'repeated_call': {'warn': 9, 'abort': 19}, 'cyclic_calls': False})"
        )

    @pytest.mark.parametrize("name", ["mode", "settings", "other"])
    def test_they_cannot_be_changed(self, name: str):
        policy = Policy()

        with pytest.raises(AttributeError):
            setattr(policy, name, None)
        with pytest.raises(AttributeError):
            setattr(policy.settings.limits, name, None)

    def test_what_they_were_made_of_can(self):
        per_tool = {"a": 1}
        rules: dict[str, dict[str, int]] = {"repeated_call": {"warn": 2}}
        policy = Policy(max_calls_per_tool=per_tool, rules=rules)
        same = Policy(max_calls_per_tool={"a": 1}, rules={"repeated_call": {"warn": 2}})
        per_tool["b"] = 1
        rules["repeated_call"]["warn"] = 9
        rules["cyclic_calls"] = {"warn": 9}

        assert policy == same
        assert Policy() == Policy.from_mapping({})

    def test_any_mapping_will_do(self):
        mapping = MappingProxyType({"limits": MappingProxyType({"max_steps": 3})})

        assert Policy.from_mapping(mapping) == Policy(max_steps=3)

    def test_they_can_be_copied_and_sent(self):
        policy = Policy(mode="enforce", max_steps=3, max_calls_per_tool={"a": 1})

        assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 -- its own dump
        assert copy.deepcopy(policy) == policy


def test_every_limit_is_an_option_and_has_a_rule():
    options = get_type_hints(LimitOptions)
    assert set(options) == set(Limits.__struct_fields__)
    beside = {"compare_arguments", "max_calls_per_tool", "max_input_tokens", "max_output_tokens"}
    assert set(LIMIT_OF_RULE.values()) == {*Limits.__struct_fields__} - beside
    assert [*LIMIT_OF_RULE, *RULES["run"]] == [detector.rule for detector in DETECTORS]
    assert {*DEFAULT_RULES} <= {*RULES["run"]}

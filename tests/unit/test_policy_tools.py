"""What a policy says of single tools and agents: what it takes, and which of two sayings wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard.detectors import DEFAULT_RULES, Thresholds
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.settings import AgentOptions, Limits, ToolOptions
from otel_loopguard.steps import Step

SWITCH = "expected true or false"
TABLE = "expected a table of names and values"
ARGUMENTS = "expected true, false or a list of names of arguments"
NUMBER = "expected a whole number of at least 1 (0 switches it off)"
NOT_HERE = "there is no such option here"
OFF = Thresholds()

REPEATED = DEFAULT_RULES["repeated_result"]


def tool(options: Mapping[str, object], base: Policy | None = None) -> ToolOptions:
    return Policy.from_mapping({"tools": {"t": options}}, base=base).settings.tools["t"]


def agent(options: Mapping[str, object], base: Policy | None = None) -> AgentOptions:
    return Policy.from_mapping({"agents": {"a": options}}, base=base).settings.agents["a"]


def balance(step: Step) -> object:
    return step.result


class TestTools:
    @pytest.mark.parametrize("name", ["poll", "exempt", "writes", "ignore_arguments", "finish"])
    def test_switches(self, name: str):
        assert getattr(tool({name: True}), name) is True
        assert getattr(tool({name: False}), name) is False

    def test_a_callable_says_what_state_there_is(self):
        assert tool({"writes": balance}).writes is balance

    def test_names_of_arguments(self):
        assert tool({"ignore_arguments": ["id", "at"]}).ignore_arguments == ("id", "at")
        assert tool({"ignore_arguments": ("id",)}).ignore_arguments == ("id",)
        assert tool({"ignore_arguments": []}).ignore_arguments is False

    def test_error_patterns(self):
        assert tool({"error_patterns": ["^Error", "x+"]}).error_patterns == ("^Error", "x+")
        assert tool({"error_patterns": None}).error_patterns == ()

    def test_thresholds_are_laid_over_those_of_the_run(self):
        rules = tool({"rules": {"repeated_result": {"abort": 20}}}).rules

        assert rules == {"repeated_result": Thresholds(warn=REPEATED.warn, abort=20)}
        run = Policy(rules={"repeated_result": {"warn": 7, "abort": 9}})
        both = tool({"rules": {"repeated_result": {"abort": 20}}}, base=run).rules
        assert both == {"repeated_result": Thresholds(warn=7, abort=20)}

    def test_thresholds_stand_also_where_the_run_has_none(self):
        policy = Policy.from_mapping(
            {"tools": {"t": {"rules": {"repeated_result": True}}}}, base=Policy.none()
        )

        assert policy.settings.tools["t"].rules == {"repeated_result": REPEATED}
        assert policy.rule_ids == ("repeated_result",)

    @pytest.mark.parametrize("off", [False, None, 0, {"enabled": False}])
    def test_a_rule_can_be_off_for_a_tool(self, off: object):
        off_for_tool = Policy(tools={"t": {"rules": {"repeated_result": off}}})

        assert off_for_tool.settings.tools["t"].rules == {"repeated_result": OFF}
        assert off_for_tool.settings.rules == DEFAULT_RULES
        on_again = tool({"rules": {"repeated_result": True}}, base=off_for_tool)
        assert on_again.rules == {"repeated_result": REPEATED}

    def test_what_is_off_for_a_tool_is_not_in_force(self):
        base = Policy.none()
        policy = Policy.from_mapping({"tools": {"t": {"rules": {"repeated_call": 0}}}}, base=base)

        assert policy.rule_ids == ()

    def test_an_entry_stands_for_itself_and_star_for_all_others(self):
        settings = Policy(tools={"*": {"poll": True}, "t": {}}).settings

        assert settings.of_tool("t") == ToolOptions()
        assert settings.of_tool("u") == ToolOptions(poll=True)

    def test_a_base_keeps_what_is_not_said(self):
        base = Policy(
            tools={
                "t": {"poll": True, "rules": {"repeated_call": False}},
                "u": {"exempt": True},
            }
        )
        said = {"t": {"finish": True, "rules": {"repeated_result": {"warn": 9}}}, "v": {}}
        tools = Policy.from_mapping({"tools": said}, base=base).settings.tools

        assert tools == {
            "t": ToolOptions(
                poll=True,
                finish=True,
                rules={
                    "repeated_call": OFF,
                    "repeated_result": Thresholds(warn=9, abort=REPEATED.abort),
                },
            ),
            "u": ToolOptions(exempt=True),
            "v": ToolOptions(),
        }

    def test_a_base_keeps_the_level_that_is_not_said(self):
        base = Policy(tools={"t": {"rules": {"repeated_result": {"warn": 7, "abort": 9}}}})
        rules = tool({"rules": {"repeated_result": {"abort": 20}}}, base=base).rules

        assert rules == {"repeated_result": Thresholds(warn=7, abort=20)}

    def test_thresholds_of_the_run_count_from_the_same_mapping(self):
        said = {
            "rules": {"repeated_result": {"warn": 7, "abort": 9}},
            "tools": {"t": {"rules": {"repeated_result": {"abort": 20}}}},
        }
        tools = Policy.from_mapping(said).settings.tools

        assert tools["t"].rules == {"repeated_result": Thresholds(warn=7, abort=20)}

    def test_nothing_takes_an_entry_out(self):
        base = Policy(tools={"t": {"poll": True}, "u": {}})

        assert set(Policy.from_mapping({"tools": {"t": None}}, base=base).settings.tools) == {"u"}
        assert Policy(tools={"t": None}) == Policy()


class TestAgents:
    def test_limits(self):
        assert agent({"limits": {"max_steps": 5, "max_cost_usd": 1}}).limits == Limits(
            max_steps=5, max_cost_usd=1.0
        )
        assert agent({"limits": {"max_steps": 0}}).limits is None
        assert agent({}).limits is None

    def test_a_limit_for_an_agent_is_in_force(self):
        said = {"agents": {"a": {"limits": {"max_idle_s": 5}}}}

        assert Policy.from_mapping(said, base=Policy.none()).rule_ids == ("idle_run",)

    def test_rules_are_laid_over_those_of_the_run(self):
        rules = agent(
            {"rules": {"repeated_result": {"warn": 9}, "cyclic_calls": {"enabled": False}}}
        ).rules

        assert rules == {
            "repeated_result": Thresholds(warn=9, abort=REPEATED.abort),
            "cyclic_calls": None,
        }

    def test_a_rule_for_an_agent_alone_is_in_force(self):
        said: Any = {"agents": {"a": {"rules": {"repeated_result": True}, "tools": {"t": {}}}}}
        tool_said = {"agents": {"a": {"tools": {"t": {"rules": {"repeated_call": True}}}}}}
        none = Policy.none()

        assert Policy.from_mapping(said, base=none).rule_ids == ("repeated_result",)
        assert Policy.from_mapping(tool_said, base=none).rule_ids == ("repeated_call",)

    def test_tools_are_laid_over_those_of_the_run(self):
        said = {
            "tools": {"t": {"poll": True}, "u": {"poll": True}},
            "agents": {"a": {"tools": {"t": {"finish": True}}}},
        }
        settings = Policy.from_mapping(said).settings

        assert settings.agents["a"].tools == {"t": ToolOptions(poll=True, finish=True)}
        assert settings.for_agent("a").tools == {
            "t": ToolOptions(poll=True, finish=True),
            "u": ToolOptions(poll=True),
        }

    def test_rules_of_its_tools_are_laid_over_its_own(self):
        own = agent(
            {
                "rules": {"repeated_result": {"warn": 9, "abort": 11}},
                "tools": {"t": {"rules": {"repeated_result": {"abort": 20}}}},
            }
        )

        assert own.tools["t"].rules == {"repeated_result": Thresholds(warn=9, abort=20)}

    def test_a_base_keeps_what_is_not_said(self):
        base = Policy(
            agents={
                "a": {
                    "limits": {"max_steps": 5},
                    "rules": {"repeated_call": False},
                    "tools": {"t": {"poll": True}},
                }
            }
        )
        said = {
            "limits": {"max_tool_calls": 3},
            "rules": {"cyclic_calls": False},
            "tools": {"t": {"finish": True}},
        }

        assert agent(said, base=base) == AgentOptions(
            limits=Limits(max_steps=5, max_tool_calls=3),
            rules={"repeated_call": None, "cyclic_calls": None},
            tools={"t": ToolOptions(poll=True, finish=True)},
        )

    def test_a_base_keeps_the_level_that_is_not_said(self):
        base = Policy(agents={"a": {"rules": {"repeated_result": {"warn": 7, "abort": 9}}}})
        rules = agent({"rules": {"repeated_result": {"abort": 20}}}, base=base).rules

        assert rules == {"repeated_result": Thresholds(warn=7, abort=20)}

    def test_what_an_agent_takes_back_is_shown(self):
        policy = Policy(
            tools={"t": {"poll": True, "finish": True}},
            agents={"a": {"tools": {"t": {"poll": False}}}},
        )

        assert repr(policy) == (
            "Policy(tools={'t': {'poll': True, 'finish': True}}, "
            "agents={'a': {'tools': {'t': {'poll': False}}}})"
        )

    def test_new_patterns_come_first(self):
        base = Policy(agents={"*": {"limits": {"max_steps": 5}}, "b": {}})
        said = {"planner": {"limits": {"max_steps": 50}}, "b": None}
        settings = Policy.from_mapping({"agents": said}, base=base).settings

        assert list(settings.agents) == ["planner", "*"]
        own = settings.of_agent("planner")
        assert own is not None
        assert own.limits == Limits(max_steps=50)

    def test_the_order_of_patterns_is_part_of_a_policy(self):
        assert Policy(agents={"a": {}, "b": {}}) != Policy(agents={"b": {}, "a": {}})


NEAR_AND_BAD: list[tuple[str, Mapping[str, Any], str]] = [
    ("tools", {"t": 3}, f"t: {TABLE}, got 3"),
    ("tools", {"t": {"pol": True}}, f"t.pol: {NOT_HERE}; did you mean 'poll'?"),
    ("tools", {"check_status": {"poll": 1}}, f"check_status.poll: {SWITCH}, got 1"),
    ("tools", {"t": {"poll": None}}, f"t.poll: {SWITCH}, got None"),
    ("tools", {"t": {"exempt": "yes"}}, f"t.exempt: {SWITCH}, got 'yes'"),
    ("tools", {"*": {"finish": []}}, f'"*".finish: {SWITCH}, got []'),
    ("tools", {'a "b"': {"finish": 0}}, f'"a \\"b\\"".finish: {SWITCH}, got 0'),
    (
        "tools",
        {"t": {"writes": "db"}},
        "t.writes: expected true or false, or in code a callable that takes the step, got 'db'",
    ),
    ("tools", {"t": {"ignore_arguments": "id"}}, f"t.ignore_arguments: {ARGUMENTS}, got 'id'"),
    ("tools", {"t": {"ignore_arguments": None}}, f"t.ignore_arguments: {ARGUMENTS}, got None"),
    ("tools", {"t": {"ignore_arguments": 1}}, f"t.ignore_arguments: {ARGUMENTS}, got 1"),
    (
        "tools",
        {"t": {"ignore_arguments": ["id", 2]}},
        "t.ignore_arguments[1]: expected a name, got 2",
    ),
    ("tools", {"t": {"ignore_arguments": [""]}}, "t.ignore_arguments[0]: expected a name, got ''"),
    (
        "tools",
        {"t": {"error_patterns": "^Error"}},
        "t.error_patterns: expected a list of regular expressions, got '^Error'",
    ),
    (
        "tools",
        {"t": {"error_patterns": ["x", "(a"]}},
        (
            "t.error_patterns[1]: expected a regular expression "
            "(missing ), unterminated subpattern at position 0), got '(a'"
        ),
    ),
    (
        "tools",
        {"t": {"error_patterns": [""]}},
        "t.error_patterns[0]: expected a regular expression that is not empty, got ''",
    ),
    (
        "tools",
        {"t": {"rules": {"max_steps": 5}}},
        f"t.rules.max_steps: {NOT_HERE}; a tool has no limits but limits.max_calls_per_tool",
    ),
    (
        "tools",
        {"t": {"rules": {"repeated_call": {"warn": 1.5}}}},
        f"t.rules.repeated_call.warn: {NUMBER}, got 1.5",
    ),
    (
        "tools",
        {"t": {"rules": {"repeated_cal": True}}},
        f"t.rules.repeated_cal: {NOT_HERE}; did you mean 'repeated_call'?",
    ),
    (
        "tools",
        {"t": {"rules": {"step_budget": True}}},
        f"t.rules.step_budget: {NOT_HERE}; a tool has no limits but limits.max_calls_per_tool",
    ),
    (
        "tools",
        {"t": {"max_steps": 5}},
        f"t.max_steps: {NOT_HERE}; a tool has no limits of its own: set limits.max_calls_per_tool",
    ),
    (
        "tools",
        {"t": {"rules": {"extra_turn": True}}},
        f"t.rules.extra_turn: {NOT_HERE}; that rule does not judge tool calls",
    ),
    (
        "agents",
        {"*": {"rules": {"repeated_error": False}}},
        (
            f'"*".rules.repeated_error: {NOT_HERE}; '
            "that rule looks across agents: set it under [rules]"
        ),
    ),
    ("agents", {"planner": 3}, f'"planner": {TABLE}, got 3'),
    (
        "agents",
        {"planner": {"limits": {"max_steps": -1}}},
        f'"planner".limits.max_steps: {NUMBER}, got -1',
    ),
    (
        "agents",
        {"planner": {"limits": {"max_step": 1}}},
        f"\"planner\".limits.max_step: {NOT_HERE}; did you mean 'max_steps'?",
    ),
    (
        "agents",
        {"*": {"max_steps": 1}},
        f'"*".max_steps: {NOT_HERE}; write it under limits of this agent',
    ),
    (
        "agents",
        {"*": {"poll": True}},
        f'"*".poll: {NOT_HERE}; write it under tools of this agent, and the tool\'s name',
    ),
    ("agents", {"*": {"rules": 5}}, f'"*".rules: {TABLE}, got 5'),
    (
        "agents",
        {"*": {"rules": {"cyclic_calls": {"warn": True}}}},
        f'"*".rules.cyclic_calls.warn: {NUMBER}, got True',
    ),
    (
        "agents",
        {"*": {"tools": {"t": {"poll": 1}}}},
        f'"*".tools.t.poll: {SWITCH}, got 1',
    ),
]


@pytest.mark.parametrize(("section", "said", "message"), NEAR_AND_BAD)
def test_a_mistake_names_its_place(section: str, said: Any, message: str):
    for make in (lambda: Policy.from_mapping({section: said}), lambda: Policy(**{section: said})):
        with pytest.raises(PolicyError) as caught:
            make()
        assert str(caught.value) == f"{section}.{message}"


@pytest.mark.parametrize("pattern", ["(" * 5000 + ")" * 5000, "a{99999999999999999999}"])
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str):
    with pytest.raises(PolicyError, match=r"^tools\.t\.error_patterns\[0\]: expected a regular"):
        tool({"error_patterns": [pattern]})

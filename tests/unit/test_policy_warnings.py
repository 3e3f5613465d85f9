"""What a policy says and will not do, and what it is told about that."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard.policy import Policy
from otel_loopguard.pricing import load_estimate

SMALL = {"input_per_m_usd": 1, "output_per_m_usd": 2.5}


def warnings_of(said: Mapping[str, object], base: Policy | None = None) -> tuple[str, ...]:
    return Policy.from_mapping(said, base=base).warnings


@pytest.fixture
def _no_prices(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    load_estimate.cache_clear()
    yield
    load_estimate.cache_clear()


@pytest.mark.usefixtures("_no_prices")
class TestBudgetsWithoutPrices:
    def test_there_is_no_source(self):
        policy = Policy(max_cost_usd=5, agents={"a": {"limits": {"max_cost_usd": 1}}, "b": {}})

        assert policy.warnings == (
            (
                'limits.max_cost_usd, agents."a".limits.max_cost_usd: there is no source of '
                "prices, so only steps that carry their own cost count; "
                "set usage.price or usage.prices, "
                "or install genai-prices"
            ),
        )
        assert Policy(agents={"b": {"limits": {"max_steps": 1}}}).warnings == ()

    @pytest.mark.parametrize("said", [{"price": SMALL}, {"prices": {"m": SMALL}}])
    def test_prices_of_its_own(self, said: Mapping[str, object]):
        assert Policy(max_cost_usd=5, usage=said).warnings == ()


def test_a_budget_with_a_table_of_prices():
    assert Policy(max_cost_usd=5).warnings == ()


class TestPatternsThatAnEarlierOneHides:
    def test_agents(self):
        assert Policy(agents={"plan*": {}, "planner": {}, "*": {}}).warnings == (
            (
                'agents."planner": never counts, for agents."plan*" stands before it and the first '
                "pattern that matches counts; put it first"
            ),
        )
        assert Policy(agents={"planner": {}, "plan*": {}, "*": {}}).warnings == ()

    def test_tools(self):
        hidden = (
            'tools."get_a*": never counts, for tools."get_*" stands before it and the first '
            "pattern that matches counts; put it first"
        )

        assert Policy(tools={"get_*": {}, "get_a*": {}}).warnings == (hidden,)
        assert Policy(agents={"a": {"tools": {"get_*": {}, "get_a*": {}}}}).warnings == (
            f'agents."a".{hidden.replace(" tools.", f" agents.{chr(34)}a{chr(34)}.tools.")}',
        )

    def test_the_name_of_a_tool_comes_before_all_patterns_and_star_after_them(self):
        assert Policy(tools={"*": {}, "get_*": {}, "get_a": {}}).warnings == ()


@pytest.mark.parametrize("glob", ["[x", "a[!]", "[]", "x*[", "[ab][c"])
def test_a_bracket_that_is_never_closed(glob: str):
    doubt = (
        "its [ is never closed, so it stands for itself; close it, or write [[] for the character"
    )
    prices = {"usage": {"prices": {glob: SMALL}}}

    assert warnings_of({"agents": {glob: {}}}) == (f'agents."{glob}": {doubt}',)
    assert warnings_of({"tools": {f"é{glob}": {}}}) == (f'tools."é{glob}": {doubt}',)
    assert warnings_of(prices) == (f'usage.prices."{glob}": {doubt}',)


@pytest.mark.parametrize("glob", ["[x]", "a[!b]", "[]]", "[!]]*", "[[]x", "x]", "[ab][c-d]?"])
def test_brackets_that_are_closed(glob: str):
    assert warnings_of({"agents": {glob: {}}, "tools": {glob: {}}}) == ()


class TestWarningsAfterTheAbort:
    LATE = "7 is never reached, for abort is 5; set it below that"

    def test_of_the_run(self):
        assert warnings_of({"rules": {"repeated_result": {"warn": 7}}}) == (
            f"rules.repeated_result.warn: {self.LATE}",
        )
        assert warnings_of({"rules": {"repeated_result": {"warn": 5}}}) == ()
        assert warnings_of({"rules": {"repeated_result": {"warn": 7, "abort": 0}}}) == ()
        assert warnings_of({"rules": {"repeated_result": {"warn": 0, "abort": 2}}}) == ()

    def test_of_a_tool_or_an_agent(self):
        rules = {"rules": {"repeated_result": {"warn": 7}}}

        assert warnings_of({"tools": {"t": rules}}) == (
            f"tools.t.rules.repeated_result.warn: {self.LATE}",
        )
        assert warnings_of({"agents": {"a*": rules}}) == (
            f'agents."a*".rules.repeated_result.warn: {self.LATE}',
        )
        assert warnings_of({"agents": {"a*": {"tools": {"t": rules}}}}) == (
            f'agents."a*".tools.t.rules.repeated_result.warn: {self.LATE}',
        )

    def test_nobody_asked_for_a_warning(self):
        rules = {"repeated_result": {"abort": 2}}

        assert warnings_of({"rules": rules}) == ()
        assert warnings_of({"tools": {"t": {"rules": rules}}}) == ()
        assert warnings_of({"agents": {"a": {"rules": rules}}}) == ()
        late = {
            "rules": {"repeated_result": {"warn": 9, "abort": 11}},
            "tools": {"t": {"rules": rules}},
        }
        assert warnings_of({"agents": {"a": late}}) == ()

    def test_a_rule_that_is_off_for_an_agent(self):
        assert warnings_of({"agents": {"a": {"rules": {"no_novelty": False}}}}) == ()


class TestRulesThatLookAcrossAgents:
    SAID: Mapping[str, Any] = {
        "agents": {"a": {"tools": {"t": {"rules": {"repeated_error": {"abort": 2}}}}}}
    }

    def test_a_tool_of_an_agent_cannot_switch_one_on(self):
        assert Policy.from_mapping(self.SAID, base=Policy.none()).rule_ids == ()
        assert warnings_of(self.SAID, base=Policy.none()) == (
            (
                'agents."a".tools.t.rules.repeated_error: never counts, for that rule looks '
                "across agents and is off; set rules.repeated_error as well"
            ),
        )

    def test_but_may_say_at_what_it_speaks(self):
        for_tool = {"tools": {"u": {"rules": {"repeated_error": True}}}}
        off: Any = {"agents": {"a": {"tools": {"t": {"rules": {"repeated_error": False}}}}}}

        assert warnings_of(self.SAID) == ()
        assert warnings_of({**self.SAID, **for_tool}, base=Policy.none()) == ()
        assert warnings_of(off, base=Policy.none()) == ()


class TestLimitsThatAreNotHeld:
    DOUBT = (
        "never counts, for no limit is held against a tool that is exempt; "
        "take exempt away, or write poll"
    )

    @pytest.mark.parametrize("name", ["send mail", "*"])
    def test_of_an_exempt_tool(self, name: str):
        policy = Policy(max_calls_per_tool={"send mail": 1}, tools={name: {"exempt": True}})

        assert policy.warnings == (f'limits.max_calls_per_tool."send mail": {self.DOUBT}',)

    def test_of_an_agent(self):
        limits = {"limits": {"max_calls_per_tool": {"mail": 1}}}
        exempt = {"tools": {"mail": {"exempt": True}}}

        assert warnings_of({"agents": {"a": {**limits, **exempt}}}) == (
            f'agents."a".limits.max_calls_per_tool.mail: {self.DOUBT}',
        )
        assert warnings_of({**limits, "agents": {"a": exempt}}) == (), "others may call it"

    def test_of_a_tool_that_is_polled(self):
        assert Policy(max_calls_per_tool={"t": 1}, tools={"t": {"poll": True}}).warnings == ()


def test_comparing_names_alone_where_nothing_is_compared():
    agent = {"limits": {"compare_arguments": False}}
    doubt = "does nothing by itself; set"

    assert Policy(compare_arguments=False).warnings == (
        f"limits.compare_arguments: {doubt} limits.max_repeated_calls as well",
    )
    assert Policy(agents={"a": agent}).warnings == (
        (
            f'agents."a".limits.compare_arguments: {doubt} '
            'agents."a".limits.max_repeated_calls as well'
        ),
    )
    assert Policy(compare_arguments=False, max_repeated_calls=3).warnings == ()

"""Agents inside agents: whose limits a step is held against, and how deep agents are."""

from __future__ import annotations

from typing import Any

import pytest

from otel_loopguard.decisions import Violation
from otel_loopguard.engine.invocations import INVOCATIONS
from otel_loopguard.engine.rule_sets import Carried
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import UNKNOWN, Step

NONE = Policy.none()


def policy(**tables: Any) -> Policy:
    return Policy.from_mapping(tables, base=NONE)


def limited(**limits: Any) -> Policy:
    """Return the policy that has these limits for each invocation of `x`, and nothing else."""
    return policy(agents={"x": {"limits": limits}})


def agent(name: str, own: str | None = None, parent: str | None = None) -> Step:
    return Step(kind="agent", name=name, agent=name, agent_id=own, agent_parent_id=parent)


def tool(
    name: str, own: str | None = None, parent: str | None = None, arguments: object = "1"
) -> Step:
    return Step(
        kind="tool",
        name="search",
        arguments=arguments,
        agent=name,
        agent_id=own,
        agent_parent_id=parent,
    )


def allowed(guard: LoopGuard, *steps: Step) -> list[bool]:
    return [guard.check(step).allowed for step in steps]


class TestLimitsOfAnAgent:
    def test_each_invocation_has_its_own(self):
        guard = LoopGuard(limited(max_tool_calls=2))

        assert allowed(guard, *[tool("x", "x1")] * 3) == [True, True, False]
        assert allowed(guard, *[tool("x", "x2")] * 3) == [True, True, False]
        assert allowed(guard, *[tool("y", "y1")] * 5) == [True] * 5

    def test_one_without_an_id_is_its_name(self):
        guard = LoopGuard(limited(max_tool_calls=2))

        assert allowed(guard, tool("x"), tool("y"), tool("x"), tool("x")) == [True] * 3 + [False]

    def test_agents_below_count(self):
        guard = LoopGuard(limited(max_tool_calls=3))
        steps = [
            agent("x", "x1"),
            tool("x", "x1"),
            agent("y", "y1", "x1"),
            tool("y", "y1", "x1"),
            agent("z", "z1", "y1"),
            tool("z", "z1", "y1"),
        ]
        assert all(allowed(guard, *steps))

        assert allowed(guard, tool("z", "z1", "y1"), tool("x", "x1")) == [False, False]
        assert allowed(guard, tool("y", "y2"), tool("x", "x2")) == [True, True]

    def test_a_violation_names_the_agent_whose_limit_it_is(self):
        guard = LoopGuard(limited(max_tool_calls=1))
        allowed(guard, agent("x", "x1"), agent("y", "y1", "x1"), tool("y", "y1", "x1"))
        refusal = guard.check(tool("y", "y1", "x1")).refusal

        assert refusal is not None
        assert (refusal.rule, refusal.agent, refusal.count) == ("tool_call_budget", "x", 2)

    def test_those_of_the_run_hold_beside_them(self):
        guard = LoopGuard(limited(max_tool_calls=2), max_tool_calls=3)

        assert allowed(guard, *[tool("x", "x1")] * 3) == [True, True, False]
        assert allowed(guard, tool("x", "x2"), tool("x", "x2")) == [True, False]
        assert allowed(guard, tool("y")) == [False]

    @pytest.mark.parametrize("name", ["worker 1", "worker 27"])
    def test_agents_are_named_by_patterns(self, name: str):
        guard = LoopGuard(policy(agents={"worker *": {"limits": {"max_steps": 1}}}))

        assert allowed(guard, tool(name), tool(name), tool("worker"), tool("worker")) == [
            True,
            False,
            True,
            True,
        ]

    def test_the_first_pattern_that_matches_counts(self):
        agents = {"x": {"limits": {"max_steps": 2}}, "*": {"limits": {"max_steps": 1}}}
        guard = LoopGuard(policy(agents=agents))

        assert allowed(guard, *[tool("x")] * 3, *[tool("y")] * 2) == [
            True,
            True,
            False,
            True,
            False,
        ]

    def test_tokens_and_dollars_of_an_invocation(self):
        guard = LoopGuard(limited(max_total_tokens=100, max_cost_usd=1.0))
        turn = Step(kind="llm", agent="x", agent_id="x1", input_tokens=60, cost_usd=0.1)
        guard.check(turn)
        assert guard.record(turn).allowed
        guard.check(turn)

        assert guard.record(turn).rule == "token_budget"

    def test_repetition_may_be_limited_where_arguments_come_late(self):
        guard = LoopGuard(limited(max_repeated_calls=1))
        rules: list[str | None] = []
        for arguments in "112":
            guard.check(tool("x", "x1", arguments=UNKNOWN))
            rules.append(guard.record(tool("x", "x1", arguments=arguments)).rule)
            if rules[-1] is not None:
                break

        assert rules == [None, "repeated_call_limit"]

    def test_a_refused_step_counts_for_nobody(self):
        guard = LoopGuard(limited(max_tool_calls=2), max_same_tool_calls=1)
        other = Step(kind="tool", name="other", agent="x", agent_id="x1")
        steps = [tool("x", "x1"), *[tool("x", "x1")] * 5, other, other]

        assert allowed(guard, *steps) == [True, *[False] * 5, True, False]

    def test_an_exempt_tool_counts_for_none_of_them(self):
        tables = {
            "tools": {"search": {"exempt": True}},
            "agents": {"*": {"limits": {"max_tool_calls": 1}}},
        }
        guard = LoopGuard(policy(**tables))

        assert all(allowed(guard, *[tool("x", "x1")] * 5))

    def test_an_agent_of_many_agents_is_kept(self):
        guard = LoopGuard(limited(max_tool_calls=INVOCATIONS + 10))
        guard.check(agent("x", "x1"))
        below = [tool("y", f"y{number}", "x1") for number in range(INVOCATIONS + 20)]

        assert allowed(guard, *below).count(True) == INVOCATIONS + 10

    def test_invocations_that_call_each_other_in_a_ring_end(self):
        guard = LoopGuard(limited(max_tool_calls=2))
        ring = [tool("x", "a", "b"), tool("x", "b", "a")]

        assert allowed(guard, *ring, *ring) == [True, True, False, False]


class TestScope:
    def test_by_default_the_totals_are_of_the_run(self):
        guard = LoopGuard(NONE, max_steps=3)
        steps = [tool("x", "x1"), tool("y", "y1", "x1"), tool("x", "x2"), tool("z", "z1")]

        assert allowed(guard, *steps) == [True] * 3 + [False]

    def test_they_can_be_of_each_invocation_without_those_below(self):
        guard = LoopGuard(policy(scope="agent"), max_steps=2)
        steps = [
            agent("x", "x1"),
            *[tool("x", "x1")] * 2,
            agent("y", "y1", "x1"),
            *[tool("y", "y1", "x1")] * 2,
        ]
        assert all(allowed(guard, *steps))

        assert allowed(guard, tool("x", "x1"), tool("y", "y1"), tool("x", "x2")) == [
            False,
            False,
            True,
        ]

    def test_other_limits_stay_with_the_run(self):
        guard = LoopGuard(policy(scope="agent"), max_steps_per_minute=2, clock=lambda: 0.0)

        assert allowed(guard, tool("x", "x1"), tool("y", "y1"), tool("z", "z1")) == [
            True,
            True,
            False,
        ]

    def test_no_sub_agent_and_no_retry_starts_the_run_afresh(self):
        guard = LoopGuard(NONE, max_llm_calls=4)
        turn = Step(kind="llm", agent="x", agent_id="x1")
        again = Step(kind="llm", agent="x", agent_id="x2")
        steps = [agent("x", "x1"), turn, turn, agent("x", "x2"), again, again, again]

        assert allowed(guard, *steps) == [True] * 6 + [False]


class TestConversation:
    CHAT = policy(scope="conversation")

    def test_totals_go_on_from_run_to_run(self):
        guard = LoopGuard(self.CHAT, max_tool_calls=3)
        assert all(allowed(guard, *[tool("x")] * 2))
        guard.end()

        assert allowed(guard, *[tool("x")] * 2) == [True, False]
        assert guard.stats().tool_calls == 1

    def test_a_guard_of_its_own_can_carry_them_on(self):
        first = LoopGuard(self.CHAT, max_tool_calls=3)
        allowed(first, *[tool("x")] * 2)
        second = LoopGuard(self.CHAT, max_tool_calls=3, carried=first.carried())
        assert allowed(second, *[tool("x")] * 2) == [True, False]
        third = LoopGuard(self.CHAT, max_tool_calls=3, carried=second.carried())

        assert allowed(third, tool("x")) == [False]

    def test_tokens_and_time_do_as_well(self):
        now_s = 0.0
        guard = LoopGuard(self.CHAT, clock=lambda: now_s, max_total_tokens=100, max_duration_s=10)
        turn = Step(kind="llm", input_tokens=40)
        for now_s in (0.0, 1000.0):  # noqa: B007 -- the clock reads it
            guard.check(turn)
            assert guard.record(turn).allowed
            guard.end()
        guard.check(turn)
        assert guard.record(turn).rule == "token_budget"
        guard.end()
        guard.start()
        now_s = 1010.0

        assert [v.rule for v in guard.check(turn).violations] == ["time_budget", "token_budget"]

    @pytest.mark.parametrize(
        ("limits", "others"),
        [
            ({"max_steps": 90}, {"max_steps": 10}),
            ({"max_llm_calls": 90}, {"max_llm_calls": 5}),
            ({"max_tool_calls": 90}, {"max_tool_calls": 5}),
            ({"max_tool_calls": 90}, {"max_tool_calls": 5, "max_calls_per_tool": {"search": 9}}),
            ({"max_calls_per_tool": {"search": 90}}, {"max_calls_per_tool": {"search": 5}}),
            ({"max_input_tokens": 900}, {"max_input_tokens": 55}),
            ({"max_output_tokens": 900}, {"max_output_tokens": 39}),
            ({"max_input_tokens": 900}, {"max_output_tokens": 39, "max_total_tokens": 900}),
            ({"max_cost_usd": 90}, {"max_cost_usd": 2.6}),
            ({"max_duration_s": 90}, {"max_duration_s": 9.5}),
        ],
    )
    def test_what_is_used_up_counts_against_other_limits(
        self, limits: dict[str, Any], others: dict[str, Any]
    ):
        now_s = 0.0
        turn = Step(kind="llm", input_tokens=11, output_tokens=7, cost_usd=0.5)

        def took(guard: LoopGuard, steps: int) -> int:
            """Ask a model and call a tool in turns until that is refused; count the steps."""
            nonlocal now_s
            for taken in range(steps):
                step = tool("x") if taken % 2 else turn
                if not guard.check(step).allowed:
                    return taken
                now_s += 1
                if not guard.record(step).allowed:
                    return taken + 1
            return steps

        def guarded(carried: Carried | None = None, **limits: Any) -> LoopGuard:
            return LoopGuard(self.CHAT, clock=lambda: now_s, carried=carried, **limits)

        first = guarded(**limits)
        assert took(first, 6) == 6
        carried = first.carried()
        expected = took(guarded(**others), 30)

        assert 6 < expected < 30
        assert took(guarded(carried, **others), 30) == expected - 6
        assert took(guarded(carried), 30) == 30, "without a limit there is nothing to hold against"
        assert took(guarded(carried, **limits), 30) == 30

    def test_rules_and_trips_do_not(self):
        chat = Policy.from_mapping(
            {"scope": "conversation", "rules": {"repeated_result": True}}, base=NONE
        )
        guard = LoopGuard(chat, max_same_tool_calls=9)
        same = Step(kind="tool", name="search", arguments="1", result="1")
        for _ in range(4):
            guard.record(same)
        guard.end()
        assert [v.rule for _ in range(4) for v in guard.record(same).violations] == [
            "repeated_result"
        ]
        guard.record(same)
        assert not guard.check(same).allowed
        guard.end()

        assert guard.check(same).allowed

    def test_other_scopes_carry_nothing(self):
        guard = LoopGuard(NONE, max_tool_calls=1)
        guard.check(tool("x"))

        assert guard.carried() is None
        guard.end()
        assert guard.check(tool("x")).allowed


class TestDepth:
    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_one_agent_too_deep_is_refused(self, limit: int):
        guard = LoopGuard(NONE, max_agent_depth=limit)
        chain = [agent("x", f"{n}", f"{n - 1}" if n else None) for n in range(limit + 1)]

        assert allowed(guard, *chain) == [True] * limit + [False]
        assert guard.check(chain[-1]).reason == "MAX_AGENT_DEPTH_EXCEEDED"

    def test_agents_side_by_side_are_not_deep(self):
        guard = LoopGuard(NONE, max_agent_depth=2)
        below = [agent("x", f"{n}", "root") for n in range(9)]

        assert all(allowed(guard, agent("lead", "root"), *below))

    def test_nor_are_agents_of_whom_nobody_says_where_they_are(self):
        guard = LoopGuard(NONE, max_agent_depth=1)
        nameless = Step(kind="agent", name="planner")

        assert all(allowed(guard, nameless, nameless, agent("x"), agent("y", "y1"), agent("z")))

    def test_a_refused_agent_is_nobodys_parent(self):
        guard = LoopGuard(NONE, max_agent_depth=1)

        assert allowed(guard, agent("x", "a"), agent("x", "b", "a"), agent("x", "c", "b")) == [
            True,
            False,
            True,
        ]

    def test_depth_does_not_count_as_a_step(self):
        guard = LoopGuard(NONE, max_agent_depth=9, max_steps=1)
        chain = [agent("x", f"{n}", f"{n - 1}") for n in range(5)]

        assert all(allowed(guard, *chain, tool("x", "4", "3")))
        assert guard.stats().steps == 1


class TestHandoffs:
    @staticmethod
    def turn(name: str, output: str = "Over to you.") -> Step:
        return Step(kind="llm", agent=name, output=output, tool_calls=(), finish_reasons=())

    def violations(self, *steps: Step) -> list[tuple[str, str]]:
        guard = LoopGuard(policy(rules={"agent_handoff_cycle": True}))
        return [(v.rule, v.action) for step in steps for v in guard.record(step).violations]

    def test_control_that_goes_round_is_seen(self):
        rule = "agent_handoff_cycle"

        found = self.violations(*[self.turn("x"), self.turn("y")] * 7)

        assert found == [(rule, "warn"), (rule, "abort")]

    def test_not_while_something_comes_of_it(self):
        turns = [self.turn("xy"[number % 2], f"Part {number} is done.") for number in range(30)]

        assert self.violations(*turns) == []

    def test_nor_where_one_agent_does_it_all(self):
        assert self.violations(*[self.turn("x")] * 30) == []

    def test_a_word_of_a_person_begins_the_count_afresh(self):
        guard = LoopGuard(policy(rules={"agent_handoff_cycle": True}))
        found: list[Violation] = []
        for number in range(40):
            if number % 4 == 0:
                guard.person_spoke()
            found += guard.record(self.turn("xy"[number % 2])).violations

        assert found == []

"""What a policy says of single tools and agents, approvals, batches, persons: at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pytest

from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import UNKNOWN, Step, ToolCall

NONE = Policy.none()

Make: TypeAlias = Callable[[int], object]
"""Makes the arguments of the call with this number."""


def policy(base: Policy | None = None, **tables: Any) -> Policy:
    return Policy.from_mapping(tables, base=base)


def tool(name: str = "status", arguments: object = "1", **facts: Any) -> Step:
    return Step(kind="tool", name=name, arguments=arguments, **facts)


def turn(**facts: Any) -> Step:
    return Step(kind="llm", **facts)


def found(guard: LoopGuard, steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Record steps, and return the rules and actions of what that shows."""
    return [(v.rule, v.action) for step in steps for v in guard.record(step).violations]


def repeats(guard: LoopGuard, times: int = 9, **facts: Any) -> list[str]:
    """Record equal steps, and return the rules that speak."""
    return [rule for rule, _ in found(guard, [tool(**{"result": "x", **facts})] * times)]


def test_the_loop_that_these_tools_make_is_one():
    assert "repeated_result" in repeats(LoopGuard())


class TestPoll:
    POLL = policy(tools={"status": {"poll": True}})

    def test_it_may_be_asked_again(self):
        assert repeats(LoopGuard(self.POLL), times=40) == []
        assert "repeated_result" in repeats(LoopGuard(self.POLL), name="other")

    def test_it_may_be_asked_in_turn_with_others(self):
        steps = [tool(name, result="x") for name in ("status", "sleep") * 20]
        both = policy(tools={name: {"poll": True} for name in ("status", "sleep")})

        assert found(LoopGuard(both), steps) == []

    def test_limits_hold(self):
        guard = LoopGuard(self.POLL, max_tool_calls=5, max_repeated_calls=1, max_same_tool_calls=1)

        assert [guard.check(tool()).rule for _ in range(6)] == [None] * 5 + ["tool_call_budget"]

    def test_tokens_and_time_count(self):
        guard = LoopGuard(self.POLL, clock=lambda: 0.0, max_total_tokens=10, max_duration_s=5)
        assert guard.record(tool(result="x", input_tokens=11)).rule == "token_budget"
        guard.reset()
        guard.start(at=0)

        assert guard.check(tool(started_s=5)).rule == "time_budget"

    @pytest.mark.parametrize("facts", [{}, {"approved": True}])
    @pytest.mark.parametrize("option", ["poll", "exempt"])
    def test_a_model_that_asks_for_it_does_not_repeat_itself(
        self, option: str, facts: dict[str, Any]
    ):
        options = {} if facts else {"status": {option: True}}
        asks = turn(output="", tool_calls=(ToolCall(name="status", arguments="1"),))
        steps = [asks, tool(result="still running", **facts)] * 9

        assert found(LoopGuard(policy(tools=options)), steps) == []

    def test_nor_does_it_idle(self):
        guard = LoopGuard(self.POLL, max_turns_without_tool=2)
        steps = [step for n in range(9) for step in (turn(output=f"{n}"), tool(result="x"))]

        assert found(guard, steps) == []

    def test_what_it_fails_with_is_nobodys_business(self):
        assert repeats(LoopGuard(self.POLL), error="TimeoutError: no answer") == []

    def test_it_neither_adds_to_a_row_of_others_nor_breaks_it(self):
        guard = LoopGuard(policy(NONE, rules={"repeated_result": True}, tools=self.tools()))
        steps = [tool("read", result="x"), tool(result="y")] * 5

        assert found(guard, steps) == [("repeated_result", "warn"), ("repeated_result", "abort")]

    @staticmethod
    def tools() -> dict[str, object]:
        return {"status": {"poll": True}}


class TestExempt:
    EXEMPT = policy(tools={"status": {"exempt": True}})

    def test_neither_rules_nor_limits_are_held_against_it(self):
        guard = LoopGuard(self.EXEMPT, max_steps=3, max_tool_calls=1, max_repeated_calls=1)

        assert repeats(guard, times=30) == []
        assert guard.stats().tool_calls == 30

    def test_it_takes_nothing_from_the_budget_of_others(self):
        guard = LoopGuard(self.EXEMPT, max_tool_calls=1)
        repeats(guard)

        assert guard.check(tool("other")).allowed
        assert not guard.check(tool("other")).allowed
        assert guard.check(tool()).allowed

    def test_the_star_stands_for_tools_that_are_not_named(self):
        guard = LoopGuard(policy(tools={"*": {"exempt": True}, "status": {}}))

        assert repeats(guard, name="any", times=30) == []
        assert "repeated_result" in repeats(guard)


State: TypeAlias = "bool | Callable[[Step], object]"


class TestWrites:
    """After a write, what was seen before may be read again."""

    EQUAL = policy(NONE, rules={"no_novelty": {"warn": 2, "abort": 0}})

    def shown(self, writes: State, *, same: bool, rounds: int = 4, **facts: Any) -> bool:
        """Say whether reading between writes, that are the same or not, shows as a loop."""
        guard = LoopGuard(policy(self.EQUAL, tools={"write": {"writes": writes}}))
        steps: list[Step] = []
        for number in range(rounds):
            write = tool("write", 0 if same else number, **{"result": "ok", **facts})
            steps += [tool("read", result="text"), tool("list", result="a, b"), write]
        return found(guard, steps) != []

    def test_not_unless_it_is_said(self):
        assert self.shown(writes=False, same=False)

    def test_a_write_that_is_new_changes_all(self):
        assert not self.shown(writes=True, same=False)

    def test_one_that_is_not_changes_nothing(self):
        assert self.shown(writes=True, same=True)

    def test_one_that_failed_changes_nothing(self):
        assert self.shown(writes=True, same=False, error="OSError: the disk is full")

    def test_the_application_can_say_what_state_there_is(self):
        states = iter(range(99))

        assert not self.shown(lambda _: next(states), same=True)
        assert self.shown(lambda _: "the same", same=True, rounds=6)
        assert self.shown(lambda _: "the same", same=False, rounds=6)

    def test_it_is_asked_with_the_step(self):
        asked: list[Step] = []
        step = tool("write", "1", result="ok")
        guard = LoopGuard(policy(tools={"write": {"writes": asked.append}}))
        guard.record(step)

        assert asked == [step]

    def test_one_that_raises_counts_as_a_change_by_what_is_new(self):
        def broken(step: Step) -> object:
            raise RuntimeError(step)

        assert not self.shown(broken, same=False)
        assert self.shown(broken, same=True)

    def test_one_that_raises_later_is_no_change_by_itself(self):
        states = iter(["the first"])

        assert self.shown(lambda _: next(states), same=True, rounds=3)

    def test_where_nobody_is_asked_nothing_fails(self):
        guard = LoopGuard(policy(tools={"write": {"writes": True}}))
        guard.record(tool("write", result="ok"))

        assert guard.stats().failed_callbacks == 0


IGNORED: dict[str, tuple[object, Make]] = {
    "all": (True, lambda n: {"q": n}),
    "one": (["at"], lambda n: {"q": "x", "at": n}),
    "two": (["at", "by"], lambda n: {"q": "x", "at": n, "by": -n}),
    "in JSON": (["at"], lambda n: f'{{"q": "x", "at": {n}}}'),
    "either": (["at"], lambda n: ['{"q": "x", "at": 1}', {"at": 2, "q": "x"}][n % 2]),
    "the only one": (["at"], lambda n: {"at": n}),
}
DIFFERENT: dict[str, Make] = {
    "data": lambda n: {"q": n, "at": 1},
    "in JSON": lambda n: f'{{"q": {n}, "at": 1}}',
    "long numbers": lambda n: f'{{"q": {2**70 + n}, "at": {n}}}',
    "deeper": lambda n: {"q": {"at": n}},
    "a list": lambda n: [n],
    "text": lambda n: f"at {n}",
}


class TestIgnoredArguments:
    @pytest.mark.parametrize(("ignored", "arguments"), IGNORED.values(), ids=IGNORED)
    def test_calls_that_differ_in_them_alone_are_equal(self, ignored: object, arguments: Make):
        guard = LoopGuard(policy(tools={"status": {"ignore_arguments": ignored}}))
        steps = [tool(arguments=arguments(number), result="x") for number in range(5)]

        assert ("repeated_result", "abort") in found(guard, steps)

    @pytest.mark.parametrize("arguments", DIFFERENT.values(), ids=DIFFERENT)
    def test_others_are_not(self, arguments: Make):
        guard = LoopGuard(policy(tools={"status": {"ignore_arguments": ["at"]}}))
        steps = [tool(arguments=arguments(number), result=f"row {number}") for number in range(9)]

        assert found(guard, steps) == []

    def test_the_open_step_is_still_found_by_all_of_them(self):
        guard = LoopGuard(policy(tools={"status": {"ignore_arguments": True}}))
        for number in range(3):
            guard.check(tool(arguments=number))
        guard.record(tool(arguments=1, result="x"))
        guard.record(tool(arguments=1, result="x"))

        assert guard.stats().steps == 4

    def test_unknown_arguments_stay_unknown(self):
        guard = LoopGuard(policy(tools={"status": {"ignore_arguments": True}}))

        assert repeats(guard, arguments=UNKNOWN) == []

    def test_limits_compare_alike(self):
        guard = LoopGuard(
            policy(NONE, tools={"status": {"ignore_arguments": True}}), max_repeated_calls=1
        )

        assert [guard.check(tool(arguments=n)).allowed for n in range(2)] == [True, False]


class TestFinish:
    FINISH = policy(NONE, tools={"submit": {"finish": True}})

    def test_calling_it_ends_the_run(self):
        guard = LoopGuard(self.FINISH)
        guard.record(turn(finish_reasons=("tool_calls",)))
        guard.check(tool("submit"))
        assert guard.report().status == "running"
        guard.record(tool("submit", result="thanks"))

        assert guard.report().status == "complete"

    def test_not_if_it_failed(self):
        guard = LoopGuard(self.FINISH)
        guard.record(tool("submit", error="ValueError"))
        assert guard.report().status == "tool_error"
        guard.record(tool("submit", result="Error: the answer is empty"))

        assert guard.report().status == "tool_error"

    def test_no_other_tool_does(self):
        guard = LoopGuard(self.FINISH)
        guard.record(tool("other", result="thanks"))

        assert guard.report().status == "running"

    def test_a_budget_that_it_crosses_fails_nothing(self):
        guard = LoopGuard(self.FINISH, max_total_tokens=10)
        guard.check(tool("submit"))
        decision = guard.record(tool("submit", result="thanks", input_tokens=11))

        assert (decision.allowed, decision.action) == (True, "warn")
        assert guard.report().status == "complete"
        assert guard.check(turn()).rule == "token_budget"


class TestErrorPatterns:
    FAILED = policy(
        NONE,
        tools={"run": {"error_patterns": ["^exit code [1-9]"]}},
        rules={"repeated_error": {"warn": 2, "abort": 0}},
        limits={"max_consecutive_errors": 2},
    )

    def test_a_result_in_which_one_is_found_is_a_failure(self):
        guard = LoopGuard(self.FAILED)
        results = ["exit code 2: no a", "exit code 2: no a", "exit code 1"]
        steps = [tool("run", number, result=result) for number, result in enumerate(results)]

        assert found(guard, steps) == [("repeated_error", "warn"), ("consecutive_errors", "abort")]
        assert guard.report().status == "tool_error"

    def test_any_other_is_none(self):
        guard = LoopGuard(self.FAILED)
        steps = [tool("run", number, result=f"exit code 0: {number}") for number in range(5)]

        assert (
            found(guard, [*steps, *[tool("other", n, result="exit code 1") for n in range(5)]])
            == []
        )

    def test_text_that_reads_as_an_error_is_one_for_every_tool(self):
        guard = LoopGuard(self.FAILED)
        steps = [tool("any", number, result=f"Error: no file {number}") for number in range(2)]

        assert found(guard, steps) == [("repeated_error", "warn")]


class TestRulesOfATool:
    def test_its_thresholds_are_its_own(self):
        tables = {"status": {"rules": {"repeated_result": {"warn": 2, "abort": 4}}}}
        guard = LoopGuard(policy(NONE, rules={"repeated_result": True}, tools=tables))
        counts = [
            [(v.count, v.action) for _ in range(9) for v in guard.record(step).violations]
            for step in (tool("other", result="x"), tool(result="x"))
        ]

        assert counts == [[(3, "warn"), (5, "abort")], []]
        guard.reset()
        assert [
            (v.count, v.action) for _ in range(9) for v in guard.record(tool(result="x")).violations
        ] == [(2, "warn"), (4, "abort")]

    def test_a_rule_can_be_off_for_it(self):
        tables = {"status": {"rules": {"repeated_result": False}}}
        guard = LoopGuard(policy(NONE, rules={"repeated_result": True}, tools=tables))

        assert repeats(guard) == []
        assert repeats(guard, name="other") == ["repeated_result", "repeated_result"]

    def test_or_on_for_it_alone(self):
        tables = {"status": {"rules": {"repeated_result": {"warn": 2}}}}
        guard = LoopGuard(policy(NONE, tools=tables))

        assert repeats(guard, name="other") == []
        assert "repeated_result" in repeats(guard)


class TestAgents:
    def test_rules_can_be_off_or_other_for_some(self):
        agents = {
            "w*": {"rules": {"repeated_result": False}},
            "x": {"rules": {"repeated_result": {"warn": 2, "abort": 0}}},
        }
        strict = policy(NONE, rules={"repeated_result": True}, agents=agents)

        assert repeats(LoopGuard(strict), agent="worker") == []
        assert repeats(LoopGuard(strict), agent="x", times=2) == ["repeated_result"]
        assert repeats(LoopGuard(strict), agent="y", times=2) == []
        assert repeats(LoopGuard(strict), agent="y", times=5) == ["repeated_result"] * 2

    def test_a_rule_can_be_on_for_some_alone(self):
        agents = {"x": {"rules": {"no_novelty": {"warn": 2, "abort": 0}}}}
        guard = LoopGuard(policy(NONE, agents=agents))

        assert repeats(guard, agent="y") == []
        assert repeats(guard, agent="x") == ["no_novelty"]

    def test_a_tool_can_be_other_for_some(self):
        agents = {"x": {"tools": {"status": {"poll": True}}}}
        guard = LoopGuard(policy(agents=agents))

        assert repeats(guard, agent="x", times=30) == []
        assert "repeated_result" in repeats(guard, agent="y")


class TestApproved:
    def test_what_a_person_approved_may_be_repeated(self):
        guard = LoopGuard(max_repeated_calls=1, max_same_tool_calls=1, loop_pattern_window=2)

        assert repeats(guard, approved=True, times=30) == []

    def test_budgets_hold(self):
        guard = LoopGuard(max_tool_calls=3)

        assert [guard.check(tool(approved=True)).allowed for _ in range(4)] == [True] * 3 + [False]

    def test_it_neither_adds_to_a_row_nor_breaks_it(self):
        guard = LoopGuard(policy(NONE, rules={"repeated_result": True}))
        steps = [tool(result="x"), tool(result="x", approved=True)] * 5

        assert found(guard, steps) == [("repeated_result", "warn"), ("repeated_result", "abort")]


class TestBatches:
    """Different calls of one response are no loop; identical ones are."""

    FAILING = policy(NONE, rules={"repeated_error": True, "no_novelty": True})

    @staticmethod
    def batch(name: str | None, *arguments: object, **facts: Any) -> list[Step]:
        return [
            tool("fetch", own, batch=name, call_id=f"{name}{place}", **facts)
            for place, own in enumerate(arguments)
        ]

    @staticmethod
    def play(guard: LoopGuard, *batches: list[Step]) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        for steps in batches:
            started = [guard.check(step) for step in steps]
            ended = [guard.record(step) for step in reversed(steps)]
            told += [(v.rule, v.action) for d in (*started, *ended) for v in d.violations]
        return told

    def test_equal_failures_of_one_response_count_once(self):
        steps = self.batch("a", *range(12), error="ConnectionError: refused")

        assert self.play(LoopGuard(self.FAILING), steps) == []

    def test_those_of_several_responses_add_up(self):
        batches = [
            self.batch(f"r{n}", 3 * n, 3 * n + 1, error="ConnectionError: refused")
            for n in range(6)
        ]
        found = self.play(LoopGuard(self.FAILING), *batches)

        assert found == [("repeated_error", "warn"), ("repeated_error", "abort")]

    def test_the_model_turn_before_tells_a_batch_where_nobody_names_it(self):
        guard = LoopGuard(self.FAILING)
        guard.record(turn(finish_reasons=("tool_calls",)))

        assert self.play(guard, self.batch(None, *range(12), error="OSError: gone")) == []

    def test_turns_of_different_agents_are_different_responses(self):
        guard = LoopGuard(self.FAILING)
        told: list[tuple[str, str]] = []
        for name in "abcdef":
            guard.record(turn(agent=name))
            told += found(guard, [tool(name, agent=name, error="OSError: gone")])

        assert told == [("repeated_error", "warn"), ("repeated_error", "abort")]

    def test_identical_calls_of_one_response_are_a_loop(self):
        steps = self.batch("a", *["same"] * 5, result="x")

        assert ("repeated_result", "abort") in self.play(LoopGuard(), steps)

    def test_different_ones_again_and_again_are_one_as_well(self):
        batches = [self.batch(f"r{n}", "p", "q", "r", result="x") for n in range(9)]

        assert any(action == "abort" for _, action in self.play(LoopGuard(), *batches))

    def test_different_ones_are_none(self):
        steps = self.batch("a", *range(30), result="ok")

        assert self.play(LoopGuard(), steps) == []


FINAL: dict[str, Any] = {"output": "Hello!", "finish_reasons": ("stop",), "tool_calls": ()}


class TestPersons:
    """A word of a person is no loop of the model."""

    @pytest.mark.parametrize("speaks", [True, False])
    def test_equal_answers_to_different_questions(self, speaks: bool):  # noqa: FBT001
        guard = LoopGuard(policy(NONE, rules={"repeated_output": True}))
        told: list[tuple[str, str]] = []
        for _ in range(9):
            if speaks:
                guard.person_spoke()
            told += found(guard, [turn(**FINAL)])

        assert (told == []) is speaks

    @pytest.mark.parametrize("speaks", [True, False])
    def test_a_turn_after_the_last_one(self, speaks: bool):  # noqa: FBT001
        guard = LoopGuard(policy(NONE, rules={"extra_turn": True}))
        found(guard, [turn(finish_reasons=("tool_calls",)), tool(result="x"), turn(**FINAL)])
        if speaks:
            guard.person_spoke()
        preview, decision = guard.preview(turn()), guard.check(turn())

        assert preview == decision
        assert decision.action == ("allow" if speaks else "warn")

    def test_a_word_is_answered_once(self):
        guard = LoopGuard(policy(NONE, rules={"extra_turn": True}))
        found(guard, [turn(finish_reasons=("tool_calls",)), tool(result="x"), turn(**FINAL)])
        guard.person_spoke()
        assert guard.record(turn(**FINAL)).action == "allow"

        assert guard.check(turn()).action == "warn"

    def test_nobody_has_spoken_in_a_run_that_has_not_begun(self):
        guard = LoopGuard()
        guard.person_spoke()

        assert guard.stats().steps == 0


class TestPatterns:
    """Tools may be named by patterns."""

    @pytest.mark.parametrize(
        ("tools", "is_polled"),
        [
            pytest.param({"get_*": {"poll": True}}, True, id="a pattern"),
            pytest.param({"get_?": {"poll": True}}, False, id="a pattern that does not match"),
            pytest.param({"get_*": {"poll": True}, "get_job": {}}, False, id="a name comes first"),
            pytest.param({"*": {"poll": True}, "get_*": {}}, False, id="a star comes last"),
            pytest.param(
                {"*_job": {"poll": True}, "get_*": {}}, True, id="the first pattern counts"
            ),
            pytest.param({"*": {"poll": True}}, True, id="a star"),
        ],
    )
    def test_which_entry_counts(self, tools: dict[str, Any], is_polled: bool):  # noqa: FBT001
        guard = LoopGuard(Policy(tools=tools))
        assert (found(guard, [tool("get_job", result="running")] * 9) == []) is is_polled

    def test_an_agent_s_own_patterns_come_first(self):
        own = {"agents": {"x": {"tools": {"*_job": {"poll": True}}}}}
        guard = LoopGuard(Policy.from_mapping({"tools": {"get_*": {}}, **own}))
        assert found(guard, [tool("get_job", result="running", agent="x")] * 9) == []

"""Agents inside agents: how deep they are, and limits held against each of their invocations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

from otel_loopguard import Policy, RunAborted
from otel_loopguard.live_spans import record_of
from otel_loopguard.replay.recorded_spans import replay_spans
from tests._tracing import Traced

Scene: TypeAlias = Callable[[Traced], None]
Shown: TypeAlias = tuple[str, str, str, int, float]


def policy(**tables: Any) -> Policy:
    return Policy.from_mapping(tables, base=Policy.none())


def limits(pattern: str, **options: Any) -> Policy:
    return policy(agents={pattern: {"limits": options}})


def nested(process: Traced, depth: int) -> None:
    """Start an agent, let it call a tool that starts a copy of it, and so on."""
    with ExitStack() as stack:
        for _ in range(depth):
            stack.enter_context(process.agent())
            stack.enter_context(process.tool())


def five_deep(process: Traced) -> None:
    nested(process, 5)


def six_deep(process: Traced) -> None:
    nested(process, 6)


def six_side_by_side(process: Traced) -> None:
    with process.agent("lead"):
        for _ in range(6):
            nested(process, 2)


def tools_of(process: Traced, agent: str, calls: int) -> None:
    with process.agent(agent):
        for _ in range(calls):
            with process.tool(agent):
                pass


def the_clerk_counts_for_the_helper(process: Traced) -> None:
    with process.agent("lead"), process.agent("helper"):
        with process.tool("own"):
            pass
        tools_of(process, "clerk", 2)


def the_lead_does_not_count_for_the_helper(process: Traced) -> None:
    with process.agent("lead"):
        for _ in range(3):
            with process.tool("own"):
                pass
        tools_of(process, "helper", 2)
        with process.tool("own"):
            pass


def twice_two_calls(process: Traced) -> None:
    with process.agent("lead"):
        for _ in range(2):
            tools_of(process, "helper", 2)


def the_second_goes_too_far(process: Traced) -> None:
    with process.agent("lead"):
        tools_of(process, "helper", 2)
        tools_of(process, "helper", 3)


def side_by_side(process: Traced) -> None:
    """Let two invocations of one agent take turns."""
    with process.agent("lead"), process.agent("helper") as one:
        other = process.tracer.start_span(
            "invoke_agent helper",
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"},
        )
        for _ in range(2):
            for span in (one, other):
                with process.below(span), process.tool("own"):
                    pass
        with process.below(other), process.tool("own"):
            pass
        other.end()


HELPER = limits("helper", max_tool_calls=2)
OWN = policy(scope="agent", limits={"max_tool_calls": 2})
DEPTH = Policy.none().with_limits(max_agent_depth=5)


@pytest.mark.parametrize(
    ("rules", "scene", "expected"),
    [
        (DEPTH, five_deep, []),
        (DEPTH, six_side_by_side, []),
        (DEPTH, six_deep, [("agent_depth", "scout", "", 6, 5)]),
        (HELPER, the_clerk_counts_for_the_helper, [("tool_call_budget", "helper", "clerk", 3, 2)]),
        (HELPER, the_lead_does_not_count_for_the_helper, []),
        (HELPER, twice_two_calls, []),
        (HELPER, the_second_goes_too_far, [("tool_call_budget", "helper", "helper", 3, 2)]),
        (HELPER, side_by_side, [("tool_call_budget", "helper", "own", 3, 2)]),
        (OWN, the_clerk_counts_for_the_helper, []),
        (OWN, twice_two_calls, []),
        (OWN, the_second_goes_too_far, [("tool_call_budget", "helper", "helper", 3, 2)]),
        (OWN, side_by_side, [("tool_call_budget", "helper", "own", 3, 2)]),
    ],
)
def test_live_and_recorded(
    process: Traced, rules: Policy, scene: Scene, expected: list[Shown]
) -> None:
    process.guard(rules)
    scene(process)

    assert [
        (
            each["loopguard.rule"],
            each["gen_ai.agent.name"],
            each.get("gen_ai.tool.name", ""),
            each["loopguard.count"],
            each["loopguard.threshold"],
        )
        for _, _, each in process.events()
    ] == expected
    recorded = replay_spans([record_of(span) for span in process.spans], rules, "file")
    assert [
        (each.rule, each.count, each.threshold, each.phase)
        for run in recorded
        for each in run.violations
    ] == [(rule, count, threshold, "pre") for rule, _, _, count, threshold in expected]


def test_what_is_too_deep_asks_no_model(process: Traced) -> None:
    guard = process.guard(DEPTH, mode="enforce")

    def ask() -> None:
        with process.chat():
            assert guard.admit() is not None

    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(process.agent())
            ask()
        stack.enter_context(process.agent())
        with pytest.raises(RunAborted) as refused:
            ask()
    assert refused.value.report.rule == "agent_depth"
    assert refused.value.report.model_calls == 5


def test_requests_without_a_span_of_their_own_are_those_of_the_agent(process: Traced) -> None:
    guard = process.guard(limits("helper", max_llm_calls=1), mode="enforce")

    def ask() -> None:
        allowed = guard.admit()
        assert allowed is not None
        with process.tracer.start_as_current_span("call") as span:
            span.set_attribute("gen_ai.operation.name", "chat")  # seen at its end
        allowed.over(failed=False)

    with process.agent("lead"):
        for _ in range(2):
            ask()
            with process.agent("helper"):
                ask()
        with process.agent("helper"):
            ask()
            with pytest.raises(RunAborted):
                ask()

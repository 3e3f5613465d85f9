"""An agent that a framework and an instrumentation around it both show."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from otel_loopguard import Policy
from tests._tracing import ONE_RULE, Traced, traced

INVOKES = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}


@pytest.fixture
def process() -> Generator[Traced]:
    with traced() as process:
        yield process


@contextmanager
def invocation(process: Traced, *scopes: str) -> Generator[None]:
    """Make a span of the same agent in each scope, one inside the other."""
    if not scopes:
        yield
        return
    tracer = process.provider.get_tracer(scopes[0])
    with (
        tracer.start_as_current_span("invoke_agent scout", attributes=INVOKES),
        invocation(process, *scopes[1:]),
    ):
        yield


def test_its_turns_are_those_of_one_agent(process: Traced) -> None:
    process.guard(ONE_RULE)
    with process.agent("team"):
        for _ in range(5):
            with invocation(process, "framework", "instrumentation"):
                process.work(1)
    assert process.total("loopguard.violations", action="abort") == 1


def test_it_is_as_deep_as_one(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_agent_depth=2))
    with process.agent("team"), invocation(process, "framework", "instrumentation"):
        process.work(1)
    assert process.total("loopguard.violations") == 0


@pytest.mark.parametrize(
    "scopes",
    [
        pytest.param(["framework"] * 3, id="one-scope"),
        pytest.param(["framework", "instrumentation"] * 3, id="two-scopes"),
    ],
)
def test_an_agent_that_invokes_itself_goes_deeper(process: Traced, scopes: list[str]) -> None:
    process.guard(Policy.none().with_limits(max_agent_depth=2))
    with invocation(process, *scopes):
        process.work(1)
    assert process.total("loopguard.violations", rule="agent_depth") == 1


def test_another_agent_inside_is_another(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_agent_depth=2))
    with process.agent("team"), process.agent("lead"), invocation(process, "instrumentation"):
        process.work(1)
    assert process.total("loopguard.violations", rule="agent_depth") == 1

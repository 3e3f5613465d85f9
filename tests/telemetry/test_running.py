"""What metrics tell of runs that go on: their number, age, steps and cost."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from opentelemetry import baggage
from opentelemetry.context import Context

from otel_loopguard import Policy, guarded_run
from otel_loopguard.open_runs import IDLE_S
from otel_loopguard.registry import names
from otel_loopguard.testing import FakeClock
from tests._tracing import ONE_RULE, Traced

PRICED = Policy.from_mapping(
    {"usage": {"price": {"input_per_m_usd": 1_000_000, "output_per_m_usd": 2_000_000}}},
    base=Policy.none(),
)
"""A dollar for an input token, two for an output token."""


def by_agent(process: Traced, metric: str, label: str = "") -> dict[Any, float]:
    """Return the series of a metric by agent, and by another label if one is named."""
    return {
        (agent if not label else (agent, labels[label])): value
        for labels, value in process.counts(metric)
        for agent in [labels["gen_ai.agent.name"]]
    }


def test_the_oldest_the_longest_and_the_dearest_run_are_told_of(process: Traced) -> None:
    clock = FakeClock()
    process.guard(PRICED, clock=clock)
    gauges = ("loopguard.run.age.max", "loopguard.run.steps.max", "loopguard.run.cost.max")

    def highest() -> list[dict[Any, float]]:
        return [by_agent(process, gauge) for gauge in gauges]

    with process.agent():
        process.work(2)
        clock.advance(40)
        with guarded_run(), process.agent():
            process.work(1)
            clock.advance(2.5)
            with guarded_run(), process.agent("cook"):
                assert highest() == [
                    {"scout": 42.5, "cook": 0},
                    {"scout": 4, "cook": 0},
                    {"scout": 40, "cook": 0},
                ]
    assert highest() == [{"scout": 0, "cook": 0}] * 3


def test_a_run_that_has_tripped_and_goes_on_can_be_seen(process: Traced) -> None:
    process.guard(ONE_RULE)

    def active() -> dict[Any, float]:
        return by_agent(process, "loopguard.run.active", "loopguard.tripped")

    with process.agent():
        process.work(3)
        assert active() == {("scout", False): 1, ("scout", True): 0}
        process.work(3)
        assert active() == {("scout", False): 0, ("scout", True): 1}
    assert active() == {("scout", False): 0, ("scout", True): 0}


GAUGES = ("loopguard.run.active", "loopguard.run.age.max", "loopguard.run.steps.max")


def going_on(process: Traced) -> list[float]:
    """Return how many runs go on, the highest age and the most steps."""
    return [process.total(gauge) for gauge in GAUGES]


@pytest.mark.parametrize("turns", [1, 6], ids=["healthy", "tripped"])
def test_a_run_that_only_ids_hold_together_is_over_when_nothing_happens_in_it(
    process: Traced, turns: int
) -> None:
    clock = FakeClock()
    process.guard(ONE_RULE, clock=clock)
    for _ in range(turns):
        with process.tool(context=baggage.set_baggage(names.RUN_ID, "one", Context())):
            pass
    clock.advance(IDLE_S - 1)
    assert going_on(process) == [1, IDLE_S - 1, turns]

    clock.advance(1)
    assert going_on(process) == [0, 0, 0], "although no other run has been opened"


@pytest.mark.parametrize("turns", [1, 6], ids=["healthy", "tripped"])
def test_a_run_whose_span_nobody_can_end_any_more_is_over(process: Traced, turns: int) -> None:
    clock = FakeClock()
    process.guard(ONE_RULE, clock=clock)
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
    agent = process.tracer.start_span("invoke_agent scout", attributes=attributes)
    with process.below(agent):
        process.work(turns)
    clock.advance(2_000)
    assert going_on(process) == [1, 2_000, 2 * turns]

    del agent
    gc.collect()
    assert going_on(process) == [0, 0, 0]


def test_metrics_are_read_while_runs_go_on_in_other_threads(process: Traced) -> None:
    process.guard(PRICED)
    over = threading.Event()

    def agent(number: int) -> None:
        for _ in range(10):
            with process.agent(f"agent {number}"):
                process.work(2)

    def read() -> None:
        while not over.is_set():
            seen.append(process.total("loopguard.steps"))

    seen: list[float] = []
    reader = threading.Thread(target=read)
    agents = [threading.Thread(target=agent, args=(number,)) for number in range(4)]
    for thread in (reader, *agents):
        thread.start()
    for thread in agents:
        thread.join()
    over.set()
    reader.join()

    assert seen == sorted(seen)
    assert process.total("loopguard.steps") == 4 * 10 * 4
    assert process.total("loopguard.cost") == 4 * 10 * 2 * 20
    assert process.counts("loopguard.errors") == []

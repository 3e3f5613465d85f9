"""Series without end: names become `_OTHER`, and what an SDK folds can be seen."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from opentelemetry.sdk.metrics import Counter, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from otel_loopguard import bounded_names
from otel_loopguard.bounded_names import NAMES
from tests._tracing import ONE_RULE, Traced

LIMIT = 20
MAKE: Any = InMemoryMetricReader
HAS_LIMITS = "cardinality_limits" in inspect.signature(MAKE).parameters
"""The oldest SDK keeps every series."""


def test_an_sdk_that_folds_series_says_so(process: Traced) -> None:
    process.reader = MAKE(cardinality_limits={Counter: LIMIT}) if HAS_LIMITS else MAKE()
    process.meters = MeterProvider([process.reader], shutdown_on_exit=False)
    process.guard(ONE_RULE)
    for number in range(LIMIT):
        with process.agent(f"agent {number}"):
            process.work(5)

    counts = process.counts("loopguard.violations")
    folded = [value for labels, value in counts if "otel.metric.overflow" in labels]
    assert len(counts) == (LIMIT + 1 if HAS_LIMITS else 2 + 2 * LIMIT)
    assert len(folded) == (1 if HAS_LIMITS else 0)
    assert sum(value for _, value in counts) == 2 * LIMIT, "nothing is lost but whose it was"


def test_agents_without_end_are_told_apart_up_to_a_bound(process: Traced) -> None:
    process.guard(ONE_RULE)
    for number in range(NAMES + 5):
        with process.agent(f"agent {number}"), process.chat():
            pass

    for metric in ("loopguard.runs", "loopguard.steps", "loopguard.run.age.max"):
        agents = {labels["gen_ai.agent.name"] for labels, _ in process.counts(metric)}
        assert len(agents) == NAMES + 1
        assert "_OTHER" in agents
    other = {"gen_ai.agent.name": "_OTHER", "loopguard.step.kind": "llm"}
    assert [n for labels, n in process.counts("loopguard.steps") if labels == other] == [5]
    assert process.total("loopguard.steps") == NAMES + 5


def test_sub_agents_without_end_take_no_name_of_an_agent_that_has_runs(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 3)
    process.guard(ONE_RULE)
    with process.agent("scout"):
        for number in range(5):
            with process.agent(f"sub-agent {number}"), process.chat():
                pass
    with process.agent("cook"), process.chat():
        assert agents(process, "loopguard.run.age.max") == {"scout", "cook"}
        assert agents(process, "loopguard.run.active") == {"scout", "cook"}

    assert agents(process, "loopguard.runs") == {"scout", "cook"}
    spent = {"sub-agent 0", "sub-agent 1", "sub-agent 2", "_OTHER"}
    for metric in ("loopguard.steps", "loopguard.token.usage", "loopguard.cost"):
        assert agents(process, metric) == spent
    assert process.total("loopguard.steps") == 6


@pytest.mark.parametrize("they_are", ["shut down", "at work"])
def test_agents_of_many_guards_are_told_apart_up_to_a_bound(
    process: Traced, monkeypatch: pytest.MonkeyPatch, they_are: str
) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 3)
    seen: set[str] = set()
    for number in range(5):
        guard = process.guard(ONE_RULE)
        with process.agent(f"agent {number}"), process.chat():
            pass
        seen |= agents(process, "loopguard.steps")
        if they_are == "shut down":
            guard.shutdown()

    assert seen == {"agent 0", "agent 1", "agent 2", "_OTHER"}
    assert process.total("loopguard.steps") == (5 if they_are == "shut down" else 1 + 2 + 3 + 4 + 5)


def agents(process: Traced, metric: str) -> set[str]:
    return {labels["gen_ai.agent.name"] for labels, _ in process.counts(metric)}

"""The contract of hand-written loops over a client, with the spans of model calls and no others."""

from __future__ import annotations

import pytest

from otel_loopguard import Policy, RunAborted, guarded_run
from tests.frameworks._expected import (
    ANSWER,
    HEALTHY,
    aborted,
    ended_runs,
    run_attributes,
    violations,
)
from tests.frameworks._plain_loop import TooManyTurnsError
from tests.frameworks._workbench import Counts, Workbench

ONLY = Policy.none()


class TestUnderOneSpan:
    """Loops below a span of the application: the span is the run."""

    @pytest.mark.parametrize("content", [True, False], ids=["content", "no-content"])
    def test_five_model_calls_are_five_requests(
        self, bench: Workbench, mode: str, *, content: bool
    ):
        policy = ONLY.with_limits(max_llm_calls=5)
        with bench.guarded(policy, content=content) as scene, scene.span("handle order"):
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        report = outcome.error.report
        assert outcome.counts == Counts(requests=5, executions=5)
        assert (report.rule, report.status) == ("llm_call_budget", "aborted")
        assert (report.steps, report.model_calls) == (5, 5)
        assert [each["on"] for each in violations(scene)] == ["handle order"]
        assert run_attributes(scene) == [
            {
                "run.status": "aborted",
                "run.steps": 5,
                "tripped": True,
                "rule": "llm_call_budget",
                "run.steps_after_trip": 0,
            }
        ]
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_steps_are_model_calls(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY.with_limits(max_steps=4)) as scene, scene.span("handle order"):
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "step_budget"
        assert outcome.counts == Counts(requests=4, executions=4)

    def test_healthy_loop(self, bench: Workbench, mode: str):
        with bench.scene() as alone, alone.span("handle order"):
            expected = alone.play(mode, "finish3")
        with bench.guarded(ONLY.with_limits(max_llm_calls=3)) as scene, scene.span("handle order"):
            outcome = scene.play(mode, "finish3")
        assert outcome == expected == (ANSWER, None, HEALTHY)
        assert scene.paths() == alone.paths()
        assert len(scene.paths()) > 3
        assert violations(scene) == []
        assert ended_runs(scene) == {("complete", False): 1}

    def test_healthy_loop_under_the_next_span(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY.with_limits(max_llm_calls=5)) as scene:
            with scene.span("handle order"):
                stopped = scene.play(mode)
            with scene.span("handle order"):
                healthy = scene.play(mode, "finish3")
        assert aborted(stopped).report.model_calls == 5
        assert healthy == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("aborted", True): 1, ("complete", False): 1}


class TestGuardedRun:
    """Loops inside a block, with no span around them."""

    def test_five_model_calls_are_five_requests(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded(ONLY.with_limits(max_llm_calls=5)) as scene:
            outcome = scene.play(mode, around=block)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == Counts(requests=5, executions=5)
        assert block.report is not None
        assert (block.report.rule, block.report.model_calls) == ("llm_call_budget", 5)

    def test_healthy_loop(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded(ONLY.with_limits(max_llm_calls=3)) as scene:
            outcome = scene.play(mode, "finish3", around=block)
        assert outcome == (ANSWER, None, HEALTHY)
        assert block.report is not None
        assert (block.report.status, block.report.model_calls) == ("complete", 3)


class TestObserve:
    """The loop goes on to its own limit, and the violation is written down."""

    def test_nothing_is_stopped(self, bench: Workbench, mode: str):
        with (
            bench.guarded(ONLY.with_limits(max_llm_calls=5), mode="observe") as scene,
            scene.span("handle order"),
        ):
            outcome = scene.play(mode)
        assert type(outcome.error) is TooManyTurnsError
        assert outcome.counts == bench.framework.at_cap
        assert [each["loopguard.rule"] for each in violations(scene)] == ["llm_call_budget"]
        assert run_attributes(scene) == [
            {
                "run.status": "running",
                "run.steps": 12,
                "tripped": True,
                "rule": "llm_call_budget",
                "run.steps_after_trip": 6,
            }
        ]


__all__ = ["TestGuardedRun", "TestObserve", "TestUnderOneSpan"]

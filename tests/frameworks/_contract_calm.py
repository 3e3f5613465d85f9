"""The contract: a healthy run comes through untouched, and observing changes nothing."""

from __future__ import annotations

import logging

import pytest

from otel_loopguard import AbortRequest, guarded_run
from tests.frameworks._expected import (
    ANSWER,
    HEALTHY,
    VIOLATIONS,
    ended_runs,
    found,
    run_attributes,
    stops,
    violations,
)
from tests.frameworks._workbench import Workbench


class TestHealthy:
    """An agent that finishes gives the same answer at the same cost, and emits the same spans."""

    def test_same_with_and_without_the_guard(self, bench: Workbench, mode: str):
        with bench.scene() as alone:
            expected = alone.play(mode, "finish3")
        with bench.guarded() as guarded:
            outcome = guarded.play(mode, "finish3")
        assert expected == (ANSWER, None, HEALTHY)
        assert outcome == expected
        assert guarded.paths() == alone.paths()
        assert len(guarded.paths()) == 5 + bench.framework.spans_above

    def test_no_violation_and_complete(self, bench: Workbench, mode: str):
        with bench.guarded() as scene:
            scene.play(mode, "finish3")
        assert violations(scene) == []
        assert scene.points("loopguard.violations") == []
        assert run_attributes(scene) == [
            {"run.status": "complete", "run.steps": 5, "tripped": False}
        ]
        assert ended_runs(scene) == {("complete", False): 1}
        assert stops(scene) == {}
        assert scene.points("loopguard.run.active") == []
        assert scene.points("loopguard.errors") == []

    def test_in_a_guarded_run(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded() as scene:
            outcome = scene.play(mode, "finish3", around=block)
        assert outcome == (ANSWER, None, HEALTHY)
        assert block.report is not None
        assert (block.report.status, block.report.rule) == ("complete", None)
        assert (block.report.model_calls, block.report.tool_calls) == HEALTHY
        assert (block.report.input_tokens, block.report.output_tokens) == (390, 60)


class TestObserve:
    """Violations are written down, and the runaway goes on to the framework's own limit."""

    def test_nothing_is_stopped(self, bench: Workbench, mode: str):
        with bench.scene() as alone:
            expected = alone.play(mode)
        with bench.guarded(mode="observe") as scene:
            outcome = scene.play(mode)
        assert expected.counts == bench.framework.at_cap
        assert outcome.counts == expected.counts
        assert type(outcome.error) is type(expected.error) is bench.framework.capped
        assert str(outcome.error) == str(expected.error)
        assert scene.paths() == alone.paths()
        written = [found(each) for each in violations(scene)]
        assert written[: len(VIOLATIONS)] == VIOLATIONS
        once = {(rule, action) for rule, action, _, _ in written}
        assert len(once) == len(written)
        assert {each["on"] for each in violations(scene)} <= bench.framework.spans_told_on
        status = bench.framework.at_cap_status
        assert run_attributes(scene) == [
            {
                "run.status": status,
                "run.steps": sum(bench.framework.at_cap),
                "tripped": True,
                "rule": "repeated_result",
                "run.steps_after_trip": sum(bench.framework.at_cap) - 10,
            }
        ]
        assert stops(scene) == {}
        assert ended_runs(scene) == {(status, True): 1}

    def test_hooks_that_were_passed_stay_silent(
        self, bench: Workbench, mode: str, caplog: pytest.LogCaptureFixture
    ):
        asked: list[AbortRequest] = []
        with (
            caplog.at_level(logging.WARNING, "otel_loopguard"),
            bench.guarded(mode="observe", abort_hooks=[asked.append]) as scene,
        ):
            outcome = scene.play(mode, around=guarded_run())
        assert isinstance(outcome.error, bench.framework.capped)
        assert asked == []
        assert "nothing will be stopped" in caplog.text


__all__ = ["TestHealthy", "TestObserve"]

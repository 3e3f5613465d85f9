"""The contract: a runaway is found and stopped at exact counts, and everything says so.

Counts are those of the server and of the tools themselves.
"""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from otel_loopguard import RunAborted, guarded_run
from tests.frameworks._expected import (
    REPEATED,
    VIOLATIONS,
    aborted,
    ended_runs,
    found,
    key_of,
    run_attributes,
    stops,
    violations,
)
from tests.frameworks._workbench import Counts, Stopped, Workbench


class TestStop:
    """With the default policy, equal results are noticed, and the next request does not leave."""

    def test_counts(self, stopped: Stopped):
        assert stopped.at_the_trip == [REPEATED]
        assert stopped.outcome.counts == REPEATED

    def test_report_that_the_caller_gets(self, stopped: Stopped):
        assert type(stopped.outcome.error) is RunAborted  # none of these frameworks wraps it
        report = aborted(stopped.outcome).report
        assert (report.rule, report.status) == ("repeated_result", "aborted")
        assert (report.steps, report.model_calls, report.tool_calls) == (10, 5, 5)
        assert (report.input_tokens, report.output_tokens) == (100 + 130 + 160 + 190 + 220, 5 * 20)
        assert report.last_tool == "search"
        assert [
            (violation.rule, violation.action, violation.count, violation.step)
            for violation in report.violations
        ] == VIOLATIONS

    def test_events_on_the_span_above_the_tools(self, stopped: Stopped):
        written = violations(stopped.scene)
        assert [found(each) for each in written] == VIOLATIONS
        assert {each["on"] for each in written} <= stopped.scene.framework.spans_told_on
        assert {each["loopguard.phase"] for each in written} == {"post"}

    def test_events_point_to_the_offending_spans(self, stopped: Stopped):
        scene = stopped.scene
        turns, tools = (
            [f"{key_of(span).span_id:016x}" for span in scene.innermost(names)]
            for names in (scene.framework.model_spans, {scene.framework.tool_span})
        )
        written = violations(scene)
        assert [each["loopguard.step.span_id"] for each in written] == [
            tools[2],
            turns[3],
            tools[3],
            tools[4],
        ]
        assert [each.get("gen_ai.tool.name") for each in written] == [
            "search",
            None,
            "search",
            "search",
        ]
        for each in written:
            assert each["loopguard.reason"] == f"{each['loopguard.rule'].upper()}_DETECTED"
            assert each["gen_ai.agent.name"] == scene.framework.agent

    def test_events_hold_no_content(self, stopped: Stopped):
        values = [str(value) for each in violations(stopped.scene) for value in each.values()]
        assert values
        assert not [value for value in values if "nothing found" in value or "alpha" in value]

    def test_attributes_on_the_span_of_the_run(self, stopped: Stopped):
        assert run_attributes(stopped.scene) == [
            {
                "run.status": "aborted",
                "run.steps": 10,
                "tripped": True,
                "rule": "repeated_result",
                "run.steps_after_trip": 0,
            }
        ]

    def test_metrics_of_violations(self, stopped: Stopped):
        scene = stopped.scene
        every = {(rule, action) for rule, action, _, _ in VIOLATIONS}
        for metric, label, expected in (
            ("loopguard.violations", {"gen_ai.agent.name": scene.framework.agent}, every),
            (
                "loopguard.violations.by_tool",
                {"gen_ai.tool.name": "search"},
                every - {("repeated_output", "warn")},
            ),
        ):
            points = scene.points(metric)
            assert len(points) == len(expected)
            for rule, action in expected:
                assert ({"loopguard.rule": rule, "loopguard.action": action, **label}, 1) in points

    def test_metrics_of_the_run(self, stopped: Stopped):
        scene = stopped.scene
        run = {"gen_ai.agent.name": scene.framework.run_agent}
        assert ended_runs(scene) == {("aborted", True): 1}
        assert scene.points("loopguard.run.active") == []
        assert scene.points("loopguard.run.steps") == [(run, 10)]
        assert scene.points("loopguard.run.token.usage") == [
            ({**run, "gen_ai.token.type": "input"}, 800),
            ({**run, "gen_ai.token.type": "output"}, 100),
        ]

    def test_metrics_of_the_stop(self, stopped: Stopped):
        assert stops(stopped.scene)[(stopped.scene.framework.stopped_by, "ok")] == 1
        assert stopped.scene.points("loopguard.errors") == []


class TestGuardedRun:
    """A block around the agent raises `RunAborted` itself, whatever the framework made of it."""

    def test_run_aborted_with_the_report(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded() as scene:
            outcome = scene.play(mode, around=block)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == REPEATED
        assert block.report is not None
        assert (block.report.rule, block.report.status) == ("repeated_result", "aborted")
        # The time until the stop is not the time until the block is left.
        left = block.report
        raised = msgspec.structs.replace(
            outcome.error.report, duration_s=left.duration_s, after_trip_s=left.after_trip_s
        )
        assert raised == left
        [run] = scene.named(bench.framework.block_span or bench.framework.run_span)
        assert (run.attributes or {})["loopguard.run.id"] == "order-4711"
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_blocking_block_around_an_event_loop(self, bench: Workbench, awaited_mode: str):
        with bench.guarded() as scene, pytest.raises(RunAborted) as raised, guarded_run():
            outcome = asyncio.run(scene.played(awaited_mode))
            raise outcome.error or AssertionError
        assert raised.value.report.rule == "repeated_result"
        assert scene.counts() == REPEATED

    def test_caller_that_tries_again(self, bench: Workbench, mode: str):
        with bench.guarded() as scene, pytest.raises(RunAborted), guarded_run():
            first, *others = (scene.play(mode) for _ in range(3))
            assert first.counts == REPEATED
            for again in others:
                assert aborted(again).report.rule == "repeated_result"
                assert again.counts == Counts(requests=0, executions=0)
            raise others[-1].error or AssertionError


__all__ = ["TestGuardedRun", "TestStop"]

"""The contract: the user's hooks are called once and harm nothing; a task can be cancelled."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from otel_loopguard import AbortRequest, RunAborted, guarded_run
from tests.frameworks._expected import REPEATED, aborted, key_of, stops
from tests.frameworks._workbench import Workbench


class FailureError(Exception):
    """What a broken hook raises."""


def broken(request: AbortRequest) -> None:
    raise FailureError(request.run_id)


class TestHooks:
    """Hooks are told which run is to stop, and why."""

    def test_once_in_order(self, bench: Workbench, mode: str):
        told: list[tuple[str, AbortRequest]] = []

        def blocking(request: AbortRequest) -> None:
            told.append(("blocking", request))

        async def awaited(request: AbortRequest) -> None:
            await asyncio.sleep(0)
            told.append(("awaited", request))

        with bench.guarded(abort_hooks=[blocking, awaited]) as scene:
            outcome = scene.play(mode)
        assert [name for name, _ in told] == ["blocking", "awaited"]
        assert outcome.counts == REPEATED
        [run] = scene.named(bench.framework.run_span)
        for _, request in told:
            assert request.violation.rule == "repeated_result"
            assert (request.violation.tool, request.attempt) == ("search", 1)
            assert request.report.tool_calls == 5
            assert request.run_id == (run.attributes or {})["loopguard.run.id"]
            assert request.run_span == key_of(run)
        until = time.monotonic() + 10  # a hook that is awaited is counted on its own thread
        while len(stops(scene)) < 1 + len(told) and time.monotonic() < until:
            time.sleep(0.01)
        results = stops(scene)
        assert sorted(results.values()) == [1, 1, 1]
        assert {result for _, result in results} == {"ok"}

    def test_broken_hook(self, bench: Workbench, mode: str, caplog: pytest.LogCaptureFixture):
        told: list[AbortRequest] = []
        with (
            caplog.at_level(logging.WARNING, "otel_loopguard"),
            bench.guarded(abort_hooks=[broken, told.append]) as scene,
        ):
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "repeated_result"
        assert outcome.counts == REPEATED
        assert len(told) == 1
        results = stops(scene)
        assert results["broken", "failed"] >= 1
        assert results[bench.framework.stopped_by, "ok"] == 1
        assert "abort hook broken raised FailureError" in caplog.text
        assert scene.points("loopguard.errors") == []

    def test_hooks_alone(self, bench: Workbench, mode: str):
        told: list[AbortRequest] = []
        with bench.guarded(abort=(), abort_hooks=[told.append]) as scene:
            outcome = scene.play(mode)
        assert len(told) == 1
        assert isinstance(outcome.error, bench.framework.capped)
        assert outcome.counts == bench.framework.at_cap


class TestCancel:
    """Without the gate, the task around the block is cancelled when a step still starts."""

    def test_cancellation_comes_out_as_run_aborted(self, bench: Workbench, awaited_mode: str):
        block = guarded_run()
        with bench.guarded(abort=("cancel",)) as scene:
            outcome = scene.play(awaited_mode, around=block)
        assert type(outcome.error) is RunAborted
        assert block.report is not None
        assert (block.report.rule, block.report.status) == ("repeated_result", "aborted")
        assert outcome.counts.executions == 5
        # The sixth request is on its way when the task is cancelled: it may arrive or not.
        assert outcome.counts.requests in (5, 6)
        assert stops(scene) == {("cancel", "ok"): 1}


__all__ = ["TestCancel", "TestHooks"]

"""Limits on time that are reached while nothing happens, in real time: tenths of seconds."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from otel_loopguard import (
    AbortRequest,
    LoopGuardSpanProcessor,
    Policy,
    PolicyError,
    RunAborted,
    guarded_run,
)
from otel_loopguard.live_spans import record_of
from otel_loopguard.replay.recorded_spans import replay_spans
from tests._tracing import Traced

PATIENCE_S = 10.0
"""After so many seconds what was waited for is a failure."""


def limits(**options: Any) -> Policy:
    return Policy.none().with_limits(**options)


def wait_for(condition: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "it never came"
        time.sleep(0.005)


def timers() -> Sequence[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "loopguard-timer"]


def found(process: Traced) -> list[tuple[str, str]]:
    return [
        (str(labels["loopguard.rule"]), str(labels["loopguard.action"]))
        for labels, times in process.counts("loopguard.violations")
        for _ in range(int(times))
    ]


# -------------------------------------------------------------------------- what hangs is noticed


@pytest.mark.parametrize(
    ("limit", "rule"), [({"max_duration_s": 60}, "time_budget"), ({"max_idle_s": 60}, "idle_run")]
)
def test_a_clock_that_is_moved_by_hand_is_the_one_that_counts(
    process: Traced, limit: dict[str, float], rule: str
) -> None:
    now_s, stopped = [0.0], threading.Event()

    def note(_: AbortRequest) -> None:
        stopped.set()

    process.guard(limits(**limit), clock=lambda: now_s[0], abort_hooks=[note], abort=())
    with process.agent(), process.tool():
        assert not stopped.wait(0.05)
        now_s[0] = 60.5
        assert stopped.wait(PATIENCE_S)

    assert found(process) == [(rule, "abort")]


def test_what_cannot_be_called_is_no_clock() -> None:
    no_clock: Any = 5.0
    with pytest.raises(PolicyError, match="clock: expected a callable"):
        LoopGuardSpanProcessor(limits(max_duration_s=60), clock=no_clock)


def test_no_clock_is_read_while_there_is_no_run(process: Traced) -> None:
    reads: list[float] = []

    def clock() -> float:
        reads.append(time.monotonic())
        return reads[-1]

    stopped = threading.Event()

    def note(_: AbortRequest) -> None:
        stopped.set()

    process.guard(limits(max_duration_s=0.2), clock=clock, abort_hooks=[note], abort=())
    with process.agent():
        process.work(1)
    time.sleep(0.1)
    before = len(reads)
    time.sleep(0.3)
    assert len(reads) == before
    with process.agent(), process.tool():
        assert stopped.wait(PATIENCE_S), "the next run is watched again"


def test_a_clock_that_fails_is_a_fault_and_no_end_of_the_watch(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    fails, stopped = threading.Event(), threading.Event()

    def clock() -> float:
        if fails.is_set():
            raise RuntimeError("no time")
        return time.monotonic()

    def note(_: AbortRequest) -> None:
        stopped.set()

    process.guard(limits(max_duration_s=0.2), clock=clock, abort_hooks=[note], abort=())
    with process.agent():
        fails.set()
        wait_for(lambda: "the loop guard failed" in caplog.text)
        (thread,) = timers()
        assert thread.is_alive()
        fails.clear()
    with process.agent(), process.tool():
        assert stopped.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("limit", "rule"), [({"max_duration_s": 0.2}, "time_budget"), ({"max_idle_s": 0.2}, "idle_run")]
)
def test_a_hang_is_told_of_while_it_lasts(
    process: Traced, limit: dict[str, float], rule: str
) -> None:
    process.guard(limits(**limit))
    began_s = time.monotonic()
    with process.agent() as agent:
        process.work(1)
        with process.tool("slow") as hung:
            wait_for(lambda: found(process))
            took_s = time.monotonic() - began_s
            recording: Any = agent
            events = [dict(event.attributes) for event in recording.events]
            attributes = dict(recording.attributes)
            counted = process.total("loopguard.violations", rule=rule, action="abort")

    assert 0.2 <= took_s < 2
    (event,) = events
    assert event["loopguard.rule"] == rule
    assert event["gen_ai.tool.name"] == "slow"
    assert event["loopguard.step.span_id"] == f"{hung.get_span_context().span_id:016x}"
    assert event["loopguard.phase"] == "post"
    assert event["loopguard.count"] >= event["loopguard.threshold"] == 0.2
    assert attributes["loopguard.tripped"] is True
    assert attributes["loopguard.rule"] == rule
    assert counted == 1
    assert found(process) == [(rule, "abort")], "once"


def test_an_agent_s_own_limit_is_noticed_too(process: Traced) -> None:
    rules = {"helper": {"limits": {"max_duration_s": 0.1}}}
    process.guard(
        Policy.from_mapping({"agents": rules}, base=limits(max_duration_s=1000, max_idle_s=1000))
    )
    with process.agent("lead"):
        process.work(1)
        time.sleep(0.2)
        assert found(process) == [], "the lead may take its time"
        with process.agent("helper"), process.chat():
            wait_for(lambda: found(process))

    assert found(process) == [("time_budget", "abort")]


def test_hooks_are_asked_while_it_hangs_and_one_that_is_slow_delays_no_other_run(
    process: Traced,
) -> None:
    asked: list[AbortRequest] = []
    let_go = threading.Event()

    def slow(request: AbortRequest) -> None:
        asked.append(request)
        let_go.wait(PATIENCE_S)

    process.guard(
        limits(max_duration_s=0.1), abort_hooks=[slow], hook_timeout_s=PATIENCE_S, mode="enforce"
    )
    with process.agent("one"), process.tool():
        other = process.tracer.start_span(
            "invoke_agent other", attributes={"gen_ai.operation.name": "invoke_agent"}
        )
        with guarded_run("second"), process.below(other), process.tool():
            wait_for(lambda: len(asked) == 2)
            let_go.set()

    assert {request.violation.rule for request in asked} == {"time_budget"}
    assert "second" in {request.run_id for request in asked}


# ----------------------------------------------------------------------------- and it is stopped


def test_an_agent_that_hangs_is_cancelled_and_the_caller_gets_the_report(process: Traced) -> None:
    process.guard(limits(max_idle_s=0.2), mode="enforce")

    async def main() -> None:
        async with guarded_run("order-1"):
            with process.agent():
                process.work(2)
                with process.tool("slow"):
                    await asyncio.sleep(60)

    began_s = time.monotonic()
    with pytest.raises(RunAborted) as aborted:
        asyncio.run(main())

    assert time.monotonic() - began_s < PATIENCE_S
    assert (aborted.value.report.status, aborted.value.report.rule) == ("aborted", "idle_run")
    wait_for(lambda: process.total("loopguard.aborts", abort__hook="cancel", abort__result="ok"))


def test_a_child_task_that_hangs_takes_the_run_s_own_task_with_it(process: Traced) -> None:
    process.guard(limits(max_duration_s=0.2), mode="enforce")

    async def hang() -> None:
        with process.tool("slow"):
            await asyncio.sleep(60)

    async def main() -> None:
        with guarded_run(), process.agent():
            await asyncio.gather(hang(), hang())

    with pytest.raises(RunAborted):
        asyncio.run(main())


@pytest.mark.parametrize("options", [{"mode": "observe"}, {"abort": ("gate",)}, {"abort": ()}])
def test_nothing_is_cancelled_that_is_not_to_be(process: Traced, options: dict[str, Any]) -> None:
    process.guard(limits(max_duration_s=0.1), **options)

    async def main() -> str:
        with guarded_run(), process.agent(), process.tool("slow"):
            await asyncio.sleep(0.4)
        return "done"

    assert asyncio.run(main()) == "done"
    assert found(process) == [("time_budget", "abort")]


def test_after_it_has_been_noticed_no_model_is_asked(process: Traced) -> None:
    guard = process.guard(limits(max_duration_s=0.1), mode="enforce")
    with process.agent():
        with process.tool("slow"):
            wait_for(lambda: found(process))
        with process.chat(), pytest.raises(RunAborted):
            guard.admit()


def test_a_recording_of_it_shows_the_same(process: Traced) -> None:
    rules = limits(max_duration_s=0.3, max_idle_s=0.1)
    process.guard(rules)
    with process.agent():
        process.work(1)
        with process.tool("slow"):
            wait_for(lambda: found(process))
    with process.agent(), process.tool("other"):
        pass
    spans = [record_of(span) for span in process.spans]

    (violation,) = replay_spans(spans, rules, "file")[0].violations
    (live,) = [event.attributes or {} for span in process.spans for event in span.events]
    assert (violation.rule, violation.action, violation.phase, violation.step) == (
        live["loopguard.rule"],
        live["loopguard.action"],
        live["loopguard.phase"],
        live["loopguard.step.number"],
    )


# ------------------------------------------------------------------------ what is no hang at all


@pytest.mark.parametrize("limit", [{"max_duration_s": 0.15}, {"max_idle_s": 0.15}])
def test_a_run_whose_last_turn_finished_it_is_not_failed(
    process: Traced, limit: dict[str, float]
) -> None:
    process.guard(limits(**limit))
    with process.agent():
        process.work(1)
        with process.chat(asks=False):
            pass
        time.sleep(0.4)
        assert found(process) == [], "nothing happens, and nothing is to happen"

    assert {action for _, action in found(process)} <= {"warn"}
    assert process.total("loopguard.runs", tripped=False, run__status="complete") == 1


def test_a_tool_is_not_silent_while_an_agent_works_below_it(process: Traced) -> None:
    process.guard(limits(max_idle_s=0.3))
    with process.agent("lead"), process.tool("delegate"), process.agent("helper"):
        for _ in range(8):
            time.sleep(0.1)
            with process.chat():
                pass
        assert found(process) == []
        with process.chat():
            wait_for(lambda: found(process))

    assert found(process) == [("idle_run", "abort")]


def test_a_run_that_is_over_is_not_looked_at(process: Traced) -> None:
    process.guard(limits(max_duration_s=0.1))
    with process.agent():
        process.work(1)
    with guarded_run(), process.tracer.start_as_current_span("job"):
        process.work(1)
    time.sleep(0.3)

    assert found(process) == []


def test_calls_whose_topmost_span_was_not_seen_may_be_over(process: Traced) -> None:
    with process.tracer.start_as_current_span("started before the guard was added"):
        process.guard(limits(max_idle_s=0.1))
        process.work(1)
        time.sleep(0.3)

    assert found(process) == []


def test_a_run_whose_span_is_lost_may_be_over(process: Traced) -> None:
    process.guard(limits(max_duration_s=0.1))
    abandoned = process.tracer.start_span(
        "invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}
    )
    del abandoned
    gc.collect()
    time.sleep(0.3)

    assert found(process) == []


# ---------------------------------------------------------------------------------- the thread


@pytest.mark.parametrize("without", [Policy(), limits(max_steps=9)])
def test_there_is_no_thread_without_such_a_limit(process: Traced, without: Policy) -> None:
    process.guard(without)
    with process.agent():
        process.work(1)
        assert timers() == []


def test_the_thread_is_there_from_the_first_run_to_the_shutdown(process: Traced) -> None:
    guard = process.guard(limits(max_duration_s=1000, max_idle_s=1000))
    with process.tracer.start_as_current_span("nobody's"):
        assert timers() == []
    for _ in range(3):
        with process.agent():
            process.work(1)
            assert [thread.daemon for thread in timers()] == [True]
    (timer,) = timers()
    guard.shutdown()
    timer.join(PATIENCE_S)
    assert not timer.is_alive()

    with process.agent():
        assert timers() == []


def test_runs_that_have_ended_are_let_go(process: Traced) -> None:
    guard = process.guard(limits(max_duration_s=1000))
    for _ in range(50):
        with process.agent():
            process.work(1)
        with guarded_run(), process.agent():
            process.work(1)
    timer: Any = guard._reactions.timer  # pyright: ignore[reportPrivateUsage]

    assert timer._watch.runs == {}


def test_a_fault_in_one_run_does_not_end_the_watch_over_others(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = process.guard(limits(max_duration_s=0.1))
    tracker: Any = guard._tracker  # pyright: ignore[reportPrivateUsage]
    tick = tracker.tick

    def broken(run: Any) -> Any:
        if run.agent == "poison":
            raise ZeroDivisionError
        return tick(run)

    monkeypatch.setattr(tracker, "tick", broken)
    with process.tracer.start_as_current_span("both"):
        poison = process.agent("poison")
        with poison, process.tool():
            wait_for(lambda: process.total("loopguard.errors"))
        with process.agent("healthy"), process.tool():
            wait_for(lambda: found(process))

    assert process.total("loopguard.errors") == 1
    assert found(process) == [("time_budget", "abort")]


CHILD = """
import os, sys, threading, time
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from otel_loopguard import LoopGuardSpanProcessor, Policy

provider = TracerProvider()
told = []
def tell(request):
    told.append(request.violation.rule)
guard = LoopGuardSpanProcessor(
    Policy.none().with_limits(max_idle_s=0.3), abort_hooks=[tell], mode="enforce"
)
provider.add_span_processor(guard)
tracer = provider.get_tracer("t")
known = {{"gen_ai.tool.call.arguments": "{{}}"}}
{scene}
"""


def ran(scene: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD.format(scene=scene)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is nothing to fork with")
def test_a_forked_child_has_a_timer_for_runs_of_its_own_and_leaves_its_parent_s_alone() -> None:
    assert (
        ran(
            """
with tracer.start_as_current_span("invoke_agent parent"):
    with tracer.start_as_current_span("execute_tool t", attributes=known):
        child = os.fork()
        if child == 0:
            time.sleep(0.6)
            alone = len(told)
            with tracer.start_as_current_span("invoke_agent child", context=Context()):
                with tracer.start_as_current_span("execute_tool t", attributes=known):
                    time.sleep(0.9)
                    os._exit(10 * alone + len(told))
        for _ in range(20):
            time.sleep(0.1)
            with tracer.start_as_current_span("chat m"):
                pass
        _, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), told)
"""
        )
        == "1 []\n"
    )


def test_a_run_that_hangs_does_not_keep_a_process_alive() -> None:
    assert (
        ran(
            """
span = tracer.start_span("invoke_agent hangs")
print(len([t for t in threading.enumerate() if t.name == "loopguard-timer"]))
"""
        )
        == "1\n"
    )

"""Hosts that make stopping hard: what still happens after a trip in a real loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from opentelemetry import trace
from opentelemetry.trace import Span

from otel_loopguard import AbortRequest, LoopGuardSpanProcessor, RunAborted
from tests._tracing import Traced
from tests.cases._reports import CASES, Case

_log = logging.getLogger(__name__)


def bound(case: Case) -> int:
    """Return how many steps may start in all: those up to the trip, and what is allowed after."""
    assert case.expect.by_step is not None
    assert case.expect.max_steps_after is not None
    return case.expect.by_step + case.expect.max_steps_after


def run_tools(process: Traced, case: Case, is_stopped: Callable[[], bool]) -> int:
    """Call the tools of a case one after the other; whatever a step raises is logged, no more."""
    started = 0
    with process.agent():
        for step in case.steps:
            if is_stopped():
                break
            try:
                started += 1
                with process.tool(step["name"], step["arguments"], step["result"]):
                    pass
            except Exception:  # noqa: BLE001 -- the host that is tried
                _log.exception("a callback failed; going on")
    return started


class TestExceptionsAreSwallowed:
    """A01: what is raised in a callback is logged, and the agent goes on."""

    def test_a_hook_that_acts_outside_the_callback_stops_the_loop(self, process: Traced) -> None:
        stop = threading.Event()

        def outside(_request: AbortRequest) -> None:
            stop.set()

        process.guard(abort_hooks=[outside], abort=())
        assert run_tools(process, CASES["A01"], stop.is_set) == 5

    def test_a_hook_that_only_raises_stops_nothing_and_is_not_counted_as_a_stop(
        self, process: Traced
    ) -> None:
        def raising(_request: AbortRequest) -> None:
            raise RuntimeError("stop")

        process.guard(abort_hooks=[raising], abort=())
        assert run_tools(process, CASES["A01"], lambda: False) == len(CASES["A01"].steps)
        assert aborts(process, "ok") == 0

    def test_the_cancelled_task_starts_no_further_step(self, process: Traced) -> None:
        case = CASES["A01"]
        started = 0

        async def work() -> None:
            nonlocal started
            with process.agent():
                for step in case.steps:
                    try:
                        started += 1
                        with process.tool(step["name"], step["arguments"], step["result"]):
                            await asyncio.sleep(0)
                    except Exception:  # noqa: BLE001 -- the host that is tried
                        _log.exception("a callback failed; going on")

        async def main() -> None:
            process.guard(abort=("cancel",))
            await asyncio.create_task(work())

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        assert 5 <= started <= bound(case)


def test_a_stop_that_failed_is_tried_again_and_only_the_delivered_one_counts(
    process: Traced,
) -> None:
    """A03: the first attempt to stop the run fails."""
    stop = threading.Event()
    attempts: list[int] = []

    def failing_once(request: AbortRequest) -> None:
        attempts.append(request.attempt)
        if request.attempt == 1:
            raise ConnectionError("no route to the queue")
        stop.set()

    process.guard(abort_hooks=[failing_once], abort=())
    started = run_tools(process, CASES["A03"], stop.is_set)

    assert attempts == [1, 2]
    assert 5 < started <= bound(CASES["A03"])
    assert (aborts(process, "failed"), aborts(process, "ok")) == (1, 1)


def aborts(process: Traced, result: str) -> float:
    """Count the calls of hooks that came out like this."""
    return process.total("loopguard.aborts", abort__result=result)


def asks(guard: LoopGuardSpanProcessor, span: Span) -> bool:
    """Make the request of a model call's span; say whether it left."""
    with trace.use_span(span):
        try:
            guard.admit()
        except RunAborted:
            _log.exception("a callback failed; going on")
            return False
    return True


def test_no_request_leaves_after_the_forced_answer(process: Traced) -> None:
    """B02: the host goes on after its last answer, and swallows what it is told."""
    case = CASES["B02"]
    guard = process.guard(case.ruling, mode="enforce")
    left = 0
    with process.agent():
        for step in case.steps:
            with process.chat(asks=step["finish_reason"] != "stop") as span:
                left += asks(guard, span)
    assert left == 4 == bound(case) - 1


def test_calls_in_flight_are_paid_for_and_no_further_one_starts(process: Traced) -> None:
    """B07: three calls start together before the cost of any is known."""
    case = CASES["B07"]
    guard = process.guard(case.ruling, mode="enforce")
    left: list[bool] = []

    def starts() -> Span:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        span = process.tracer.start_span("chat m", attributes=attributes)
        left.append(asks(guard, span))
        return span

    with process.agent(), ExitStack() as later:
        for step in case.steps[:3]:
            span = starts()
            later.callback(span.end)
            later.callback(span.set_attribute, "operation.cost", step["cost_usd"])
        later.close()
        starts().end()

    assert left == [True, True, True, False]
    ((_, _, trip),) = process.events()
    assert (trip["loopguard.rule"], trip["loopguard.count"]) == ("cost_budget", pytest.approx(1.2))

"""Abort hooks: how they are called, how long they may take, and when they are called again."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, ClassVar

import pytest
from opentelemetry import trace

from otel_loopguard import (
    AbortHook,
    AbortRequest,
    LoopGuard,
    Policy,
    PolicyError,
    RunReport,
    Step,
    Violation,
)
from otel_loopguard.abort.hooks import Outcome, checked, deliver, name_of
from otel_loopguard.slots import CURRENT, Slot
from tests._tracing import Traced

QUICK_S = 0.05
"""How long a hook may take that is meant to take too long."""
PATIENT_S = 20.0
"""How long one may take that is meant to come back."""


def evidence() -> tuple[Violation, RunReport]:
    guard = LoopGuard(policy=Policy.none(), max_steps=1)
    guard.check(Step(kind="llm"))
    guard.check(Step(kind="llm"))
    report = guard.end()
    assert report.trip is not None
    return report.trip, report


TRIP, REPORT = evidence()
REQUEST = AbortRequest(run_id="r", violation=TRIP, report=REPORT)


def told(
    *hooks: AbortHook,
    timeout_s: float = PATIENT_S,
    loop: asyncio.AbstractEventLoop | None = None,
) -> list[Outcome]:
    """Call hooks; return what is told of them by the time that the call returns."""
    outcomes: list[Outcome] = []
    deliver(hooks, REQUEST, timeout_s=timeout_s, loop=loop, tell=outcomes.append)
    return outcomes


def results(outcomes: list[Outcome]) -> list[tuple[str, str]]:
    return [(outcome.name, outcome.result) for outcome in outcomes]


@pytest.fixture
def gate() -> Generator[threading.Event]:
    """Holds hanging hooks up until the test is over."""
    opened = threading.Event()
    yield opened
    opened.set()


def raising(_request: AbortRequest) -> None:
    raise RuntimeError("no route to pager")


def leaving(_request: AbortRequest) -> None:
    raise SystemExit(1)


def refusing(_request: AbortRequest) -> None:
    raise TimeoutError("of its own")


def test_every_hook_is_called_in_order_whatever_the_one_before_did(gate: threading.Event) -> None:
    called: list[str] = []

    def first(request: AbortRequest) -> None:
        called.append(f"first {request.run_id}")

    def hanging(_request: AbortRequest) -> None:
        called.append("hanging")
        gate.wait(PATIENT_S)

    async def last(_request: AbortRequest) -> None:
        await asyncio.sleep(0)
        called.append("last")

    outcomes = told(first, raising, leaving, hanging, refusing, last, timeout_s=1.0)

    assert called == ["first r", "hanging", "last"]
    assert [outcome.result for outcome in outcomes] == [
        "ok",
        "failed",
        "failed",
        "timeout",
        "failed",
        "ok",
    ]
    assert [type(outcome.error) for outcome in outcomes] == [
        type(None),
        RuntimeError,
        SystemExit,
        type(None),
        TimeoutError,
        type(None),
    ]


def test_a_hook_that_hangs_costs_its_time_and_no_more(gate: threading.Event) -> None:
    def hanging(_request: AbortRequest) -> None:
        gate.wait(PATIENT_S)

    started = time.monotonic()
    (outcome,) = told(hanging, timeout_s=QUICK_S)

    assert outcome.result == "timeout"
    assert QUICK_S <= time.monotonic() - started < 2.0
    assert outcome.at_last() is None, "it still runs"
    gate.set()
    wait_until(lambda: outcome.at_last() == "ok")


def test_a_coroutine_that_hangs_is_cancelled() -> None:
    cancelled = threading.Event()

    async def hanging(_request: AbortRequest) -> None:
        try:
            await asyncio.sleep(PATIENT_S)
        finally:
            cancelled.set()

    (outcome,) = told(hanging, timeout_s=QUICK_S)

    assert outcome.result == "timeout"
    assert cancelled.wait(PATIENT_S)
    wait_until(lambda: outcome.at_last() == "timeout")
    wait_until(lambda: not hook_threads())


class Asynchronous:
    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def __call__(self, _request: AbortRequest) -> None:
        await asyncio.sleep(0.001)
        self.loops.append(asyncio.get_running_loop())


class Recorder:
    """Every kind of callable that is no coroutine function, each telling the class of its call."""

    calls: ClassVar[list[str]] = []

    def __init__(self, request: AbortRequest | None = None) -> None:
        if request is not None:
            self.calls.append("class")

    def __call__(self, _request: AbortRequest) -> None:
        self.calls.append("object")

    def method(self, _request: AbortRequest) -> None:
        self.calls.append("method")

    @classmethod
    def of_class(cls, _request: AbortRequest) -> None:
        cls.calls.append("class method")

    @staticmethod
    def of_none(_request: AbortRequest) -> None:
        Recorder.calls.append("static method")


def written_down(what: str, _request: AbortRequest) -> None:
    Recorder.calls.append(what)


async def note_loop(hook: Asynchronous, request: AbortRequest) -> None:
    await hook(request)


class Later:
    """Does what it is made for when it is waited for."""

    hook: Asynchronous

    def __init__(self, *given: Any) -> None:
        *hook, self.request = given
        self.wanted = hook[0] if hook else self.hook

    def __await__(self) -> Generator[Any, None, None]:
        return note_loop(self.wanted, self.request).__await__()


SHAPES: dict[str, Callable[[Asynchronous], AbortHook]] = {
    "an object": lambda hook: hook,
    "a method": lambda hook: hook.__call__,
    "a partial": lambda hook: functools.partial(note_loop, hook),
    "a partial of an object": functools.partial,
    "a function that returns a coroutine": lambda hook: lambda request: note_loop(hook, request),
    "a function that returns another awaitable": lambda hook: lambda request: Later(hook, request),
    "a class": lambda hook: type("Bound", (Later,), {"hook": hook}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_coroutine_runs_without_a_loop(shape: str) -> None:
    hook = Asynchronous()

    assert [outcome.result for outcome in told(SHAPES[shape](hook))] == ["ok"]
    assert len(hook.loops) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_a_coroutine_runs_on_the_loop_of_the_run_which_is_not_held_up(shape: str) -> None:
    hook = Asynchronous()

    async def run() -> None:
        loop, outcomes = asyncio.get_running_loop(), list[Outcome]()
        started = time.monotonic()
        deliver([SHAPES[shape](hook)], REQUEST, timeout_s=5.0, loop=loop, tell=outcomes.append)
        assert time.monotonic() - started < 2.0
        await first_of(outcomes)
        assert outcomes[0].result == "ok"
        assert hook.loops == [loop]

    asyncio.run(run())


def test_a_coroutine_runs_on_the_loop_of_the_run_from_another_thread() -> None:
    hook = Asynchronous()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        outcomes = await asyncio.to_thread(told, hook, loop=loop)
        assert [outcome.result for outcome in outcomes] == ["ok"]
        assert hook.loops == [loop]

    asyncio.run(run())


def test_a_coroutine_that_hangs_on_the_loop_of_the_run_is_timed_there() -> None:
    cancelled: list[int] = []

    async def hanging(_request: AbortRequest) -> None:
        try:
            await asyncio.sleep(PATIENT_S)
        finally:
            cancelled.append(1)

    async def run() -> None:
        outcomes = told(hanging, timeout_s=QUICK_S, loop=asyncio.get_running_loop())
        assert outcomes == [], "nothing is known yet, and nothing waits"
        await first_of(outcomes)
        assert outcomes[0].result == "timeout"
        await asyncio.sleep(0)
        assert cancelled == [1]

    asyncio.run(run())
    wait_until(lambda: not hook_threads())


def test_a_loop_that_is_not_running_is_not_used() -> None:
    hook, loop = Asynchronous(), asyncio.new_event_loop()
    loop.close()

    assert [outcome.result for outcome in told(hook, loop=loop)] == ["ok"]
    assert hook.loops != [loop]


def test_a_hook_is_called_outside_the_run(process: Traced) -> None:
    seen: list[object] = []

    def look(_request: AbortRequest) -> None:
        seen.extend((CURRENT.get(), trace.get_current_span().get_span_context().is_valid))

    with process.agent():
        CURRENT.set(Slot("x"))
        told(look)

    assert seen == [None, False]


def test_every_kind_of_callable_is_a_hook() -> None:
    Recorder.calls.clear()
    named: dict[str, AbortHook] = {
        "Recorder": Recorder,
        "Recorder.method": Recorder().method,
        "Recorder.of_class": Recorder.of_class,
        "Recorder.of_none": Recorder.of_none,
        "written_down": functools.partial(functools.partial(written_down), "partial"),
        "list.append": list[AbortRequest]().append,
    }
    hooks = checked([*named.values(), Recorder()], 2.0)

    assert results(told(*hooks)) == [(name, "ok") for name in (*named, "Recorder")]
    assert Recorder.calls == [
        *("class", "method", "class method", "static method", "partial", "object")
    ]


def yielding(_request: AbortRequest) -> Generator[None]:
    yield


async def yielding_later(_request: AbortRequest) -> AsyncGenerator[None]:
    yield


class Yielding:
    def __call__(self, request: AbortRequest) -> Generator[None]:
        yield from yielding(request)


@pytest.mark.parametrize(
    "hook",
    [yielding, yielding_later, Yielding(), Yielding().__call__, functools.partial(yielding)],
    ids=["function", "async function", "object", "method", "partial"],
)
def test_what_would_only_make_a_generator_is_refused(hook: AbortHook) -> None:
    """Its code would never run, and the call would look like a delivery."""
    with pytest.raises(PolicyError, match=r"abort_hooks\[1\]: expected a function without `yield`"):
        checked([print, hook], 2.0)


def test_a_hook_is_called_by_its_name() -> None:
    assert name_of(raising) == "raising"
    assert name_of(Asynchronous()) == "Asynchronous"
    assert name_of(Asynchronous().__call__) == "Asynchronous.__call__"
    assert name_of(functools.partial(raising)) == "raising"
    assert name_of(functools.partial(Asynchronous())) == "Asynchronous"


# ------------------------------------------------------------------ through the processor


def test_hooks_are_asked_once_for_a_trip(process: Traced) -> None:
    requests: list[AbortRequest] = []
    process.guard(Policy.none().with_limits(max_steps=2), abort_hooks=[requests.append], abort=())

    with process.agent():
        process.work(5)

    (request,) = requests
    assert request.violation.rule == "step_budget"
    assert request.report.steps == 3, "nothing kept the step from happening that broke the limit"
    assert request.attempt == 1
    assert request.run_span == (1, 1)
    assert request.run_id == f"{1:032x}-{1:016x}"
    assert process.total("loopguard.aborts", abort__result="ok") == 1


def test_only_a_hook_that_failed_is_asked_again(process: Traced) -> None:
    asked: list[tuple[str, int]] = []

    def pager(request: AbortRequest) -> None:
        asked.append(("pager", request.attempt))

    def switch(request: AbortRequest) -> None:
        asked.append(("switch", request.attempt))
        if request.attempt < 3:
            raise ConnectionError("not yet")

    process.guard(Policy.none().with_limits(max_steps=2), abort_hooks=[switch, pager], abort=())

    with process.agent():
        process.work(5)

    assert asked == [("switch", 1), ("pager", 1), ("switch", 2), ("switch", 3)]
    counted = {
        (labels["loopguard.abort.hook"].rpartition(".")[2], labels["loopguard.abort.result"]): value
        for labels, value in process.counts("loopguard.aborts")
        if value
    }
    assert counted == {("switch", "failed"): 2, ("switch", "ok"): 1, ("pager", "ok"): 1}


def test_a_hook_that_still_hangs_is_not_called_on_top(
    process: Traced, gate: threading.Event
) -> None:
    calls: list[int] = []

    def hanging(request: AbortRequest) -> None:
        calls.append(request.attempt)
        gate.wait(PATIENT_S)
        raise ConnectionError("late, and in vain")

    process.guard(
        Policy.none().with_limits(max_steps=1),
        abort_hooks=[hanging],
        abort=(),
        hook_timeout_s=QUICK_S,
    )
    with process.agent():
        process.work(4)
        assert calls == [1]
        gate.set()
        wait_until(lambda: not hook_threads())
        with process.tool():
            pass
    assert calls == [1, 2], "its call has failed in the end: it is asked again"


def test_a_hook_that_came_late_has_been_heard(process: Traced, gate: threading.Event) -> None:
    calls: list[int] = []

    def slow(request: AbortRequest) -> None:
        calls.append(request.attempt)
        gate.wait(PATIENT_S)

    process.guard(
        Policy.none().with_limits(max_steps=1), abort_hooks=[slow], hook_timeout_s=QUICK_S, abort=()
    )
    with process.agent():
        process.work(2)
        gate.set()
        wait_until(lambda: not hook_threads())
        process.work(2)

    assert calls == [1]


def test_each_run_asks_for_itself(process: Traced) -> None:
    requests: list[AbortRequest] = []
    process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[requests.append], abort=())
    for _ in range(3):
        with process.agent():
            process.work(2)

    assert len(requests) == len({request.run_id for request in requests}) == 3


def test_no_hook_acts_in_observe(process: Traced) -> None:
    calls: list[AbortRequest] = []
    process.guard(
        Policy.none().with_limits(max_steps=1), mode="observe", abort_hooks=[calls.append]
    )

    with process.agent():
        process.work(3)

    assert calls == []
    assert process.total("loopguard.violations", rule="step_budget", action="abort") == 1
    assert process.counts("loopguard.aborts") == []


def test_a_hook_may_use_what_is_guarded(process: Traced) -> None:
    """A hook that emits spans of its own must not wait for a lock, nor belong to the run."""

    def summarise(_request: AbortRequest) -> None:
        with process.chat(asks=False):
            pass

    process.guard(
        Policy.none().with_limits(max_llm_calls=1),
        abort_hooks=[summarise],
        hook_timeout_s=PATIENT_S,
    )
    started = time.monotonic()
    with process.agent():
        process.work(3)

    assert time.monotonic() - started < PATIENT_S / 2
    ended: list[Any] = [
        (labels["gen_ai.agent.name"], labels["loopguard.run.status"], labels["loopguard.tripped"])
        for labels, _ in process.counts("loopguard.runs")
    ]
    assert sorted(ended) == [("", "complete", False), ("scout", "running", True)]


async def first_of(outcomes: list[Outcome]) -> None:
    while not outcomes:  # noqa: ASYNC110 -- they come from another thread
        await asyncio.sleep(0.001)


def hook_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("loopguard-")]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)

"""How long the guard takes for a span: measured on one in 251, and told of."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.registry.names import VETOABLE
from otel_loopguard.stopwatch import EVERY
from tests._tracing import Traced

NAME = "loopguard.guard.duration"


def measured(process: Traced) -> dict[Any, int]:
    """Return how many callbacks have been measured."""
    points = process.points(NAME)
    return {point.attributes["loopguard.callback"]: point.count for point in points}


def spans(process: Traced, number: int) -> None:
    for _ in range(number):
        with process.tracer.start_as_current_span("GET"):
            pass


def test_one_span_in_so_many_is_measured(process: Traced) -> None:
    process.guard()
    spans(process, EVERY)
    assert measured(process) == {"start": 1, "end": 1}
    spans(process, 4 * EVERY)
    assert measured(process) == {"start": 5, "end": 5}


def test_the_first_spans_are_not(process: Traced) -> None:
    process.guard()
    spans(process, 10)
    assert measured(process) == {}
    spans(process, 1)
    assert measured(process) == {"start": 1, "end": 1}


def test_a_span_that_is_measured_counts_once(process: Traced) -> None:
    process.guard()
    with process.agent():
        process.work(2 * EVERY)

    assert process.total("loopguard.steps") == 4 * EVERY
    assert process.total("loopguard.errors") == 0


def test_what_a_measured_callback_raises_leaves_it(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1), mode="enforce")
    spans(process, 9)  # the eleventh, which is measured, is the call that is refused
    with pytest.raises(RunAborted), guarded_run():
        for _ in range(3):
            with process.tracer.start_as_current_span(
                "execute_tool mine", attributes={VETOABLE: True}
            ):
                pass

    assert measured(process) == {"start": 1, "end": 1}


def test_a_meter_that_fails_harms_nobody(process: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    guard: Any = process.guard()
    monkeypatch.setattr(guard._telemetry._instruments.guard_duration, "record", broken)
    with process.agent():
        process.work(EVERY)

    assert process.total("loopguard.errors") == 4
    assert process.total("loopguard.steps") == 2 * EVERY


def test_threads_that_begin_at_once_are_not_in_each_others_way(process: Traced) -> None:
    threads, rounds = 8, 40
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(rounds):
                guard = process.guard()
                for done in [pool.submit(spans, process, 32) for _ in range(threads)]:
                    done.result()
                guard.shutdown()
    finally:
        sys.setswitchinterval(interval_s)

    assert process.total("loopguard.errors") == 0
    assert measured(process) == {"start": rounds, "end": rounds}


@pytest.mark.parametrize("callback", ["starts", "ends"])
def test_a_stopwatch_that_fails_harms_nobody(process: Traced, callback: str) -> None:
    guard: Any = process.guard()
    setattr(guard._stopwatch, callback, iter(()))
    spans(process, 1)

    assert process.total("loopguard.errors") == 1


def test_both_kinds_of_spans_of_a_loop_are_measured(process: Traced) -> None:
    guard: Any = process.guard()
    kinds = list[tuple[str, str]]()

    def tell(callback: str, _taken_s: float) -> None:
        kinds.append((callback, kind))

    guard._stopwatch._tell = tell
    for turn in range(4 * EVERY):  # as one loop of a model's call and a tool's
        kind = ("chat", "execute_tool")[turn % 2]
        with process.tracer.start_as_current_span(kind):
            pass

    assert Counter(kinds) == {
        (callback, kind): 2 for callback in ("start", "end") for kind in ("chat", "execute_tool")
    }

"""Runs that baggage names: across threads, traces and processes, until it is silent for long."""

from __future__ import annotations

import threading

import pytest
from opentelemetry import baggage, context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context

from otel_loopguard import Policy, guarded_run, open_runs
from otel_loopguard.registry import names
from tests._tracing import Traced

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "{}"}


def named(name: str) -> Context:
    return baggage.set_baggage(names.RUN_ID, name, Context())


def call(process: Traced, within: Context, times: int = 1) -> None:
    """Call tools in a context, each in a trace of its own."""
    token = context.attach(within)
    try:
        for _ in range(times):
            with process.tracer.start_as_current_span("execute_tool t", attributes=TOOL):
                pass
    finally:
        context.detach(token)


def calls(process: Traced) -> dict[str, int]:
    """Return how many tools each run has called that goes on."""
    (guard,) = process.guards
    found = guard._tracker.runs.open_runs()  # pyright: ignore[reportPrivateUsage]
    return {run.id: run.report().tool_calls for run in found}


def test_what_one_name_is_on_is_one_run(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=6))
    threads = [threading.Thread(target=call, args=(process, named("a"), 2)) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()

    assert calls(process) == {"a": 6}
    assert process.total("loopguard.violations") == 0
    call(process, named("a"))
    assert process.total("loopguard.violations") == 1


def test_other_names_are_other_runs(process: Traced) -> None:
    process.guard()
    for name in ("a", "b", "a", "c", "b", "a"):
        call(process, named(name))

    assert calls(process) == {"a": 3, "b": 2, "c": 1}


def test_the_context_may_be_given_to_the_span_alone(process: Traced) -> None:
    process.guard()
    for _ in range(2):
        process.tracer.start_span("execute_tool t", context=named("a"), attributes=TOOL).end()

    assert calls(process) == {"a": 2}


def test_a_block_in_this_process_goes_before_the_name(process: Traced) -> None:
    process.guard()
    with guarded_run("block") as run:
        call(process, named("a"), 2)

    assert run.report is not None
    assert run.report.tool_calls == 2
    assert calls(process) == {}


@pytest.mark.parametrize("name", ["", 7, None])
def test_a_name_that_is_none_names_no_run(process: Traced, name: object) -> None:
    process.guard()
    call(process, baggage.set_baggage(names.RUN_ID, name, Context()))

    assert calls(process) == {}
    assert process.total("loopguard.runs") == 1


def test_after_a_long_silence_the_name_is_that_of_another_run(process: Traced) -> None:
    now_s = [1_000.0]
    process.guard(Policy.none().with_limits(max_tool_calls=1), clock=lambda: now_s[0])
    call(process, named("a"), 2)
    now_s[0] += open_runs.IDLE_S - 1
    call(process, named("a"))
    assert calls(process) == {"a": 3}

    now_s[0] += open_runs.IDLE_S
    call(process, named("other"))
    assert calls(process) == {"other": 1}
    call(process, named("a"))
    assert calls(process) == {"other": 1, "a": 1}
    assert process.total("loopguard.violations") == 1, "a trip does not outlive its run"
    assert process.total("loopguard.runs", tripped=True) == 1


def test_a_name_that_comes_from_another_process(process: Traced) -> None:
    process.guard()
    sent: dict[str, str] = {}
    W3CBaggagePropagator().inject(sent, context=named("order-4711 ä"))
    for _ in range(2):  # two requests
        call(process, W3CBaggagePropagator().extract(sent, context=Context()))

    assert calls(process) == {"order-4711 ä": 2}

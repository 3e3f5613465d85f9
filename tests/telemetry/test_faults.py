"""Nothing breaks the application: whatever spans hold, and whatever is broken in the guard."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan

from otel_loopguard import (
    AbortRequest,
    LoopGuardSpanProcessor,
    Policy,
    RunAborted,
    guarded_run,
    open_runs,
    semconv,
    span_tree,
    telemetry,
    tracker,
)
from otel_loopguard.abort.ladder import Ladder
from otel_loopguard.detectors import StepBudget
from tests._examples import examples
from tests._tracing import Traced, traced

# ----------------------------------------------------------------------------- whatever spans hold

READ = sorted(
    value
    for name, value in vars(semconv).items()
    if isinstance(value, str) and name.isupper() and not value.startswith("loopguard.")
)
FLAT = [
    f"llm.output_messages.{n}.message.{rest}"
    for n in ("0", "1", "x", "99999999999999999999")
    for rest in ("role", "content", "tool_calls.0.tool_call.function.arguments")
]
OPERATIONS = ["chat", "execute_tool", "invoke_agent", "invoke_workflow", "LLM", "TOOL", "AGENT"]
texts = st.text(max_size=12) | st.sampled_from([*OPERATIONS, "{}", "[", '{"a":', "\ud800", "null"])
scalars = texts | st.booleans() | st.integers() | st.floats() | st.none() | st.binary(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from([*READ, *FLAT]) | st.text(max_size=8)
holdings = st.dictionaries(names, values, max_size=8)
span_names = texts | st.sampled_from([f"{op} x" for op in OPERATIONS])
lives = st.lists(st.tuples(span_names, holdings, holdings), max_size=6)
"""Spans: the name, what it holds at its start, what is added by its end."""


@examples(60)
@given(spans=lives, enforces=st.booleans())
def test_whatever_spans_hold_nothing_is_raised(
    spans: list[tuple[str, dict[str, Any], dict[str, Any]]], *, enforces: bool
) -> None:
    with traced() as process:
        guard = process.guard(
            Policy(max_steps=2, max_duration_s=1e9), mode="enforce" if enforces else "observe"
        )
        open_spans: list[Any] = []
        for name, at_start, at_end in spans:
            span: Any = process.tracer.start_span(name)
            _hold(span, at_start)
            guard.on_start(span)
            open_spans.append((span, at_end))
        for span, at_end in open_spans:
            _hold(span, at_end)
            span.end()

        assert process.counts("loopguard.errors") == []


def _hold(span: Any, attributes: dict[str, Any]) -> None:
    """Put attributes on a span that the SDK itself may refuse to take."""
    span._attributes._dict.update(attributes)


# ----------------------------------------------------------------- whatever is broken in the guard


def broken(*_arguments: object, **_options: object) -> Any:
    raise ZeroDivisionError("a fault of ours")


def break_dialects(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tracker, "read_step", broken)


def break_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StepBudget, "check", broken)


def break_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StepBudget, "commit", broken)


@pytest.mark.parametrize("break_it", [break_dialects, break_check, break_commit])
def test_a_fault_is_logged_once_and_counted_and_the_application_goes_on(
    process: Traced,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    break_it: Callable[[pytest.MonkeyPatch], None],
) -> None:
    process.guard(Policy(max_steps=100), mode="enforce")
    break_it(monkeypatch)

    with process.agent():
        process.work(3)

    assert len(process.spans) == 7
    assert [record.message for record in caplog.records] == [
        "the loop guard failed on a span; the application goes on"
    ]
    assert process.total("loopguard.errors") >= 6
    assert process.counts("loopguard.errors")[0][0] == {"error.type": "ZeroDivisionError"}
    assert process.total("loopguard.run.active") == 0


def test_kinds_of_faults_are_told_apart_up_to_a_bound(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    guard = process.guard()
    for number in range(50):
        for _ in range(2):
            error = type(f"Fault{number}", (Exception,), {})()
            guard._fault(error)  # pyright: ignore[reportPrivateUsage]

    assert len(caplog.records) == 20


def test_telemetry_that_is_broken_does_not_keep_a_run_from_being_stopped(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[AbortRequest] = []
    guard = process.guard(
        Policy.none().with_limits(max_llm_calls=1), abort_hooks=[asked.append], mode="enforce"
    )
    for name in ("violation", "describe", "abort", "run_opened", "run_ended", "fault"):
        monkeypatch.setattr(telemetry.Telemetry, name, broken)
    monkeypatch.setattr(Ladder, "refused", broken)
    monkeypatch.setattr("otel_loopguard.faults._logger.error", broken)

    with pytest.raises(RunAborted), guarded_run() as run, process.agent():
        for _ in range(3):
            with process.chat():
                guard.admit()

    assert run.report is not None
    assert run.report.rule == "llm_call_budget"
    assert [request.violation.rule for request in asked] == ["llm_call_budget"]


def test_a_span_without_a_context_is_nobody_s(process: Traced) -> None:
    guard = process.guard()
    guard.on_end(ReadableSpan("chat m"))

    assert process.counts("loopguard.errors") == []


# ------------------------------------------------------------------------------ beginnings and ends


def test_a_guard_may_be_added_while_spans_are_open(process: Traced) -> None:
    with process.agent():
        with process.chat():
            process.guard()
        process.work(1)
    with process.agent("next"):
        process.work(1)

    assert process.counts("loopguard.errors") == []
    assert process.total("loopguard.run.active") == 0
    runs = {
        labels["gen_ai.agent.name"]: value for labels, value in process.counts("loopguard.runs")
    }
    assert runs["next"] == 1


def test_shutdown_may_come_twice_and_is_the_end(process: Traced) -> None:
    guard = process.guard()
    with process.agent():
        process.work(2)
        guard.shutdown()
        guard.shutdown()
        process.work(5)
    process.provider.shutdown()
    process.provider.shutdown()

    assert process.total("loopguard.violations", action="warn") == 0
    assert guard.force_flush()
    assert guard.force_flush(1)


def test_more_open_spans_than_the_store_holds(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_tree, "SPANS", 8)
    monkeypatch.setattr(open_runs, "RUNS", 4)
    process.guard()
    spans: list[Any] = []
    for number in range(20):
        with process.agent(f"a{number}") as agent:
            spans += [process.tracer.start_span("chat m") for _ in range(2)]
            assert agent.is_recording()
    agents = [process.tracer.start_span(f"invoke_agent b{number}") for number in range(9)]
    for span in (*spans, *agents):
        span.end()

    assert process.counts("loopguard.errors") == []
    assert process.total("loopguard.evictions", store="spans") > 0
    assert process.total("loopguard.evictions", store="runs") >= 5
    assert process.total("loopguard.run.active") == 0


def test_threads_that_hammer_one_guard(process: Traced) -> None:
    threads, runs = 8, 200
    process.guard(Policy.none().with_limits(max_tool_calls=2))
    together = threading.Barrier(threads)

    def work(number: int) -> None:
        together.wait()
        for _ in range(runs):
            with process.agent(f"a{number}"):
                with process.chat(tokens=(3, 1), asks=False):
                    pass
                for _ in range(3):
                    with process.tool():
                        pass

    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, work, n) for n in range(threads)]
    for job in jobs:
        job.result()

    assert process.counts("loopguard.errors") == []
    assert process.total("loopguard.runs", tripped=True) == threads * runs
    assert process.total("loopguard.violations", rule="tool_call_budget") == threads * runs
    assert process.total("loopguard.run.active") == 0
    points = process.points("loopguard.run.steps")
    assert [(p.count, p.sum) for p in points] == [(runs, 4 * runs)] * threads
    assert sum(p.sum for p in process.points("loopguard.run.token.usage")) == threads * runs * 4


def test_threads_that_hammer_one_run(process: Traced) -> None:
    threads, calls = 8, 100
    process.guard(Policy.none().with_limits(max_tool_calls=threads * calls - 1))
    together = threading.Barrier(threads)

    def work() -> None:
        together.wait()
        for _ in range(calls):
            with process.tool():
                pass

    with guarded_run() as run, process.agent(), ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            pool.submit(contextvars.copy_context().run, work)

    assert run.report is not None
    assert run.report.tool_calls == threads * calls
    assert process.total("loopguard.violations", rule="tool_call_budget") == 1
    assert process.counts("loopguard.errors") == []


def test_a_guard_alone_is_a_span_processor() -> None:
    guard = LoopGuardSpanProcessor()
    with traced() as process:
        process.provider.add_span_processor(guard)
        with process.agent():
            process.work(1)
        assert guard.mode == "observe"

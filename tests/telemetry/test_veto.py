"""The veto: calls that are not made, because their spans raise when they start."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry.sdk.trace import (
    ConcurrentMultiSpanProcessor,
    ReadableSpan,
    Span,
    SpanProcessor,
    SynchronousMultiSpanProcessor,
    TracerProvider,
)
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, RunReport, guarded_run
from otel_loopguard.decisions import Violation
from otel_loopguard.live_spans import record_of
from otel_loopguard.registry.names import EVENT_VIOLATION, STEP_PREVENTED, VETOABLE
from otel_loopguard.tracker import RunTracker
from tests._tracing import Traced

SCOPE = "pydantic-ai"
TWO_TOOLS = Policy.none().with_limits(max_tool_calls=2)
ONE_TURN = Policy.none().with_limits(max_llm_calls=1)


@pytest.fixture
def process(process: Traced) -> Traced:
    """Trace agents by an instrumentation that lets exceptions out."""
    process.tracer = process.provider.get_tracer(SCOPE)
    return process


def report_of(run: guarded_run) -> RunReport:
    assert run.report is not None
    return run.report


def trip_of(report: RunReport) -> Violation:
    assert report.trip is not None
    return report.trip


def prevented(process: Traced) -> list[ReadableSpan]:
    return [span for span in process.spans if (span.attributes or {}).get(STEP_PREVENTED)]


def use_tools(process: Traced, times: int) -> list[int]:
    """Call a tool so often, whatever is raised; return which of the calls were made."""
    made: list[int] = []
    for number in range(times):
        try:
            with process.tool():
                made.append(number)
        except RunAborted:
            pass
    return made


# --------------------------------------------------------------------------- what is not made


def test_a_tool_call_that_breaks_a_limit_is_not_made(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    with pytest.raises(RunAborted) as raised, guarded_run() as run, process.agent():
        process.work(2)
        with process.chat():
            pass
        with process.tool():
            pytest.fail("the call was made")

    report = report_of(run)
    assert raised.value.report.rule == report.rule == "tool_call_budget"
    assert (report.status, report.steps, report.model_calls, report.tool_calls) == (
        "aborted",
        5,
        3,
        2,
    )
    assert (trip_of(report).phase, trip_of(report).step) == ("pre", 6)
    assert report.steps_after_trip == 0
    [span] = prevented(process)
    assert (span.name, span.status.status_code.name) == ("execute_tool search", "ERROR")
    assert span.status.description == trip_of(report).message
    assert (span.attributes or {})["error.type"] == "RunAborted"
    written = [(on, name) for on, name, _ in process.events() if name == EVENT_VIOLATION]
    assert written == [("invoke_agent scout", EVENT_VIOLATION)]
    assert process.total("loopguard.abort.requests", abort__hook="veto") == 1
    assert process.total("loopguard.aborts", abort__hook="veto", abort__result="ok") == 1
    assert process.total("loopguard.errors") == 0


def test_a_model_call_is_not_made_although_no_request_would_show_it(process: Traced) -> None:
    process.guard(ONE_TURN, abort=("veto",))
    with pytest.raises(RunAborted), guarded_run() as run, process.agent():
        process.work(1)
        with process.chat():
            pytest.fail("the call was made")

    assert report_of(run).model_calls == 1
    assert [span.name for span in prevented(process)] == ["chat m"]


def test_every_attempt_is_refused_and_none_is_counted(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    with guarded_run() as run, process.agent():
        assert use_tools(process, 6) == [0, 1]

    assert (report_of(run).status, report_of(run).tool_calls) == ("aborted", 2)
    assert report_of(run).steps_after_trip == 0
    assert len(prevented(process)) == 4
    assert process.total("loopguard.violations") == 1
    assert process.total("loopguard.aborts", abort__hook="veto") == 1, "told of once"


def test_a_refused_span_with_none_around_it_holds_the_event_itself(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    with guarded_run():
        use_tools(process, 4)

    first, second = prevented(process)
    assert [event.name for event in first.events] == [EVENT_VIOLATION]
    assert not second.events


def test_parallel_calls_are_judged_one_by_one(process: Traced) -> None:
    """The root task is not cancelled for the calls that were refused beside the first one."""
    made: list[int] = []

    async def call(number: int) -> None:
        with process.tool():
            made.append(number)
            await asyncio.sleep(0)

    async def turn() -> None:
        with process.agent():
            await asyncio.gather(*(call(number) for number in range(5)))

    for stops in (None, ("veto", "cancel")):
        process.guard(TWO_TOOLS, mode="enforce", abort=stops)
        made.clear()
        with pytest.raises(RunAborted):
            asyncio.run(turn())
        assert made == [0, 1]
        process.guards.pop().shutdown()


def test_what_goes_on_all_the_same_is_cancelled(process: Traced) -> None:
    process.guard(ONE_TURN, abort=("veto", "cancel"))
    refused: list[RunAborted] = []

    async def stubborn() -> None:
        with process.agent():
            while True:
                try:
                    with process.chat():
                        pass
                except RunAborted as error:
                    refused.append(error)
                await asyncio.sleep(0)

    async def main() -> None:
        async with guarded_run():
            await stubborn()

    with pytest.raises(RunAborted):
        asyncio.run(main())
    assert len(refused) == 2


def test_a_run_around_refuses_the_steps_of_one_inside_it(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    with guarded_run("outer") as outer, process.agent():
        use_tools(process, 2)
        with pytest.raises(RunAborted), guarded_run("inner") as inner, process.tool():
            pytest.fail("the call was made")

    assert (report_of(inner).status, report_of(inner).stopped_with) == ("aborted", "outer")
    assert (report_of(outer).status, report_of(outer).tool_calls) == ("aborted", 2)


# --------------------------------------------------------------------------- where it does not act


@pytest.mark.parametrize(
    "options", [{"mode": "observe"}, {"abort": ("gate", "cancel")}, {"abort": ()}]
)
def test_it_acts_where_it_is_wanted(process: Traced, options: dict[str, Any]) -> None:
    process.guard(TWO_TOOLS, **options)
    with guarded_run() as run, process.agent():
        assert use_tools(process, 3) == [0, 1, 2]

    assert report_of(run).tool_calls == 3
    assert prevented(process) == []


def test_what_an_unknown_scope_refuses_runs_and_is_counted(process: Traced) -> None:
    process.tracer = process.provider.get_tracer("somebody's")
    process.guard(TWO_TOOLS, mode="enforce")
    with guarded_run() as run, process.agent():
        assert use_tools(process, 3) == [0, 1, 2]

    assert report_of(run).tool_calls == 3


def test_spans_written_by_hand_may_say_that_they_let_it_out(process: Traced) -> None:
    tracer = process.provider.get_tracer("somebody's")
    process.guard(TWO_TOOLS, mode="enforce")
    made = 0
    with pytest.raises(RunAborted), guarded_run() as run:
        for _ in range(4):
            with tracer.start_as_current_span("execute_tool mine", attributes={VETOABLE: True}):
                made += 1

    assert made == report_of(run).tool_calls == 2


class Swallows(SpanProcessor):
    """Keeps what a processor raises to itself."""

    def __init__(self, inner: SpanProcessor) -> None:
        self.inner = inner

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        try:
            self.inner.on_start(span, parent_context)
        except Exception as error:  # noqa: BLE001
            pytest.fail(f"{error!r} was raised where nobody hears it")

    def on_end(self, span: ReadableSpan) -> None:
        self.inner.on_end(span)


def test_it_does_not_act_where_another_processor_stands_between(process: Traced) -> None:
    guard = LoopGuardSpanProcessor(TWO_TOOLS, mode="enforce")
    process.provider.add_span_processor(Swallows(guard))
    with guarded_run() as run, process.agent():
        assert use_tools(process, 3) == [0, 1, 2]
    guard.shutdown()

    assert report_of(run).tool_calls == 3


def test_it_does_not_act_in_threads_of_a_pool(process: Traced) -> None:
    """A span that is ended in there waits for the same threads."""
    concurrent = ConcurrentMultiSpanProcessor(1)
    process.provider = TracerProvider(active_span_processor=concurrent, shutdown_on_exit=False)
    process.tracer = process.provider.get_tracer(SCOPE)
    guard = process.guard(TWO_TOOLS, mode="enforce")
    with process.agent():
        assert use_tools(process, 3) == [0, 1, 2]
        (run,) = guard._tracker.runs.open_runs()  # pyright: ignore[reportPrivateUsage]
        assert run.report().tool_calls == 3


def test_it_does_not_act_where_the_sdk_keeps_exceptions_to_itself(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a later version may."""

    def on_start(self: Any, span: Span, parent_context: Any = None) -> None:
        for processor in self._span_processors:
            with suppress(Exception):
                processor.on_start(span, parent_context)

    monkeypatch.setattr(SynchronousMultiSpanProcessor, "on_start", on_start)
    process.guard(TWO_TOOLS, mode="enforce")
    with guarded_run() as run, process.agent():
        assert use_tools(process, 3) == [0, 1, 2]

    assert report_of(run).tool_calls == 3
    assert prevented(process) == []


# --------------------------------------------------------------------------- in company


def test_exporters_before_and_after_get_the_span_once(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    after = InMemorySpanExporter()
    process.provider.add_span_processor(SimpleSpanProcessor(after))
    with guarded_run(), process.agent():
        use_tools(process, 3)

    for exported in (process.spans, after.get_finished_spans()):
        assert [span.name for span in exported] == ["execute_tool search"] * 3 + [
            "invoke_agent scout"
        ]


class Pairs(SpanProcessor):
    """Takes it for granted that what ends has started."""

    def __init__(self) -> None:
        self.open: set[int] = set()

    def on_start(self, span: Span, parent_context: object = None) -> None:  # noqa: ARG002
        self.open.add(span.get_span_context().span_id)

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        self.open.remove(span.context.span_id)


def test_a_later_processor_that_misses_the_start_does_no_harm(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    pairs = Pairs()
    process.provider.add_span_processor(pairs)
    with pytest.raises(RunAborted), process.agent():
        for _ in range(3):
            with process.tool():
                pass

    assert pairs.open == set()
    assert process.total("loopguard.errors") == 1
    assert len(prevented(process)) == 1, "what comes before has it"


@pytest.mark.parametrize("other_comes", ["before", "after"])
def test_another_guard_hears_of_no_execution(process: Traced, other_comes: str) -> None:
    def watch() -> LoopGuardSpanProcessor:
        return process.guard(Policy.none(), mode="observe")

    def stop() -> LoopGuardSpanProcessor:
        return process.guard(TWO_TOOLS, mode="enforce")

    order: list[Callable[[], LoopGuardSpanProcessor]] = [watch, stop]
    guards = [make() for make in (order if other_comes == "before" else reversed(order))]
    observer = next(guard for guard in guards if guard.mode == "observe")
    with process.agent():
        use_tools(process, 4)
        (run,) = observer._tracker.runs.open_runs()  # pyright: ignore[reportPrivateUsage]
        # One that comes first is told of the start, and counts it: it is not left open.
        assert run.report().tool_calls == (4 if other_comes == "before" else 2)
        assert not run.open_tools


def test_other_runs_are_left_alone(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    made: list[list[int]] = []

    def other() -> None:
        with process.agent("other"):
            made.append(use_tools(process, 2))

    with process.agent():
        use_tools(process, 3)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert made == [[0, 1]]


def test_a_record_of_it_shows_no_execution(process: Traced) -> None:
    process.guard(TWO_TOOLS, mode="enforce")
    with process.agent():
        use_tools(process, 4)

    tracker = RunTracker(Policy.none())
    records = sorted(map(record_of, process.spans), key=lambda record: record.started_ns)
    for record in records:
        tracker.started(record)
    *calls, agent = map(record_of, process.spans)
    for record in calls:
        tracker.ended(record)
    verdict = tracker.ended(agent)

    assert verdict is not None
    assert verdict.report is not None
    assert (verdict.report.tool_calls, verdict.report.steps) == (2, 2)

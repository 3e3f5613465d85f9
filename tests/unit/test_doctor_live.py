"""The doctor as a span processor: what only a process shows."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, TraceIdRatioBased

from otel_loopguard import RecordDropped, Step, guarded_run
from otel_loopguard.dialects import Dialect
from otel_loopguard.doctor import Doctor, Finding, Report
from otel_loopguard.spans import SpanRecord
from tests._tracing import Traced, traced

LATE = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "{}"}


def attended(process: Traced, **options: Any) -> Doctor:
    doctor = Doctor(**options)
    process.provider.add_span_processor(doctor)
    return doctor


def found(report: Report, name: str) -> Finding | None:
    return next((each for each in report.findings if each.finding == name), None)


def test_an_agent_that_shows_itself_is_well(process: Traced) -> None:
    doctor = attended(process)
    with process.agent():
        process.work(3)
    report = doctor.report()

    assert {each.severity for each in report.findings} == {"ok"}
    (scope,) = report.seen.scopes
    assert scope.tools.calls == scope.tools.arguments == scope.tools.arguments_at_start == 3
    assert [(each.spans, each.at_start) for each in scope.recognised] == [(7, 7)]
    assert str(report).startswith("ok: 1 run with a beginning and an end: 1 by an agent's span\n")


def test_what_shows_at_the_end_only_is_told_of(process: Traced) -> None:
    doctor = attended(process)
    with process.agent(), process.tracer.start_as_current_span("work") as span:
        span.set_attributes(LATE)
    report = doctor.report()

    late = found(report, "late")
    assert late is not None
    assert late.what == "what it is shows at the start on 1 of 2 spans"
    (scope,) = report.seen.scopes
    assert (scope.tools.arguments, scope.tools.arguments_at_start) == (1, 0)


def test_calls_in_a_block_belong_together(process: Traced) -> None:
    doctor = attended(process)
    for _ in range(2):
        with guarded_run():
            for _ in range(3):
                with process.chat(asks=False):
                    pass
    with process.chat(asks=False):
        pass

    runs = doctor.report().seen.runs
    assert (runs.guarded_run, runs.single_calls, runs.ids) == (2, 1, 0)


def test_a_run_in_the_baggage_is_a_block_too(process: Traced) -> None:
    doctor = attended(process)
    token = attach(baggage.set_baggage("loopguard.run.id", "order-4711"))
    try:
        for _ in range(2):
            with process.chat(asks=False):
                pass
    finally:
        detach(token)

    assert doctor.report().seen.runs.guarded_run == 1


def test_the_guard_does_not_notice_the_doctor(process: Traced) -> None:
    attended(process)
    process.guard()
    attended(process)
    with process.agent():
        process.work(6)

    assert process.total("loopguard.violations", rule="repeated_result") == 2
    assert process.total("loopguard.runs") == 1


def test_spans_that_go_on_are_looked_at_as_they_started(process: Traced) -> None:
    doctor = attended(process)
    with process.agent():
        process.work(1)
        seen = doctor.report().seen

    assert seen.spans == 3
    assert seen.runs.agent == 1
    assert [scope.agents.spans for scope in seen.scopes] == [1]


def test_a_sampler_that_drops_is_told_of() -> None:
    with traced(TraceIdRatioBased(0.99)) as process:
        doctor = attended(process)
        for _ in range(20):
            with process.agent():
                pass
    sampling = found(doctor.report(), "sampling")

    assert sampling is not None
    assert sampling.severity == "blind"
    assert "OTEL_TRACES_SAMPLER=loopguard" in sampling.remedy


def test_it_reads_spans_as_the_guard_does(process: Traced) -> None:
    def read(record: SpanRecord) -> Step | None:
        return Step(kind="tool", name="ours") if record.name == "acme" else None

    doctor = attended(process, dialects=(Dialect(name="ours", read=read),))
    with process.tracer.start_as_current_span("acme"):
        pass

    (scope,) = doctor.report().seen.scopes
    assert [(each.dialect, each.at_start) for each in scope.recognised] == [("ours", 1)]
    assert scope.tools.calls == 1


def test_one_that_shows_what_it_drops_is_not() -> None:
    with traced(RecordDropped(TraceIdRatioBased(0.5))) as process:
        doctor = attended(process)
        with process.agent():
            pass

    assert found(doctor.report(), "sampling") is None


def test_where_nothing_arrives_the_global_sampler_may_be_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    report = Doctor().report()

    assert {each.finding for each in report.findings} == {"no_steps", "sampling"}
    assert report.is_blind


def test_lost_attributes_and_cut_values_are_known_exactly() -> None:
    limits = SpanLimits(max_span_attributes=2, max_span_attribute_length=12)
    provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
    doctor = Doctor()
    provider.add_span_processor(doctor)
    with provider.get_tracer("mine").start_as_current_span("execute_tool t") as span:
        for name in ("a", "b", "gen_ai.tool.call.arguments"):
            span.set_attribute(name, '{"q": "long enough"}')
    report = doctor.report()

    cut, lost = found(report, "cut_values"), found(report, "lost_attributes")
    assert cut is not None
    assert cut.what == "2 values cut at 12 characters"
    assert lost is not None
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in lost.remedy
    assert found(report, "no_arguments") is not None


def test_a_span_with_many_attributes_has_not_lost_any() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    doctor = Doctor()
    provider.add_span_processor(doctor)
    many = {str(number): number for number in range(128)}
    with provider.get_tracer("mine").start_as_current_span("chat m", attributes=many):
        pass

    assert found(doctor.report(), "lost_attributes") is None


def test_what_it_keeps_is_bounded(process: Traced) -> None:
    doctor = attended(process, spans=4)
    with process.agent():
        process.work(5)
    for _ in range(9):
        process.tracer.start_span("left open")
    seen = doctor.report().seen

    assert seen.spans == 4 + 4
    assert seen.forgotten == 11 - 4 + 9 - 4


def test_a_fault_of_the_doctor_stays_inside(caplog: pytest.LogCaptureFixture) -> None:
    doctor, nothing = Doctor(), object()
    for _ in range(2):
        doctor.on_start(nothing)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        doctor.on_end(nothing)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    assert [record.levelname for record in caplog.records] == ["ERROR"], "once"

"""The sampler that lets the guard see what another one drops, and what is known of samplers."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_OFF,
    DEFAULT_ON,
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    SamplingResult,
    StaticSampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    TraceFlags,
    TraceState,
)

from otel_loopguard import RecordDropped, can_drop, record_dropped
from otel_loopguard.sampling import DropWarning, from_environment, recognition, recording
from otel_loopguard.steps import Step

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
SPAN = SpanContext(1, 2, is_remote=False)
REMOTE = SpanContext(1, 2, is_remote=True)


class Fixed(Sampler):
    """Gives one answer and remembers what it was asked, as the SDK's tracer asks: by position."""

    def __init__(self, result: SamplingResult) -> None:
        self.result = result
        self.asked: list[tuple[Any, ...]] = []

    def should_sample(self, *asked: Any, **_named: Any) -> SamplingResult:
        self.asked.append(asked)
        return self.result

    def get_description(self) -> str:
        return "Fixed"


def ask(sampler: Sampler, name: str, attributes: Mapping[str, Any] | None = None) -> Any:
    return sampler.should_sample(Context(), 1, name, SpanKind.INTERNAL, attributes, ())


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("search", TOOL),
        ("execute_tool search", None),
        ("execute_tool search", {}),
        ("invoke_agent", None),
        ("invoke_agent scout", None),
        ("chat m-large", None),
        ("invocation", None),
        ("call_llm", None),
        ("haystack.pipeline.run", None),
        ("search.tool", None),
        ("research.workflow", None),
        ("tools/call search", {"mcp.method.name": "tools/call"}),
        ("embeddings m-small", {"gen_ai.operation.name": "embeddings"}),
        ("step", {"openinference.span.kind": "CHAIN"}),
        ("anything", {"url.path": "/", "traceloop.span.kind": "task"}),
        ("openai.chat", {"llm.request.type": "chat"}),
    ],
)
def test_dropped_spans_of_gen_ai_are_recorded(
    name: str, attributes: Mapping[str, Any] | None
) -> None:
    result = ask(RecordDropped(ALWAYS_OFF), name, attributes)

    assert result.decision is Decision.RECORD_ONLY
    assert dict(result.attributes or {}) == (attributes or {})


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("GET /chat", {"http.request.method": "GET", "url.path": "/chat"}),
        ("SELECT", {"db.system": "sqlite", "db.tool": "x"}),
        ("chatter", None),
        ("work", None),
        ("", {}),
    ],
)
def test_other_dropped_spans_stay_dropped(name: str, attributes: Mapping[str, Any] | None) -> None:
    dropped = SamplingResult(Decision.DROP)

    assert ask(RecordDropped(Fixed(dropped)), name, attributes) is dropped


def test_what_only_a_dialect_knows_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(record: Any, _: object) -> Step | None:
        return Step(kind="tool", name="x") if record.attributes == {"operation": "x"} else None

    monkeypatch.setattr(recognition, "read_step", read)
    sampler = RecordDropped(ALWAYS_OFF)

    assert ask(sampler, "work", {"operation": "x"}).decision is Decision.RECORD_ONLY
    assert ask(sampler, "work", {"operation": "y"}).decision is Decision.DROP


@pytest.mark.parametrize("decision", [Decision.RECORD_ONLY, Decision.RECORD_AND_SAMPLE])
def test_what_is_not_dropped_passes_untouched(decision: Decision) -> None:
    result = SamplingResult(decision, {"sampling.rule": "vip"})

    assert ask(RecordDropped(Fixed(result)), "execute_tool search", TOOL) is result


def test_the_wrapped_sampler_is_asked_what_the_sdk_asks() -> None:
    fixed = Fixed(SamplingResult(Decision.DROP))
    link, context, state = Link(SPAN), Context(), TraceState([("vendor", "1")])
    sampler = RecordDropped(fixed)

    sampler.should_sample(context, 7, "work", SpanKind.CLIENT, TOOL, (link,))
    sampler.should_sample(context, 7, "work", SpanKind.CLIENT, TOOL, (link,), state)

    six = (context, 7, "work", SpanKind.CLIENT, TOOL, (link,))
    assert fixed.asked == [six, (*six, state)]


def test_what_the_wrapped_sampler_adds_is_kept() -> None:
    state = TraceState([("vendor", "1")])
    fixed = Fixed(SamplingResult(Decision.DROP, {"sampling.rule": "quiet"}, state))

    result = ask(RecordDropped(fixed), "execute_tool search", TOOL)

    assert result.trace_state is state
    assert result.attributes == {**TOOL, "sampling.rule": "quiet"}


def test_what_the_wrapped_sampler_raises_is_raised() -> None:
    broken: Any = SimpleNamespace()
    with pytest.raises(AttributeError):
        ask(RecordDropped(broken), "execute_tool search")


def test_a_span_that_breaks_a_dialect_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_name: str, _attributes: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(recording, "is_gen_ai", broken)
    sampler = RecordDropped(ALWAYS_OFF)

    assert [ask(sampler, "execute_tool search").decision for _ in "ab"] == [Decision.DROP] * 2
    assert [record.message for record in caplog.records] == [
        "a span could not be recognised; it is left out"
    ]


def test_its_description_says_what_it_wraps() -> None:
    sampler = RecordDropped(TraceIdRatioBased(0.25))

    assert sampler.get_description() == "RecordDropped{TraceIdRatioBased{0.25}}"
    assert sampler.root.get_description() == "TraceIdRatioBased{0.25}"


def test_every_dropped_span_can_be_recorded() -> None:
    result = ask(RecordDropped(ALWAYS_OFF, spans="all"), "GET /", {"url.path": "/"})

    assert result.decision is Decision.RECORD_ONLY
    assert result.attributes == {"url.path": "/"}


def test_a_choice_that_does_not_exist_is_named() -> None:
    spans: Any = "some"

    with pytest.raises(ValueError, match="spans: expected 'gen_ai', 'runs' or 'all', got 'some'"):
        RecordDropped(ALWAYS_OFF, spans=spans)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (ALWAYS_ON, False),
        (ALWAYS_OFF, True),
        (StaticSampler(Decision.RECORD_ONLY), False),
        (TraceIdRatioBased(1.0), False),
        (TraceIdRatioBased(0.9999), True),
        (TraceIdRatioBased(0.0), True),
        (DEFAULT_ON, False),
        (DEFAULT_OFF, True),
        (ParentBasedTraceIdRatio(1.0), False),
        (ParentBasedTraceIdRatio(0.5), True),
        (ParentBased(ALWAYS_ON, remote_parent_not_sampled=ALWAYS_ON), False),
        (ParentBased(ALWAYS_ON, remote_parent_sampled=TraceIdRatioBased(0.5)), True),
        (ParentBased(ALWAYS_ON, local_parent_sampled=ALWAYS_OFF), True),
        (ParentBased(StaticSampler(Decision.RECORD_ONLY)), True),
        (RecordDropped(ALWAYS_OFF), False),
        (RecordDropped(ParentBasedTraceIdRatio(0.5)), False),
        (ParentBased(RecordDropped(ALWAYS_ON)), False),
        (ParentBased(RecordDropped(TraceIdRatioBased(0.5))), True),
        (
            ParentBased(
                RecordDropped(TraceIdRatioBased(0.5)),
                local_parent_not_sampled=RecordDropped(ALWAYS_OFF),
            ),
            False,
        ),
        (Fixed(SamplingResult(Decision.DROP)), False),
        (ParentBased(Fixed(SamplingResult(Decision.DROP))), False),
        (None, False),
        ("always_off", False),
    ],
)
def test_which_samplers_can_drop(sampler: object, *, expected: bool) -> None:
    assert can_drop(sampler) is expected


def test_a_sampler_that_is_not_known_is_not_asked() -> None:
    fixed = Fixed(SamplingResult(Decision.DROP))

    assert not can_drop(fixed)
    assert fixed.asked == [], "asking may use up its rate"


def test_the_sdks_own_sampler_that_records_drops_nothing() -> None:
    # Old versions of the SDK have none.
    always_record: Any = vars(sampling).get("AlwaysRecordSampler", RecordDropped)

    assert not can_drop(always_record(ALWAYS_OFF))


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("parentbased_traceidratio,0.1", ParentBasedTraceIdRatio(0.1)),
        (" TraceIdRatio , 1 ", TraceIdRatioBased(1.0)),
        ("traceidratio,0", TraceIdRatioBased(0.0)),
        ("always_off", ALWAYS_OFF),
        ("parentbased_always_off", DEFAULT_OFF),
        ("", DEFAULT_ON),
        (None, DEFAULT_ON),
    ],
)
def test_the_argument_names_the_sampler_to_wrap(argument: str | None, expected: Sampler) -> None:
    made = from_environment(argument)

    assert made.get_description() == RecordDropped(expected).get_description()


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("traceidratio", "a ratio from 0 to 1 after the name, such as 'traceidratio,0.1'"),
        ("traceidratio,", "a ratio from 0 to 1 after the name"),
        ("parentbased_traceidratio,ten", "such as 'parentbased_traceidratio,0.1'"),
        ("traceidratio,1.01", "a ratio from 0 to 1"),
        ("traceidratio,nan", "a ratio from 0 to 1"),
        ("0.1", "the name of a sampler (always_off, always_on, "),
        ("loopguard", "and after a comma its argument, such as 'parentbased_traceidratio,0.1'"),
    ],
)
def test_an_argument_that_cannot_be_read_is_named(argument: str, expected: str) -> None:
    with pytest.raises(ValueError, match="OTEL_TRACES_SAMPLER_ARG: expected ") as raised:
        from_environment(argument)

    assert expected in str(raised.value)
    assert str(raised.value).endswith(f", got {argument!r}")


@pytest.mark.parametrize(
    "provider",
    [
        trace.ProxyTracerProvider(),
        trace.NoOpTracerProvider(),
        SimpleNamespace(sampler="always_off"),
        SimpleNamespace(add_span_processor=print),
        None,
    ],
)
def test_a_provider_without_a_sampler_is_left_alone(
    provider: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert not record_dropped(provider)

    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert f"{type(provider).__qualname__} has no sampler that could be wrapped" in said.message


def test_a_sampler_that_cannot_be_replaced_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    class Sealed:
        sampler = property(lambda _: ALWAYS_OFF)

    assert not record_dropped(Sealed())
    (said,) = caplog.records
    assert "Sealed cannot be replaced (" in said.message


def test_tracers_that_cannot_be_found_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    provider = SimpleNamespace(sampler=ALWAYS_OFF)

    assert record_dropped(provider)
    assert record_dropped(provider)
    assert provider.sampler.get_description() == "RecordDropped{AlwaysOffSampler}"
    (said,) = caplog.records
    assert "tracers that exist already keep their sampler" in said.message


def test_a_wrapped_provider_is_not_wrapped_again() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)

    assert record_dropped(provider, spans="all")
    first = provider.sampler
    assert record_dropped(provider)
    assert provider.sampler is first
    assert first.get_description() == "RecordDropped{AlwaysOffSampler}"


def test_tracers_made_before_somebody_else_wrapped_the_provider() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    tracer: Any = provider.get_tracer("before")
    provider.sampler = RecordDropped(ALWAYS_OFF)

    assert record_dropped(provider)
    expected = RecordDropped if hasattr(provider, "_tracers") else StaticSampler
    assert isinstance(tracer.sampler, expected)


def below(context: SpanContext) -> NonRecordingSpan:
    return NonRecordingSpan(context)


@pytest.mark.parametrize(
    ("span", "sampler", "is_said"),
    [
        (below(SPAN), ALWAYS_OFF, True),
        (below(SPAN), DEFAULT_ON, False),
        (below(REMOTE), ALWAYS_OFF, False),
        (trace.INVALID_SPAN, ALWAYS_OFF, False),
        (TracerProvider(ALWAYS_ON).get_tracer("t").start_span("chat"), ALWAYS_OFF, False),
    ],
)
def test_a_model_request_below_a_dropped_span(
    span: trace.Span,
    sampler: Sampler,
    *,
    is_said: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: SimpleNamespace(sampler=sampler))
    warning = DropWarning()
    for _ in range(3):
        warning.requested(span)

    assert len(caplog.records) == is_said


def test_where_a_span_does_not_know_its_sampler_the_global_one_is_judged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: SimpleNamespace(sampler=ALWAYS_OFF))
    warning = DropWarning()
    warning.seen(SimpleNamespace(_sampler=ALWAYS_ON))
    warning.seen(SimpleNamespace())
    warning.seen(SimpleNamespace(_sampler=TraceIdRatioBased(0.5)))

    (said,) = caplog.records
    assert said.message.startswith("the sampler AlwaysOffSampler drops spans before the guard")


def test_flags_of_a_recorded_parent_are_what_runs_goes_by() -> None:
    sampler = RecordDropped(ALWAYS_OFF, spans="runs")
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    with provider.get_tracer("t").start_as_current_span("chat m") as chat:
        inside = trace.set_span_in_context(chat)
    unsampled = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(0))
    outside = trace.set_span_in_context(NonRecordingSpan(unsampled))

    sampled = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False).get_tracer("t")
    with sampled.start_as_current_span("chat m"):
        exported = sampler.should_sample(None, 1, "GET /").decision
    ended = sampler.should_sample(inside, 1, "GET /").decision
    with trace.use_span(provider.get_tracer("t").start_span("chat m"), end_on_exit=True):
        open_ = sampler.should_sample(None, 1, "GET /").decision

    assert ended is Decision.DROP, "nothing that is over is made longer"
    assert exported is Decision.DROP, "the sampler was asked, and not all traces are whole"
    assert open_ is Decision.RECORD_ONLY
    assert sampler.should_sample(outside, 1, "GET /").decision is Decision.DROP

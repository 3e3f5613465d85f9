"""One guard on every tracer provider of the process, and off again."""

from __future__ import annotations

import gc
import inspect
import logging
import subprocess
import sys
import weakref
from collections.abc import Generator
from functools import wraps
from typing import Any

import httpx
import pytest
import wrapt
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_loopguard import (
    LoopGuardSpanProcessor,
    Policy,
    PolicyError,
    install,
    instrumentor,
    uninstall,
)
from otel_loopguard.attachment import Attachment
from otel_loopguard.installation import GuardOptions
from otel_loopguard.instrumentor import LoopGuardInstrumentor
from tests._tracing import ONE_RULE

INIT = TracerProvider.__init__
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "search",
    "gen_ai.tool.call.arguments": "{}",
    "gen_ai.tool.call.result": "nothing",
}


@pytest.fixture(autouse=True)
def nothing_stays() -> Generator[None]:
    yield
    uninstall()
    assert TracerProvider.__init__ is INIT


def violations(provider: TracerProvider, exporter: InMemorySpanExporter) -> int:
    """Run an agent that makes the same call again and again; count the guard's events."""
    exporter.clear()
    tracer = provider.get_tracer("agents")
    with tracer.start_as_current_span("invoke_agent scout", attributes=AGENT):
        for _ in range(6):
            tracer.start_span("execute_tool search", attributes=TOOL).end()
    spans = exporter.get_finished_spans()
    assert len(spans) == 7
    return sum(event.name == "loopguard.violation" for span in spans for event in span.events)


class Exported:
    """A provider of an application, and what it exports."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def loop(self) -> int:
        return violations(self.provider, self.exporter)


def test_a_provider_that_is_made_later_is_watched() -> None:
    guard = install(ONE_RULE)

    assert isinstance(guard, LoopGuardSpanProcessor)
    assert Exported().loop() == 2
    assert Exported().loop() == 2, "each of them is"


def test_a_subclass_that_makes_room_for_a_processor_keeps_its_own() -> None:
    class Jealous(TracerProvider):
        """As that of Phoenix, whose own exporter goes when another processor comes."""

        def add_span_processor(self, span_processor: SpanProcessor) -> None:
            raise AssertionError(f"{span_processor} drives mine out")

    install(ONE_RULE)
    exporter = InMemorySpanExporter()
    provider = Jealous(shutdown_on_exit=False)
    TracerProvider.add_span_processor(provider, SimpleSpanProcessor(exporter))
    assert violations(provider, exporter) == 2


def test_a_provider_that_is_shut_down_stops_no_other() -> None:
    install(ONE_RULE)
    first, second = Exported(), Exported()
    first.provider.shutdown()

    assert second.loop() == 2


def test_the_last_word_counts() -> None:
    first = install(Policy.none())
    process = Exported()
    assert process.loop() == 0
    install(ONE_RULE)
    assert Exported().loop() == 2
    assert first.policy == Policy.none()
    gc.collect()
    with pytest.raises(PolicyError, match=r"^mode: "):
        install(mode="enforced")  # type: ignore[arg-type]
    assert Exported().loop() == 2, "a mistake leaves what was there"


def test_nothing_is_watched_after_it_was_taken_off() -> None:
    install(ONE_RULE)
    process = Exported()
    uninstall()
    uninstall()

    assert process.loop() == 0
    assert Exported().loop() == 0
    assert TracerProvider.__init__ is INIT


def test_nothing_is_refused_after_it_was_taken_off() -> None:
    before = vars(httpx.Client)["send"]
    install(Policy.none(), mode="enforce")
    assert vars(httpx.Client)["send"] is not before
    uninstall()
    assert vars(httpx.Client)["send"] is before


def test_a_patch_of_somebody_else_s_is_put_back_as_it_was() -> None:
    def call(init: Any, _: object, args: Any, named: Any) -> None:
        init(*args, **named)

    theirs: Any = wrapt.FunctionWrapper(INIT, call)
    TracerProvider.__init__ = theirs  # type: ignore[method-assign]
    install(ONE_RULE)
    assert Exported().loop() == 2
    uninstall()
    assert vars(TracerProvider)["__init__"] is theirs
    TracerProvider.__init__ = INIT  # type: ignore[method-assign]


def test_what_somebody_else_patched_since_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    install(ONE_RULE)
    ours = TracerProvider.__init__

    def theirs(self: TracerProvider, *args: Any, **named: Any) -> None:
        ours(self, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(TracerProvider, "__init__", theirs)
        uninstall()
        assert TracerProvider.__init__ is theirs
        assert Exported().loop() == 0
        install(ONE_RULE)
        assert Exported().loop() == 2, "and what is left of ours serves again"
        uninstall()
    install()  # with theirs gone, ours can be put back


def test_a_guard_joins_a_provider_once() -> None:
    class Seen(SpanProcessor):
        started = 0

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            del span, parent_context
            self.started += 1

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return timeout_millis < 0

    seen, process = Seen(), Exported()
    attachment = Attachment(seen)
    assert attachment.attach(process.provider)
    assert attachment.attach(process.provider)
    process.provider.get_tracer("t").start_span("s").end()

    assert seen.started == 1
    assert not process.provider.force_flush(), "it is asked"


def test_what_is_no_provider_of_the_sdk_is_watched_if_it_can_be() -> None:
    process = Exported()

    class Proxy:
        """As that of Logfire: it cannot be hashed."""

        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return other is self

        def add_span_processor(self, processor: SpanProcessor) -> None:
            process.provider.add_span_processor(processor)

    proxy: Any = Proxy()
    guard = LoopGuardSpanProcessor(ONE_RULE, mode="observe")
    attachment = Attachment(guard)
    assert attachment.attach(proxy)
    assert attachment.attach(proxy)
    assert process.loop() == 2
    attachment.take_off()
    assert not Attachment(guard).attach(object())  # type: ignore[arg-type]


def test_no_provider_is_kept_alive() -> None:
    install(ONE_RULE)
    gone = weakref.ref(TracerProvider(shutdown_on_exit=False))
    gc.collect()

    assert gone() is None


def test_a_fault_of_ours_leaves_the_application_its_provider(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(ONE_RULE)

    def fail(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(TracerProvider, "add_span_processor", fail)
    assert TracerProvider(shutdown_on_exit=False)
    assert "the loop guard cannot watch a tracer provider: 'TracerProvider'" in caplog.text
    uninstall()


def test_what_cannot_be_watched_leaves_the_guard_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        __slots__ = ()

        def add_span_processor(self, processor: SpanProcessor) -> None:
            raise OSError(processor)

    monkeypatch.setattr(trace, "get_tracer_provider", Broken)
    install(ONE_RULE)

    assert "the loop guard cannot watch a tracer provider: the global one" in caplog.text
    assert Exported().loop() == 2


def test_what_is_put_back_behind_us_is_patched_again() -> None:
    @wraps(INIT)
    def theirs(self: TracerProvider, *args: Any, **named: Any) -> None:
        INIT(self, *args, **named)

    TracerProvider.__init__ = theirs  # type: ignore[method-assign]
    install(ONE_RULE)
    TracerProvider.__init__ = INIT  # type: ignore[method-assign]
    install(ONE_RULE)

    assert Exported().loop() == 2


def test_a_guard_taken_off_in_the_middle_of_a_span_is_asked_no_more() -> None:
    class TakenOff(Attachment):
        processor = property(lambda _: seen.pop() if seen else None, lambda *_: None)  # type: ignore[assignment]

    seen: list[Any] = []
    process, guard = Exported(), LoopGuardSpanProcessor(mode="observe")
    TakenOff(guard).attach(process.provider)
    for at_start, at_end in (([guard], []), ([], [guard])):
        seen[:] = at_start
        span = process.provider.get_tracer("t").start_span("s")
        seen[:] = at_end
        span.end()
        assert seen == [], "read once"


def test_the_options_are_those_of_the_guard() -> None:
    made = inspect.signature(LoopGuardSpanProcessor).parameters

    assert set(GuardOptions.__annotations__) == set(made) - {"policy"}


def test_the_signature_of_a_provider_can_still_be_read() -> None:
    before = list(inspect.signature(TracerProvider).parameters)
    install()

    assert list(inspect.signature(TracerProvider).parameters) == before


def test_the_instrumentor_installs_a_guard_and_takes_it_off() -> None:
    made = LoopGuardInstrumentor()
    made.instrument(rules={"repeated_result": {"warn": 3, "abort": 5}})
    try:
        assert Exported().loop() > 0
    finally:
        made.uninstrument()
    assert Exported().loop() == 0
    assert list(made.instrumentation_dependencies()) == []


def test_any_fault_leaves_the_instrumentations_after_it_alone(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    def has_none(_: logging.Logger) -> bool:
        return False

    monkeypatch.setattr(instrumentor, "install", fail)
    made = LoopGuardInstrumentor()
    made.instrument(
        tracer_provider=TracerProvider(shutdown_on_exit=False),
        meter_provider=MeterProvider(shutdown_on_exit=False),
        logger_provider=LoggerProvider(shutdown_on_exit=False),
    )
    made.uninstrument()
    assert "the loop guard is not active: RecursionError" in caplog.text
    assert capsys.readouterr().err == "the loop guard is not active: too deep\n"
    monkeypatch.setattr(logging.Logger, "hasHandlers", has_none)
    made.instrument()
    made.uninstrument()
    assert capsys.readouterr().err == "", "logging has said it there already"


def test_a_mistake_in_its_options_is_told_and_the_application_goes_on(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    made = LoopGuardInstrumentor()
    made.instrument(limits={"max_stepz": 5})
    made.uninstrument()

    [record] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.getMessage() == (
        "the loop guard is not active: limits.max_stepz: there is no such option here; "
        "did you mean 'max_steps'?"
    )
    assert capsys.readouterr().err == f"{record.getMessage()}\n", "a handler may keep it to itself"


SCENE = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import otel_loopguard

AGENT, TOOL = {agent}, {tool}
exporter = InMemorySpanExporter()
if {before}:
    otel_loopguard.install()
tracer = trace.get_tracer("agents")
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
if not {before}:
    otel_loopguard.install()
with tracer.start_as_current_span("invoke_agent scout", attributes=AGENT):
    for _ in range(6):
        tracer.start_span("execute_tool search", attributes=TOOL).end()
last = exporter.get_finished_spans()[-1]
print(last.name, last.attributes["loopguard.tripped"], last.attributes["loopguard.rule"])
"""


@pytest.mark.parametrize("before", [True, False])
def test_the_global_provider_is_watched_whoever_comes_first(before: bool) -> None:  # noqa: FBT001
    script = SCENE.format(before=before, agent=AGENT, tool=TOOL)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert (done.stdout, done.stderr) == ("invoke_agent scout True repeated_result\n", "")

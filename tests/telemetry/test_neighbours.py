"""What else hangs on the provider: exporters, rewriters, a second guard, code that makes spans."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from otel_loopguard import (
    AbortRequest,
    LoopGuardSpanProcessor,
    Policy,
    RunAborted,
    open_runs,
    telemetry,
)
from tests._tracing import Traced

LOGS = pytest.mark.skipif(
    not telemetry._LOGS_HAVE_EVENTS,  # pyright: ignore[reportPrivateUsage]
    reason="this version of the API knows no log-based events",
)


def limit(calls: int) -> Policy:
    return Policy.none().with_limits(max_tool_calls=calls)


def use_tools(process: Traced, calls: int) -> None:
    for _ in range(calls):
        with process.tool():
            pass


def steps(process: Traced) -> list[tuple[int, int]]:
    """Return for each agent how many runs it had, and how many steps these had together."""
    return sorted((point.count, point.sum) for point in process.points("loopguard.run.steps"))


# ------------------------------------------------------------------------------- other processors


class Rewrites(SpanProcessor):
    """Writes spans anew at their end, as OpenInference's processors do."""

    def on_end(self, span: ReadableSpan) -> None:
        rewritten: Any = span
        made: dict[str, Any] = dict(span.attributes or {})
        if made.pop("raw.kind", None) is not None:
            rewritten._attributes = {
                "openinference.span.kind": "TOOL",
                "tool.name": made.pop("raw.tool"),
                "input.value": made.pop("raw.input"),
            }


@pytest.mark.parametrize(("guard_comes", "found"), [("after", 1), ("before", 0)])
def test_a_processor_that_rewrites_spans_has_to_come_first(
    process: Traced, guard_comes: str, found: int
) -> None:
    """Processors are told of an end in the order in which they were added."""
    if guard_comes == "before":
        process.guard(limit(2))
    process.provider.add_span_processor(Rewrites())
    if guard_comes == "after":
        process.guard(limit(2))

    raw = {"raw.kind": "t", "raw.tool": "search", "raw.input": "{}"}
    with process.agent():
        for _ in range(3):
            with process.tracer.start_as_current_span("work", attributes=raw):
                pass

    assert process.total("loopguard.violations", rule="tool_call_budget") == found
    assert process.counts("loopguard.errors") == []


class Raises(SpanProcessor):
    """Raises at the start, or at the end, of spans of tools."""

    def __init__(self, at: str) -> None:
        self._at = at

    def on_start(self, span: Span, parent_context: object = None) -> None:  # noqa: ARG002 -- theirs
        if self._at == "start" and span.name.startswith("execute_tool"):
            raise RuntimeError(self._at)

    def on_end(self, span: ReadableSpan) -> None:
        if self._at == "end" and span.name.startswith("execute_tool"):
            raise RuntimeError(self._at)


@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("guard_comes", ["before", "after"])
def test_a_processor_that_raises_costs_no_more_than_its_span(
    process: Traced, at: str, guard_comes: str
) -> None:
    if guard_comes == "before":
        process.guard(limit(1))
    process.provider.add_span_processor(Raises(at))
    if guard_comes == "after":
        process.guard(limit(1))

    for _ in range(2):
        with process.agent():
            for _ in range(2):
                with pytest.raises(RuntimeError, match=at):
                    use_tools(process, 1)

    missed = at == "start" and guard_comes == "after"
    assert process.total("loopguard.violations") == (0 if missed else 2)
    assert process.total("loopguard.run.active") == 0
    assert process.counts("loopguard.errors") == []


class Broken(SpanExporter):
    """Raises, refuses, or hangs until it is let go."""

    def __init__(self, how: str) -> None:
        self.let_go = threading.Event()
        self._how = how

    def export(self, spans: object) -> SpanExportResult:  # noqa: ARG002 -- it fails at once
        if self._how == "raises":
            raise RuntimeError(self._how)
        if self._how == "hangs":
            self.let_go.wait(20)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Keep nothing open."""


@pytest.mark.parametrize("how", ["raises", "refuses", "hangs"])
def test_exporters_that_fail_do_not_keep_a_run_from_being_stopped(
    process: Traced, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    exporter = Broken(how)
    processor: SpanProcessor = (
        BatchSpanProcessor(exporter, schedule_delay_millis=1)
        if how == "hangs"
        else SimpleSpanProcessor(exporter)
    )
    process.provider.add_span_processor(processor)
    told: list[AbortRequest] = []
    process.guard(limit(2), abort_hooks=[told.append])

    with caplog.at_level(logging.CRITICAL), process.agent():
        use_tools(process, 3)

    assert [request.violation.rule for request in told] == ["tool_call_budget"]
    exporter.let_go.set()


def test_after_its_exporter_is_shut_down_a_guard_goes_on(process: Traced) -> None:
    process.exporter.shutdown()
    process.guard(limit(1))
    with process.agent():
        use_tools(process, 2)

    assert process.total("loopguard.violations") == 1


# ------------------------------------------------------------------------------------ the shutdown


def test_after_the_shutdown_nothing_is_watched_and_nothing_raises(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    agent = process.tracer.start_span(
        "invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}
    )
    with process.below(agent):
        use_tools(process, 2)
        with pytest.raises(RunAborted):
            guard.admit()
        for _ in range(2):
            process.provider.shutdown()
        assert process.provider.force_flush()
        assert guard.force_flush()
        use_tools(process, 5)
    agent.end()

    assert process.total("loopguard.violations") == 1
    assert process.counts("loopguard.errors") == []


# -------------------------------------------------------------------------------------- two of them


def test_a_guard_that_is_added_twice_counts_once(process: Traced) -> None:
    guard = process.guard(limit(3))
    process.provider.add_span_processor(guard)
    with process.agent():
        process.work(3)

    assert steps(process) == [(1, 6)]
    assert process.total("loopguard.violations") == 0
    assert process.total("loopguard.runs") == 1
    assert process.total("loopguard.run.active") == 0


def test_a_guard_of_two_providers_follows_runs_across_them(process: Traced) -> None:
    guard = process.guard(limit(3))
    other = TracerProvider(shutdown_on_exit=False)  # ids of its own, as real ones have
    other.add_span_processor(guard)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
    with process.agent():
        process.work(2)
        for _ in range(2):
            with other.get_tracer("t").start_as_current_span("execute_tool t", attributes=tool):
                pass

    assert steps(process) == [(1, 6)]
    assert process.total("loopguard.violations", rule="tool_call_budget") == 1


def test_two_guards_count_on_their_own(process: Traced) -> None:
    for calls in (1, 2):
        process.guard(limit(calls))
    with process.agent():
        use_tools(process, 3)

    assert process.total("loopguard.violations", rule="tool_call_budget") == 2
    assert process.total("loopguard.runs") == 2


# ------------------------------------------------------------------------- code that makes spans


class MakesSpans:
    """Makes spans in which an agent loops, wherever it is called; counts the calls."""

    def __init__(self, process: Traced) -> None:
        self.process = process
        self.calls = self.depth = self.deepest = 0
        self._lock = threading.RLock()

    def __call__(self, *_: object, **__: object) -> bool:
        with self._lock:
            self.calls += 1
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            try:
                if self.calls < 500:
                    self.loop()
            finally:
                self.depth -= 1
        return True

    def loop(self) -> None:
        for name in ("a", "b"):
            with self.process.agent(name):
                use_tools(self.process, 4)
            use_tools(self.process, 1)


def as_a_hook(process: Traced, makes: MakesSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    process.guard(limit(2), abort_hooks=[makes])


def as_a_log_handler(process: Traced, makes: MakesSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", makes)
    logger = logging.getLogger("otel_loopguard")
    monkeypatch.setattr(logger, "handlers", [handler])

    def fails(*_: object) -> None:
        raise RuntimeError

    guard: Any = process.guard(limit(2))
    monkeypatch.setattr(guard._telemetry, "describe", fails)  # which is logged


def as_a_log_processor(process: Traced, makes: MakesSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("on_emit", "emit"):
        monkeypatch.setattr(process.sink, name, makes)
    process.guard(limit(2))


def as_a_meter(process: Traced, makes: MakesSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    guard: Any = process.guard(limit(2))
    for name in ("gaps", "runs", "violations", "by_tool"):
        monkeypatch.setattr(getattr(guard._telemetry._instruments, name), "add", makes)


def as_a_broken_meter(process: Traced, makes: MakesSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        makes()
        raise RuntimeError

    guard: Any = process.guard(limit(2))
    for name in ("gaps", "runs", "violations", "errors"):
        monkeypatch.setattr(getattr(guard._telemetry._instruments, name), "add", broken)


@pytest.mark.parametrize(
    "use",
    [
        *(as_a_hook, as_a_log_handler, as_a_meter, as_a_broken_meter),
        pytest.param(as_a_log_processor, marks=LOGS),
    ],
)
def test_callbacks_that_make_spans_end(
    process: Traced,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    use: Callable[[Traced, MakesSpans, pytest.MonkeyPatch], None],
) -> None:
    makes = MakesSpans(process)
    use(process, makes, monkeypatch)
    caplog.set_level(logging.WARNING, "otel_loopguard")
    with caplog.at_level(logging.CRITICAL), process.agent():
        use_tools(process, 3)

    assert makes.calls
    assert makes.deepest == 1
    assert makes.calls < 30
    if use is as_a_hook:
        assert steps(process) == [(1, 3), (1, 4), (1, 4), (2, 2)], "they are watched, but ask none"
    elif use in (as_a_log_handler, as_a_log_processor):
        assert steps(process) == [(1, 3)], "what is written about a run is no work of it"


def test_a_reader_that_makes_spans_whenever_it_looks(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    makes = MakesSpans(process)
    process.guard(limit(2))
    monkeypatch.setattr(process.reader, "_receive_metrics", makes)
    with process.agent():
        use_tools(process, 3)
        process.reader.collect()

    assert (makes.calls, makes.deepest) == (1, 1)
    assert process.guards[0].force_flush()


@LOGS
def test_a_request_that_a_log_processor_makes_passes(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = process.guard(limit(1), mode="enforce")
    allowed: list[object] = []

    def request(_record: object) -> None:
        allowed.append(guard.admit())

    for name in ("on_emit", "emit"):
        monkeypatch.setattr(process.sink, name, request)
    with process.agent():
        use_tools(process, 2)
        with pytest.raises(RunAborted):
            guard.admit()

    assert allowed == [None]


# -------------------------------------------------------------------- foreign code and our own lock


def test_callbacks_are_made_outside_the_lock(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may wait for other threads, and those may be starting spans."""
    monkeypatch.setattr(open_runs, "RUNS", 1)
    monkeypatch.setattr(open_runs, "ROOTLESS", 1)
    guard: Any = process.guard(limit(1))
    waited: list[bool] = []

    def waits(*_: object, **__: object) -> None:
        other = threading.Thread(target=use_tools, args=(process, 1))
        monkeypatch.undo()
        other.start()
        other.join(3)
        waited.append(other.is_alive())

    first = process.tracer.start_span("invoke_agent first")
    monkeypatch.setattr(guard._telemetry, "run_ended", waits)
    with process.agent("second"):  # pushes the first out
        use_tools(process, 1)

    assert waited == [False]
    first.end()


def test_a_guard_is_a_span_processor_of_any_provider() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    guard = LoopGuardSpanProcessor(mode="observe")
    provider.add_span_processor(guard)
    provider.shutdown()
    provider.get_tracer("t").start_span("invoke_agent late").end()

    assert guard.force_flush()

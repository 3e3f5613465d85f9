"""A traced process in small: a provider with fixed ids, agents that emit spans, a guard."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.trace import Span, Tracer, use_span

from otel_loopguard import LoopGuardSpanProcessor, Policy
from otel_loopguard.slots import CURRENT

Labels = Mapping[str, Any]

ONE_RULE = Policy.from_mapping(
    {"rules": {"repeated_result": {"warn": 3, "abort": 5}}}, base=Policy.none()
)
"""A policy whose one rule finds the loop of `Traced.work`."""


class FixedIds(IdGenerator):
    """Ids that count from 1."""

    def __init__(self) -> None:
        self._spans, self._traces = count(1), count(1)

    def generate_span_id(self) -> int:
        return next(self._spans)

    def generate_trace_id(self) -> int:
        return next(self._traces)


class LogSink:
    """A log record processor that keeps what it is given, in old and new versions of the SDK."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def on_emit(self, data: Any) -> None:
        self.records.append(data.log_record)

    emit = on_emit

    def shutdown(self) -> None:
        """Keep nothing open."""

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return timeout_millis >= 0


class Traced:
    """A provider, an agent's tracer, and everything that was exported."""

    def __init__(self, sampler: Sampler = ALWAYS_ON, *, export: bool = True) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(
            sampler=sampler, id_generator=FixedIds(), shutdown_on_exit=False
        )
        if export:
            self.export()
        self.tracer: Tracer = self.provider.get_tracer("agents")
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.sink: Any = LogSink()
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(self.sink)
        self.guards: list[LoopGuardSpanProcessor] = []

    def export(self) -> None:
        """Export spans from here on."""
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def guard(
        self, policy: Policy | str | os.PathLike[str] | None = None, **options: Any
    ) -> LoopGuardSpanProcessor:
        """Add a guard to the provider; `observe` unless told otherwise."""
        given: dict[str, Any] = {
            "meter_provider": self.meters,
            "logger_provider": self.loggers,
            **options,
        }
        if not {"mode", "abort", "abort_hooks"} & set(given):
            given["mode"] = "observe"
        guard = LoopGuardSpanProcessor(policy, **given)
        self.guards.append(guard)
        self.provider.add_span_processor(guard)
        return guard

    def agent(self, name: str = "scout", **options: Any) -> AbstractContextManager[Span]:
        """Return the span of an agent."""
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        return self.tracer.start_as_current_span(
            f"invoke_agent {name}", attributes=attributes, **options
        )

    @staticmethod
    def below(span: Span) -> AbstractContextManager[Span]:
        """Let what follows hang below a span, and leave that open."""
        return use_span(span, end_on_exit=False)

    @contextmanager
    def chat(
        self, *, asks: bool = True, tokens: tuple[int, int] = (10, 5), **options: Any
    ) -> Generator[Span]:
        """Make a model call's span; the turn asks for a tool, or finishes the run."""
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        with self.tracer.start_as_current_span("chat m", attributes=attributes, **options) as span:
            yield span
            said: dict[str, object] = {
                "type": "tool_call",
                "id": "c",
                "name": "search",
                "arguments": {},
            }
            text: dict[str, object] = {"type": "text", "content": "The answer is 42."}
            turn = {"role": "assistant", "parts": [said if asks else text]}
            reason = "tool_calls" if asks else "stop"
            span.set_attribute("gen_ai.output.messages", json.dumps([turn]))
            span.set_attribute("gen_ai.response.finish_reasons", [reason])
            span.set_attribute("gen_ai.usage.input_tokens", tokens[0])
            span.set_attribute("gen_ai.usage.output_tokens", tokens[1])

    @contextmanager
    def tool(
        self,
        name: str = "search",
        arguments: object = None,
        result: object = "nothing",
        **options: Any,
    ) -> Generator[Span]:
        """Make a tool call's span: arguments are there from the start, the result at the end."""
        given = {"q": "x"} if arguments is None else arguments
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": json.dumps(given),
        }
        with self.tracer.start_as_current_span(
            f"execute_tool {name}", attributes=attributes, **options
        ) as span:
            yield span
            span.set_attribute("gen_ai.tool.call.result", json.dumps(result))

    def work(self, turns: int, **tool: Any) -> None:
        """Do what a looping agent does: ask the model, call a tool, again and again."""
        for _ in range(turns):
            with self.chat():
                pass
            with self.tool(**tool):
                pass

    def request_model(self) -> None:
        """Do what a client's `request` does, as far as the gate is concerned."""
        for guard in self.guards:
            allowed = guard.admit() if guard.mode == "enforce" else None
            if allowed is not None:
                allowed.over(failed=False)

    def turn(self, times: int = 1) -> None:
        """Ask the model through the gate, then call a tool."""
        for _ in range(times):
            with self.chat():
                self.request_model()
            with self.tool():
                pass

    def loop_for_ever(self) -> None:
        """Do so until somebody stops it."""
        with self.agent():
            while True:
                self.turn()

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The exported spans, in the order of their ends."""
        return self.exporter.get_finished_spans()

    def events(self) -> list[tuple[str, str, Labels]]:
        """Return every exported event: the name of its span, its own, its attributes."""
        return [
            (span.name, event.name, dict(event.attributes or {}))
            for span in self.spans
            for event in span.events
        ]

    def points(self, *names: str) -> list[Any]:
        """Return the data points of some metrics; exemplars are there once."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (() if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name in names
            for point in each.data.data_points
        ]

    def counts(self, metric: str) -> list[tuple[Labels, float]]:
        """Return the series of a counter or gauge, and how many values a histogram's have."""
        return [
            (dict(point.attributes), point.value if hasattr(point, "value") else point.count)
            for point in self.points(metric)
        ]

    def total(self, metric: str, **labels: Any) -> float:
        """Add up the series of a counter; `rule="x"` looks at `loopguard.rule`."""
        wanted = {f"loopguard.{name.replace('__', '.')}": each for name, each in labels.items()}
        return sum(value for given, value in self.counts(metric) if wanted.items() <= given.items())


@contextmanager
def traced(sampler: Sampler = ALWAYS_ON, *, export: bool = True) -> Generator[Traced]:
    """Trace a block, in a context that belongs to no run."""
    token = CURRENT.set(None)
    made = Traced(sampler, export=export)
    try:
        yield made
    finally:
        for guard in made.guards:
            guard.shutdown()
        made.provider.shutdown()
        CURRENT.reset(token)

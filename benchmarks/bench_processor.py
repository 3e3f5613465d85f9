"""What the guard costs a span, beside a processor that does nothing.

Spans are made by the SDK, and exported in batches to nowhere. All contenders run in this process,
in short rounds that take turns, so that a busy machine slows them alike; only the time that this
process ran is counted, the exporter's thread included.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from otel_loopguard import LoopGuardSpanProcessor, Policy

ROUNDS = 60
RUNS = 5
"""Runs of an agent in a round."""
SPANS = 40
"""Spans in a run, below the agent's."""


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


class Nothing(SpanProcessor):
    """Does nothing, in Python, as a guard that costs nothing would."""

    def on_start(self, span: object, parent_context: object = None) -> None:
        pass

    def on_end(self, span: ReadableSpan) -> None:
        pass


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
SERVER = {
    "http.request.method": "GET",
    "url.scheme": "https",
    "url.path": "/v1/reports",
    "server.address": "example.org",
    "server.port": 443,
    "client.address": "203.0.113.7",
    "network.protocol.version": "1.1",
    "user_agent.original": "python/3",
    "http.route": "/v1/reports",
    "http.response.status_code": 200,
}


def arguments(number: int) -> str:
    """Return JSON of some 500 characters, none like another."""
    return json.dumps(
        {
            "query": f"annual report of company {number} and its subsidiaries, audited",
            "note": "figures in euros, rounded to whole thousands, without discontinued lines" * 5,
        }
    )


def tool_span(tracer: Tracer, number: int) -> None:
    with tracer.start_as_current_span(
        "execute_tool search",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{number}",
            "gen_ai.tool.call.arguments": ARGUMENTS[number % SPANS],
        },
    ) as span:
        span.set_attribute("gen_ai.tool.call.result", ARGUMENTS[-1 - number % SPANS])


def model_span(tracer: Tracer, number: int) -> None:
    with tracer.start_as_current_span(
        "chat m-large",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m-large",
            "server.address": "example.org",
        },
    ) as span:
        span.set_attribute("gen_ai.response.model", "m-large-2026")
        span.set_attribute("gen_ai.response.id", f"resp_{number}")
        span.set_attribute("gen_ai.response.finish_reasons", ["tool_calls"])
        span.set_attribute("gen_ai.usage.input_tokens", 1200)
        span.set_attribute("gen_ai.usage.output_tokens", 60)
        span.set_attribute("gen_ai.output.messages", TURN)


def other_span(tracer: Tracer, number: int) -> None:  # noqa: ARG001 -- all alike
    with tracer.start_as_current_span("GET /v1/reports", attributes=SERVER):
        pass


ARGUMENTS = [arguments(number) for number in range(SPANS)]
TURN = json.dumps(
    [
        {
            "role": "assistant",
            "parts": [
                {"type": "tool_call", "id": "c", "name": "search", "arguments": ARGUMENTS[0]}
            ],
            "finish_reason": "tool_calls",
        }
    ]
)
KINDS: Mapping[str, Callable[[Tracer, int], None]] = {
    "tool span, 500 characters in, 500 out": tool_span,
    "model span": model_span,
    "span that is nobody's step": other_span,
}


def tracer_with(*processors: SpanProcessor) -> Tracer:
    provider = TracerProvider(shutdown_on_exit=False)
    for processor in (*processors, BatchSpanProcessor(Nowhere(), max_queue_size=100_000)):
        provider.add_span_processor(processor)
    return provider.get_tracer("benchmark")


def play(tracer: Tracer, span: Callable[[Tracer, int], None]) -> None:
    """Make the spans of a few runs of an agent."""
    for _ in range(RUNS):
        with tracer.start_as_current_span("invoke_agent scout", attributes=AGENT):
            for number in range(SPANS):
                span(tracer, number)


def microseconds(action: Callable[[], None]) -> float:
    """Return what one of the spans cost."""
    began = time.process_time()
    action()
    return (time.process_time() - began) / (RUNS * SPANS) * 1e6


def main() -> None:
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    guard = LoopGuardSpanProcessor(Policy(max_steps=10**9), meter_provider=meters)
    contenders = {"nothing": tracer_with(Nothing()), "guard": tracer_with(guard)}
    rounds = 10 if "--quick" in sys.argv else ROUNDS
    print(f"cost of a span with a batch exporter (medians of {rounds} rounds)")
    for kind, span in KINDS.items():
        costs: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(rounds):
            for name in sorted(contenders, reverse=turn % 2 == 1):
                tracer = contenders[name]
                costs[name].append(microseconds(lambda t=tracer, s=span: play(t, s)))
        base = statistics.median(costs["nothing"])
        added = statistics.median(
            with_guard - without
            for with_guard, without in zip(costs["guard"], costs["nothing"], strict=True)
        )
        print(
            f"  {kind:40} {base:6.1f} us, with the guard {base + added:6.1f} us "
            f"(+{added:4.1f} us, {(base + added) / base:4.2f} x)"
        )


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}")
    main()

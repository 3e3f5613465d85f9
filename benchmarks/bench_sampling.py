"""What `RecordDropped` costs a span, beside the sampler that it wraps.

No processor listens: what a guard adds to a span that is recorded is in `bench_processor.py`. All
contenders run in this process, in short rounds that take turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import Tracer
from opentelemetry.util.types import AttributeValue

from otel_loopguard import RecordDropped

ROUNDS = 200
SPANS = 200
"""Spans in a round."""

NEVER, ALWAYS = ParentBased(TraceIdRatioBased(0)), ParentBased(TraceIdRatioBased(1))
TOOL: Mapping[str, AttributeValue] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "search",
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.tool.call.arguments": '{"query": "annual report of company 7"}',
}
SERVER: Mapping[str, AttributeValue] = {
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
KINDS: Mapping[str, tuple[Sampler, str, Mapping[str, AttributeValue]]] = {
    "dropped, a tool's span": (NEVER, "execute_tool search", TOOL),
    "dropped, a tool's span known by attributes": (NEVER, "search", TOOL),
    "dropped, not GenAI's, 10 attributes": (NEVER, "GET /v1/reports", SERVER),
    "dropped, not GenAI's, none": (NEVER, "work", {}),
    "sampled, a tool's span": (ALWAYS, "execute_tool search", TOOL),
}


def tracer_with(sampler: Sampler) -> Tracer:
    return TracerProvider(sampler=sampler, shutdown_on_exit=False).get_tracer("benchmark")


def microseconds(tracer: Tracer, name: str, attributes: Mapping[str, AttributeValue]) -> float:
    """Return what one span cost, from its start to its end."""
    began = time.process_time()
    for _ in range(SPANS):
        tracer.start_span(name, attributes=attributes).end()
    return (time.process_time() - began) / SPANS * 1e6


def main() -> None:
    rounds = 20 if "--quick" in sys.argv else ROUNDS
    print(f"cost of a span that nobody listens to (medians of {rounds} rounds)")
    for kind, (sampler, name, attributes) in KINDS.items():
        bare, wrapped = tracer_with(sampler), tracer_with(RecordDropped(sampler))
        costs: dict[Tracer, list[float]] = {bare: [], wrapped: []}
        for turn in range(rounds):
            for tracer in (bare, wrapped) if turn % 2 else (wrapped, bare):
                costs[tracer].append(microseconds(tracer, name, attributes))
        base, with_it = (statistics.median(costs[tracer]) for tracer in (bare, wrapped))
        print(f"  {kind:44} {base:5.1f} us, wrapped {with_it:5.1f} us (+{with_it - base:4.1f} us)")


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}")
    main()

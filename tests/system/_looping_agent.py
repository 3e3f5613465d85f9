"""A process with an agent that runs in circles: the guard stops it, and Prometheus may ask why.

Writes its port and the offending spans by action to the file that it is given, as JSON, and may be
asked until it is terminated, or for ten minutes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_loopguard import (
    LoopGuardSpanProcessor,
    ModelTurn,
    Tool,
    ToolCall,
    TurnRequest,
    run_agent,
)
from otel_loopguard.prometheus import OpenMetricsExporter

exporter = OpenMetricsExporter(port=0)
meters = MeterProvider([exporter])
turns = meters.get_meter("agent").create_histogram(
    "agent.turn.duration", "s", "Duration of a turn", explicit_bucket_boundaries_advisory=(1, 60)
)
spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(LoopGuardSpanProcessor(mode="enforce", meter_provider=meters))
provider.add_span_processor(SimpleSpanProcessor(spans))


def ask(_: TurnRequest) -> ModelTurn:
    """Answer as a model would that never gives up."""
    began = time.monotonic()
    turn = ModelTurn(calls=(ToolCall(name="search", arguments={"query": "Paris"}),))
    turns.record(time.monotonic() - began)
    return turn


def search(query: str) -> str:
    return f"nothing found for {query!r}"


schema = {"type": "object", "properties": {"query": {"type": "string"}}}
tool = Tool(name="search", call=search, description="Searches.", parameters=schema)
result = run_agent(ask, "How is the weather?", [tool], agent="scout", tracer_provider=provider)
offending = {
    str(event.attributes["loopguard.action"]): [
        event.attributes["loopguard.step.trace_id"],
        event.attributes["loopguard.step.span_id"],
    ]
    for span in spans.get_finished_spans()
    for event in span.events
    if event.name == "loopguard.violation" and event.attributes is not None
}
exported = [
    trace.format_span_id(each.context.span_id)
    for each in spans.get_finished_spans()
    if each.context is not None
]
told = {
    "port": exporter.port,
    "ending": result.ending,
    "offending": offending,
    "exported": exported,
}
file = Path(sys.argv[1])
whole = file.with_suffix(".new")
whole.write_text(json.dumps(told))
whole.replace(file)  # whoever waits for it sees all of it
time.sleep(600)

"""An agent that runs in circles, and what Prometheus gets to see of it."""

from __future__ import annotations

import os
from http.client import HTTPConnection

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, ModelTurn, Tool, ToolCall, run_agent
from otel_loopguard.prometheus import OpenMetricsExporter

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

exporter = OpenMetricsExporter(port=0)  # a free port; 9464 where none is named
meters = MeterProvider(metric_readers=[exporter])
provider = TracerProvider()
provider.add_span_processor(LoopGuardSpanProcessor(mode="enforce", meter_provider=meters))

search = Tool(name="search", call=lambda query: f"nothing found for {query!r}")
again = ModelTurn(calls=(ToolCall(name="search", arguments={"query": "Paris"}),))
run_agent(lambda _: again, "How is the weather?", [search], tracer_provider=provider)

connection = HTTPConnection("127.0.0.1", exporter.port)
connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
for line in connection.getresponse().read().decode().splitlines():
    if line.startswith("loopguard_violations_total") and "trace_id" in line:
        print(line)
connection.close()

"""An application with an agent: one of several products sets its tracing up.

    python _application.py SETUP GUARD ADDRESS

GUARD is `first` or `last` for an `install()` before or after the set-up, `none` for one without.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress

from opentelemetry import trace

from otel_loopguard import RunAborted, install


def own(address: str) -> Callable[[], object]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    exporter = OTLPSpanExporter(endpoint=f"{address}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider.force_flush


def distro(_: str) -> Callable[[], object]:
    """Do nothing: `opentelemetry-instrument` has set everything up."""
    return trace.get_tracer_provider().force_flush  # type: ignore[attr-defined]


def logfire(address: str) -> Callable[[], object]:
    import logfire
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter(endpoint=f"{address}/v1/traces")
    logfire.configure(
        send_to_logfire=False,
        console=False,
        additional_span_processors=[BatchSpanProcessor(exporter)],
    )
    return logfire.force_flush


def phoenix(address: str) -> Callable[[], object]:
    from phoenix.otel import register

    provider = register(
        endpoint=f"{address}/v1/traces", protocol="http/protobuf", project_name="agents"
    )
    return provider.force_flush


def langfuse(address: str) -> Callable[[], object]:
    from langfuse import Langfuse

    client = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", base_url=address)
    return client.flush


def traceloop(address: str) -> Callable[[], object]:
    from traceloop.sdk import Traceloop

    Traceloop.init(api_endpoint=address, api_key="key", telemetry_enabled=False)
    return trace.get_tracer_provider().force_flush  # type: ignore[attr-defined]


SETUPS = {each.__name__: each for each in (own, distro, logfire, phoenix, langfuse, traceloop)}


def run_agent() -> None:
    """Run an agent that makes the same call for ever, if nobody looks."""
    tracer = trace.get_tracer("agents")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": json.dumps({"q": "x"}),
        "gen_ai.tool.call.result": json.dumps("nothing"),
        "loopguard.vetoable": True,
    }
    with suppress(RunAborted), tracer.start_as_current_span("invoke_agent scout", attributes=agent):
        for _ in range(6):
            with tracer.start_as_current_span("execute_tool search", attributes=tool):
                pass


if __name__ == "__main__":
    _, setup, guard, where = sys.argv
    if guard == "first":
        install()
    flush = SETUPS[setup](where)
    if guard == "last":
        install()
    run_agent()
    flush()

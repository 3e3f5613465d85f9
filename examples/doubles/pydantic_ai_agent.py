"""An agent of Pydantic AI is stopped after five calls of a model in process."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent

import otel_loopguard
from otel_loopguard import Policy
from otel_loopguard.integrations.pydantic_ai import PydanticAIRunAborted
from otel_loopguard.testing import EndlessModel, recording_tool

trace.set_tracer_provider(TracerProvider())  # your application's own set-up
otel_loopguard.install(Policy.none().with_limits(max_llm_calls=5), mode="enforce")


@recording_tool
def lookup(order: int) -> str:
    """Look an order up."""
    return f"nothing is known of order {order}"


model = EndlessModel("lookup", {"order": 7})
agent = Agent(model.pydantic_ai(), tools=[lookup])
try:
    agent.run_sync("Where is order 7?")
except PydanticAIRunAborted as stopped:
    print(f"{stopped.report.rule}: {model.calls} model calls, {lookup.executions} executions")

"""An agent of the OpenAI Agents SDK is stopped after five calls of a model in process."""

from __future__ import annotations

from agents import Agent, Runner, function_tool
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import otel_loopguard
from otel_loopguard import Policy
from otel_loopguard.integrations.agents import AgentsRunAborted
from otel_loopguard.testing import EndlessModel, recording_tool

trace.set_tracer_provider(TracerProvider())  # your application's own set-up
otel_loopguard.install(Policy.none().with_limits(max_llm_calls=5), mode="enforce")


@recording_tool
def lookup(order: int) -> str:
    """Look an order up."""
    return f"nothing is known of order {order}"


model = EndlessModel("lookup", {"order": 7})
agent = Agent(name="shop", model=model.openai_agents(), tools=[function_tool(lookup)])
try:
    Runner.run_sync(agent, "Where is order 7?")
except AgentsRunAborted as stopped:
    print(f"{stopped.report.rule}: {model.calls} model calls, {lookup.executions} executions")

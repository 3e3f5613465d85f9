"""An agent of LangChain is stopped after five calls of a model in process."""

from __future__ import annotations

from langchain.agents import create_agent
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import otel_loopguard
from otel_loopguard import Policy
from otel_loopguard.integrations.langchain import LangChainRunAborted
from otel_loopguard.testing import EndlessModel, recording_tool

trace.set_tracer_provider(TracerProvider())  # your application's own set-up
otel_loopguard.install(Policy.none().with_limits(max_llm_calls=5), mode="enforce")


@recording_tool
def lookup(order: int) -> str:
    """Look an order up."""
    return f"nothing is known of order {order}"


model = EndlessModel("lookup", {"order": 7})
agent = create_agent(model.langchain(), [lookup])
try:
    agent.invoke({"messages": [{"role": "user", "content": "Where is order 7?"}]})
except LangChainRunAborted as stopped:
    print(f"{stopped.report.rule}: {model.calls} model calls, {lookup.executions} executions")

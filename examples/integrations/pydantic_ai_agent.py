"""An agent of Pydantic AI is stopped, and the conversation goes on."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import pydantic_ai
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
pydantic_ai.install(guard)

provider = TracerProvider()
provider.add_span_processor(guard)
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


with model_server() as server:
    scripted = OpenAIProvider(base_url=server.url, api_key="none")
    endless = Agent(OpenAIChatModel("endless", provider=scripted), tools=[search])
    sensible = Agent(OpenAIChatModel("finish3", provider=scripted), tools=[search])
    try:
        endless.run_sync("How is the weather in Paris?")
    except pydantic_ai.PydanticAIRunAborted as stopped:
        print(f"stopped by {stopped.report.rule} after {stopped.report.model_calls} model calls")
        history = stopped.all_messages()
        print(f"the history has {len(history)} messages")
        result = sensible.run_sync("Then look somewhere else.", message_history=history)
        print(result.output)

Agent.instrument_all(instrument=False)

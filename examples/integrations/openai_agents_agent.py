"""An agent of the OpenAI Agents SDK is stopped, and the conversation goes on."""

from __future__ import annotations

import asyncio

from agents import Agent, ItemHelpers, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import agents
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
agents.install(guard)

provider = TracerProvider()
provider.add_span_processor(guard)
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider, disable_openai_trace_export=True)
OpenAIInstrumentor().instrument(tracer_provider=provider)


@function_tool
def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


async def main() -> None:
    with model_server() as server:
        async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
            endless = OpenAIResponsesModel("endless", client)
            sensible = OpenAIResponsesModel("finish3", client)
            assistant = Agent("assistant", tools=[search], model=endless)
            try:
                await Runner.run(assistant, "How is the weather in Paris?")
            except agents.AgentsRunAborted as stopped:
                report, done = stopped.report, stopped.run_data
                print(f"stopped by {report.rule} after {report.model_calls} model calls")
            assert done is not None
            history = ItemHelpers.input_to_new_input_list(done.input)
            history += [item.to_input_item() for item in done.new_items]
            print(f"the history has {len(history)} items")
            history.append({"role": "user", "content": "Then look somewhere else."})
            print((await Runner.run(assistant.clone(model=sensible), history)).final_output)


asyncio.run(main())
OpenAIInstrumentor().uninstrument()
OpenAIAgentsInstrumentor().uninstrument()

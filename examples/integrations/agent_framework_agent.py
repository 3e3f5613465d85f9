import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import agent_framework
from otel_loopguard.integrations.agent_framework import AgentFrameworkRunAborted
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
provider = TracerProvider()
provider.add_span_processor(guard)
trace.set_tracer_provider(provider)
agent_framework.install(guard)


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


async def main() -> None:
    with model_server("endless") as server:
        async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
            model = OpenAIChatCompletionClient(model="endless", async_client=client)
            agent = Agent(model, name="assistant", tools=[search])
            session = agent.create_session()
            try:
                await agent.run("How is the weather in Paris?", session=session)
            except AgentFrameworkRunAborted as stopped:
                print(f"stopped by {stopped.report.rule} after {server.count()} model requests")
                print(f"messages of the turn that are kept: {len(stopped.response.messages)}")

            answer = await agent.run("Then guess.", session=session, options={"model": "finish3"})
            print(f"and the session goes on: {answer.text}")


asyncio.run(main())

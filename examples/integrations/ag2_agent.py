import asyncio

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.middleware.builtin.telemetry import TelemetryMiddleware
from openai import DefaultAsyncHttpxClient
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import ag2
from otel_loopguard.testing import model_server

provider = TracerProvider()
guard = LoopGuardSpanProcessor(mode="enforce")
provider.add_span_processor(guard)
ag2.install(guard)


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


def agent(script: str, url: str, client: DefaultAsyncHttpxClient) -> Agent:
    return Agent(
        "researcher",
        config=OpenAIConfig(script, base_url=url, api_key="none", http_client=client),
        tools=[search],
        middleware=[TelemetryMiddleware(tracer_provider=provider, agent_name="researcher")],
    )


async def main(url: str) -> None:
    async with DefaultAsyncHttpxClient() as client:
        try:
            await agent("endless", url, client).ask("How is the weather in Paris?")
        except ag2.AG2RunAborted as aborted:
            stream, report = aborted.stream, aborted.report
        print(f"stopped by {report.rule} after {report.model_calls} model calls")

        going_on = agent("finish3", url, client)
        reply = await going_on.ask("Answer with what you have.", stream=stream)
        print(reply.body)


with model_server() as server:
    asyncio.run(main(server.url))

provider.shutdown()

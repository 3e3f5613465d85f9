import asyncio

from google.adk.agents import LlmAgent
from google.adk.integrations.openai import OpenAILlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, RunAborted
from otel_loopguard.integrations import google_adk
from otel_loopguard.testing import ModelServer, model_server

guard = LoopGuardSpanProcessor(mode="enforce")
provider = TracerProvider()
provider.add_span_processor(guard)
trace.set_tracer_provider(provider)
google_adk.install(guard)


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


async def say(runner: InMemoryRunner, text: str) -> str:
    said = ""
    async for event in runner.run_async(
        user_id="somebody", session_id="weather", new_message=types.UserContent(text)
    ):
        parts = event.content.parts if event.content else None
        said = "".join(part.text or "" for part in parts or ()) or said
    return said


async def main(server: ModelServer) -> None:
    async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
        model = OpenAILlm(model="endless", client=client)
        agent = LlmAgent(name="weather", model=model, tools=[search])
        runner = InMemoryRunner(agent, app_name="weather")
        runner.auto_create_session = True
        try:
            await say(runner, "How is the weather in Paris?")
        except RunAborted as aborted:
            report = aborted.report
            print(f"{type(aborted).__name__}: {report.rule} after {report.model_calls} model calls")
        agent.model = OpenAILlm(model="finish3", client=client)
        print(await say(runner, "Then say what you know."))


with model_server() as server:
    asyncio.run(main(server))

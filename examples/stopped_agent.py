from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from otel_loopguard import LoopGuardSpanProcessor, RunAborted, guarded_run
from otel_loopguard.testing import model_server

provider = TracerProvider()
provider.add_span_processor(LoopGuardSpanProcessor(mode="enforce"))
trace.set_tracer_provider(provider)
Agent.instrument_all()


def search(query: str) -> str:
    return f"nothing found for {query!r}"


with model_server("endless") as server:
    scripted = OpenAIProvider(base_url=server.url, api_key="none")
    agent = Agent(OpenAIChatModel("endless", provider=scripted), tools=[search])
    try:
        with guarded_run("weather"):
            agent.run_sync("How is the weather in Paris?")
    except RunAborted as aborted:
        report = aborted.report
        print(f"stopped by {report.rule} after {report.model_calls} model calls")

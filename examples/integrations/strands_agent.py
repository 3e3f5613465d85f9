from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from otel_loopguard import LoopGuardSpanProcessor, RunAborted
from otel_loopguard.integrations import strands
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
provider = TracerProvider()
provider.add_span_processor(guard)
trace.set_tracer_provider(provider)
strands.install(guard)


@tool
def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


with model_server() as server:
    client = {"base_url": server.url, "api_key": "none"}
    model = OpenAIModel(client_args=client, model_id="endless")
    agent = Agent(model, tools=[search], callback_handler=None)
    try:
        agent("How is the weather in Paris?")
    except RunAborted as aborted:
        report = aborted.report
        print(f"{type(aborted).__name__}: {report.rule} after {report.model_calls} model calls")
    agent.model = OpenAIModel(client_args=client, model_id="finish3")
    print(agent("Then say what you know."))

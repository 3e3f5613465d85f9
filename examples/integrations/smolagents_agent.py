from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool

from otel_loopguard import LoopGuardSpanProcessor, RunAborted
from otel_loopguard.integrations import smolagents
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
provider = TracerProvider()
provider.add_span_processor(guard)
SmolagentsInstrumentor().instrument(tracer_provider=provider)
smolagents.install(guard)


@tool
def search(query: str) -> str:
    """Search for a text.

    Args:
        query: what to search for

    """
    return f"nothing found for {query!r}"


with model_server() as server:
    model = OpenAIModel("endless", api_base=server.url, api_key="none")
    agent = ToolCallingAgent([search], model, verbosity_level=LogLevel.OFF)
    try:
        agent.run("How is the weather in Paris?")
    except RunAborted as aborted:
        report = aborted.report
        print(f"{type(aborted).__name__}: {report.rule} after {report.model_calls} model calls")
    # All that is left to the scripted model is its final answer, and one thing to say.
    agent.tools.pop("search")
    final = agent.tools["final_answer"]
    final.inputs = {"answer": {**final.inputs["answer"], "enum": ["The final answer is 42."]}}
    print(agent.run("Then say what you know.", reset=False))

import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import LLM, Agent
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy
from otel_loopguard.integrations import crewai
from otel_loopguard.testing import model_server

provider = TracerProvider()
guard = LoopGuardSpanProcessor(Policy().with_limits(max_repeated_calls=3), mode="enforce")
provider.add_span_processor(guard)
crewai.install(guard)
instrumentors = (CrewAIInstrumentor(), OpenAIInstrumentor())
for each in instrumentors:
    each.instrument(tracer_provider=provider)


@tool
def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


def agent(script: str) -> Agent:
    return Agent(
        role="researcher",
        goal="answer the question",
        backstory="You look things up.",
        llm=LLM(model=f"openai/{script}", base_url=server.url, api_key="none"),
        tools=[search],
        cache=False,
    )


with model_server() as server:
    try:
        agent("endless").kickoff("How is the weather in Paris?")
    except crewai.CrewAIRunAborted as aborted:
        print(f"stopped by {aborted.report.rule} after {aborted.report.model_calls} model calls")
        messages = [*aborted.messages, {"role": "user", "content": "Answer with what you have."}]
    print(agent("finish3").kickoff(messages).raw)

for each in instrumentors:
    each.uninstrument()
provider.shutdown()

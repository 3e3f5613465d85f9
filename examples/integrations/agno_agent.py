from agno.agent import Agent
from agno.models.message import Message
from agno.models.openai import OpenAIChat
from agno.run.base import RunStatus
from openinference.instrumentation.agno import AgnoInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import agno
from otel_loopguard.testing import model_server

provider = TracerProvider()
guard = LoopGuardSpanProcessor(mode="enforce")
provider.add_span_processor(guard)
agno.install(guard)
AgnoInstrumentor().instrument(tracer_provider=provider)


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


def agent(script: str) -> Agent:
    model = OpenAIChat(id=script, base_url=server.url, api_key="none")
    return Agent(name="researcher", model=model, tools=[search], telemetry=False)


with model_server() as server:
    stopped = agent("endless").run("How is the weather in Paris?")
    assert stopped.status == RunStatus.cancelled
    print(f"stopped by {stopped.metadata['loopguard.rule']}")
    question = Message(role="user", content="Answer with what you have.")
    print(agent("finish3").run([*stopped.messages, question]).content)

AgnoInstrumentor().uninstrument()
provider.shutdown()

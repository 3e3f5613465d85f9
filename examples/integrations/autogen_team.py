import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import autogen_agentchat
from otel_loopguard.testing import model_server

provider = TracerProvider()
guard = LoopGuardSpanProcessor(mode="enforce")
provider.add_span_processor(guard)
autogen_agentchat.install(guard)
AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)

MODEL = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)


async def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


def team(model: OpenAIChatCompletionClient) -> RoundRobinGroupChat:
    researcher = AssistantAgent("researcher", model, tools=[search], max_tool_iterations=3)
    return RoundRobinGroupChat([researcher], max_turns=9)


def client(script: str, url: str) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model=script, base_url=url, api_key="none", model_info=MODEL)


async def main(url: str) -> None:
    endless, finishing = client("endless", url), client("finish3", url)
    stopped = team(endless)
    try:
        await stopped.run(task="How is the weather in Paris?")
    except autogen_agentchat.AutoGenRunAborted as aborted:
        calls = aborted.report.model_calls
        print(f"stopped by {aborted.report.rule} after {calls} model calls")
        print(f"the team has ended with {len(aborted.result.messages)} messages")

    going_on = team(finishing)
    await going_on.load_state(await stopped.save_state())
    answer = await going_on.run(task="Answer with what you have.")
    print(answer.messages[1].to_text())
    await endless.close()
    await finishing.close()


with model_server() as server:
    asyncio.run(main(server.url))

AutogenAgentChatInstrumentor().uninstrument()
provider.shutdown()

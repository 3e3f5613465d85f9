import asyncio
import os

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"] = (
    "true"  # before its import
)

from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

from otel_loopguard import LoopGuardSpanProcessor
from otel_loopguard.integrations import semantic_kernel
from otel_loopguard.integrations.semantic_kernel import SemanticKernelRunAborted
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
provider = TracerProvider()
provider.add_span_processor(guard)
trace.set_tracer_provider(provider)
semantic_kernel.install(guard)


class Tools:
    @kernel_function
    def search(self, query: str) -> str:
        """Search for a text."""
        return f"nothing found for {query!r}"


def assistant(model: str, client: AsyncOpenAI) -> ChatCompletionAgent:
    service = OpenAIChatCompletion(ai_model_id=model, async_client=client)
    return ChatCompletionAgent(name="assistant", service=service, plugins=[Tools()])


async def main() -> None:
    with model_server("endless") as server:
        async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
            runaway, thread = assistant("endless", client), ChatHistoryAgentThread()
            try:
                await runaway.get_response("How is the weather in Paris?", thread=thread)
            except SemanticKernelRunAborted as stopped:
                print(f"stopped by {stopped.report.rule} after {server.count()} model requests")
                print(f"messages of the turn that are kept: {len(stopped.messages)}")

            answer = await assistant("finish3", client).get_response("Then guess.", thread=thread)
            print(f"and the thread goes on: {answer}")


asyncio.run(main())

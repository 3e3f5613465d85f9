"""A loop that calls the tools of an MCP server is stopped, and the conversation goes on."""

from __future__ import annotations

import asyncio
import json

from mcp import Client
from mcp.server import MCPServer
from openai import AsyncOpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, guarded_run
from otel_loopguard.integrations import mcp
from otel_loopguard.testing import model_server

policy = Policy.none().with_limits(max_tool_calls=2)
guard = LoopGuardSpanProcessor(policy, mode="enforce")
mcp.install(guard)

provider = TracerProvider()
provider.add_span_processor(guard)
OpenAIInstrumentor().instrument(tracer_provider=provider)

tools = MCPServer("tools", log_level="ERROR")


@tools.tool()
def search(query: str) -> str:
    """Search for a text."""
    print("searching")
    return f"nothing found for {query!r}"


async def answer(client: AsyncOpenAI, server: Client, model: str, history: list) -> str:
    """Let a model work until it answers. What it has done is in the history, whatever happens."""
    offered = [
        {"type": "function", "name": each.name, "parameters": each.input_schema}
        for each in (await server.list_tools()).tools
    ]
    while True:
        turn = await client.responses.create(model=model, input=history, tools=offered)
        history += turn.output
        calls = [item for item in turn.output if item.type == "function_call"]
        if not calls:
            return turn.output_text
        for call in calls:
            result = await server.call_tool(call.name, json.loads(call.arguments))
            said = result.content[0].text
            history.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": said}
            )


async def main() -> None:
    history: list = [{"role": "user", "content": "How is the weather in Paris?"}]
    with model_server() as models:
        async with (
            AsyncOpenAI(base_url=models.url, api_key="none") as client,
            Client(tools) as server,
        ):
            try:
                async with guarded_run():
                    await answer(client, server, "endless", history)
            except RunAborted as stopped:
                print(f"stopped by {stopped.report.rule}: {history[-1]['output']}")
            history.append({"role": "user", "content": "Then look somewhere else."})
            async with guarded_run():
                print(await answer(client, server, "finish3", history))


asyncio.run(main())
OpenAIInstrumentor().uninstrument()

import asyncio
import tempfile
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from otel_loopguard import LoopGuardSpanProcessor, RunAborted
from otel_loopguard.integrations import claude_agent_sdk
from otel_loopguard.testing import ModelServer, model_server

guard = LoopGuardSpanProcessor(mode="enforce")
claude_agent_sdk.install(guard)


@tool("search", "Search for a text.", {"query": str})
async def search(given: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"nothing found for {given['query']!r}"}]}


def options(server: ModelServer, home: str) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        model="endless",
        tools=[],
        allowed_tools=["mcp__tools__search"],
        mcp_servers={"tools": create_sdk_mcp_server("tools", tools=[search])},
        env={
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": server.root,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": home,
            "ENABLE_TOOL_SEARCH": "false",  # a scripted model would call what that offers
        },
        cwd=home,
        setting_sources=[],
    )


async def say(client: ClaudeSDKClient, text: str) -> None:
    await client.query(text)
    async for message in client.receive_response():
        if isinstance(message, ResultMessage):
            print(f"{message.terminal_reason}: {message.result}")


async def main(server: ModelServer, home: str) -> None:
    async with ClaudeSDKClient(options(server, home)) as client:
        try:
            await say(client, "How is the weather in Paris?")
        except RunAborted as aborted:
            report = aborted.report
            print(f"{type(aborted).__name__}: {report.rule} after {report.model_calls} model calls")
        await client.set_model("finish3")
        await say(client, "Then say what you know.")


with model_server() as server, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
    asyncio.run(main(server, home))

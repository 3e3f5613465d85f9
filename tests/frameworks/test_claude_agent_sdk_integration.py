"""The contract of the Claude Agent SDK's integration, with the CLI that it brings along."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    SdkMcpTool,
    create_sdk_mcp_server,
    query,
)
from claude_agent_sdk import tool as sdk_tool
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.integrations import claude_agent_sdk
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job, Tool
from tests.frameworks._integrated import AsyncTalk, Integrated

WORKER = "general-purpose"
"""The agent that the CLI takes where its model names none."""

QUIET = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "ENABLE_TOOL_SEARCH": "false",  # which offers a tool that is none, and is what a script calls
}


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:  # noqa: ARG001
    """Nothing has to emit spans."""
    with pytest.MonkeyPatch.context() as environment:
        for name in [each for each in os.environ if each.startswith("CLAUDE")]:
            environment.delenv(name)
        yield


def as_tool(function: Tool) -> SdkMcpTool[Any]:
    @sdk_tool(function.__name__, str(function.__doc__), {"query": str})
    async def call(given: dict[str, Any]) -> dict[str, Any]:
        found = function(given["query"])
        text = await found if inspect.isawaitable(found) else found
        return {"content": [{"type": "text", "text": text}]}

    return call


class Conversation:
    """A session, which each client resumes."""

    def __init__(self, home: str, **options: Any) -> None:
        self._home = home
        self._options = options
        self._session: str | None = None

    async def ask(self, job: Job) -> str:
        answer = ""
        async with aclosing(self._said(job)) as messages:
            async for message in messages:
                if isinstance(message, ResultMessage):
                    self._session, answer = message.session_id, message.result or ""
        return answer

    async def _said(self, job: Job) -> AsyncIterator[Message]:
        async with ClaudeSDKClient(self._given(job)) as client:
            await client.query(job.prompt)
            async for message in client.receive_response():
                yield message

    def _given(self, job: Job) -> ClaudeAgentOptions:
        server = create_sdk_mcp_server("tried", tools=[as_tool(each) for each in job.tools])
        root = job.url.removesuffix("/v1")
        return ClaudeAgentOptions(
            **{
                "tools": [],
                "allowed_tools": ["mcp__tried__search", "mcp__tried__lookup"],
                **self._options,
            },
            model=job.script,
            resume=self._session,
            mcp_servers={"tried": server},
            env={**QUIET, "ANTHROPIC_BASE_URL": root, "CLAUDE_CONFIG_DIR": self._home},
            cwd=self._home,
            max_turns=CAP,
            setting_sources=[],
        )


class Queries(Conversation):
    """The same with a CLI for each thing that is said."""

    async def _said(self, job: Job) -> AsyncIterator[Message]:
        async for message in query(prompt=job.prompt, options=self._given(job)):
            yield message


def awaited(kind: type[Conversation] = Conversation, **options: Any) -> Callable[[], AsyncTalk]:
    @asynccontextmanager
    async def talk() -> AsyncTalk:
        with TemporaryDirectory(ignore_cleanup_errors=True) as home:
            yield kind(home, **options)

    return talk


PARTS = {"include_partial_messages": True}
NESTED = {
    "tools": ["Agent"],
    "allowed_tools": ["Agent", "mcp__tried__search", "mcp__tried__lookup"],
    "agents": {
        WORKER: AgentDefinition(
            description="Searches.", prompt="Search.", tools=["mcp__tried__search"]
        )
    },
}

INTEGRATED = Integrated(
    title="Claude Agent SDK",
    module=claude_agent_sdk,
    instrument=instrument,
    awaited={
        "async": awaited(),
        "stream": awaited(**PARTS),
        "query async": awaited(Queries),
        "query stream": awaited(Queries, **PARTS),
        "parallel async": awaited(),
        "nested async": awaited(**NESTED),
    },
    packages=("claude-agent-sdk",),
    example=Path("examples/integrations/claude_agent.py"),
)

__all__ = ["INTEGRATED", "TestIntegration"]

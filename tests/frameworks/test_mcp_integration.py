"""The contract on the integration of MCP sessions: a loop whose tools are those of a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from otel_loopguard import guarded_run
from otel_loopguard.integrations import mcp as module
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job, Tool
from tests.frameworks._integrated import AsyncTalk, Integrated
from tests.frameworks._openai_loop import Messages, calls_of, genai, note, schema
from tests.frameworks._plain_loop import TooManyTurnsError

# The settings of 1.x's servers, as a newer Pydantic reads them.
pytestmark = pytest.mark.filterwarnings("ignore:Field 'lifespan' has an incomplete definition")

IS_FIRST = version("mcp").startswith("1.")
"""What a server is called, and how one meets it without a network, is another in 2.x."""


@asynccontextmanager
async def session_with(tools: Sequence[Tool]) -> AsyncGenerator[Any]:
    """Serve tools, and open a client's session to them."""
    if IS_FIRST:
        server = import_module("mcp.server.fastmcp").FastMCP("tools", log_level="ERROR")
        connect = import_module("mcp.shared.memory").create_connected_server_and_client_session
        opened = connect(server._mcp_server)
    else:
        server = import_module("mcp.server").MCPServer("tools", log_level="ERROR")
        opened = import_module("mcp").Client(server)
    for tool in tools:
        server.add_tool(tool)
    async with opened as session:
        yield session


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content)


class Loop:
    """What was said so far, kept by a hand-written loop."""

    def __init__(self) -> None:
        self._messages: Messages = []

    async def ask(self, job: Job) -> str:
        self._messages.append({"role": "user", "content": job.prompt})
        async with (
            guarded_run(),  # around the session: what leaves that is in groups of exceptions
            session_with(job.tools) as session,
            AsyncOpenAI(base_url=job.url, api_key="none") as client,
        ):
            return await self._answer(job, client, session)

    async def _answer(self, job: Job, client: AsyncOpenAI, session: Any) -> str:
        for _ in range(CAP):
            completion = await client.chat.completions.create(
                model=job.script,
                messages=self._messages,
                tools=[schema(each) for each in job.tools],
            )
            turn = completion.choices[0].message
            calls = calls_of(turn)
            if not calls:
                return turn.content or ""
            made = [await session.call_tool(call.name, dict(call.arguments)) for call in calls]
            note(self._messages, calls, [text_of(each) for each in made])
        raise TooManyTurnsError


@asynccontextmanager
async def loop() -> AsyncTalk:
    yield Loop()


EXAMPLE = Path(__file__).parents[2] / "examples" / "integrations" / "mcp_loop.py"

INTEGRATED = Integrated(
    title="MCP",
    module=module,
    instrument=genai,
    awaited={"async": loop, "parallel async": loop},
    packages=("mcp", "openai", "opentelemetry-instrumentation-genai-openai"),
    steers=False,
    example=None if IS_FIRST else EXAMPLE,
)

__all__ = ["INTEGRATED", "TestIntegration"]

"""The two real agents of the demo, each with its framework's real instrumentation.

Both have the same two tools and talk to the scripted model. Nothing here knows of the guard.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import pydantic_ai
from agents import Agent as OpenAIAgent
from agents import OpenAIResponsesModel, RunConfig, Runner, function_tool, set_trace_processors
from openai import AsyncOpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
from pydantic import Field
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

if TYPE_CHECKING:
    from telemetry import Providers

PROMPT = "How is the weather in Paris?"


class Tools:
    """The agents' tools; they count how often they really run."""

    def __init__(self) -> None:
        self.executions = 0

    def search(self, query: Annotated[str, Field(examples=["weather in Paris"])]) -> str:  # noqa: ARG002  the model fills it
        """Search the web."""
        self.executions += 1
        return "nothing found"

    def lookup(self, key: Annotated[str, Field(examples=["Paris"])]) -> str:
        """Look a place up."""
        self.executions += 1
        return f"{key} is in France"


class Framework(NamedTuple):
    """A framework: its agent, its instrumentation, and what it does about a runaway by itself."""

    name: str
    run: Callable[[str, str, Tools, AsyncOpenAI], Awaitable[str]]
    """From the agent's name, the model, the tools and the client to the agent's answer."""
    instrument: Callable[[Providers], object]
    uninstrument: Callable[[], object]
    limit_error: str
    limit_calls: int
    """How many model calls the framework allows by default."""


async def run_openai_agents(name: str, model: str, tools: Tools, client: AsyncOpenAI) -> str:
    """Run an agent of the OpenAI Agents SDK, over the Responses API."""
    agent = OpenAIAgent(
        name=name,
        model=OpenAIResponsesModel(model, client),
        tools=[function_tool(tools.search), function_tool(tools.lookup)],
    )
    result = await Runner.run(agent, PROMPT, run_config=RunConfig(workflow_name=name))
    return str(result.final_output)


def instrument_openai_agents(providers: Providers) -> None:
    # The SDK's own exporter, which sends traces to OpenAI, is taken out and stays out.
    set_trace_processors([])
    # It logs a refused request as an error, without a word of what was wrong; the caller is told.
    logging.getLogger("openai.agents").setLevel(logging.CRITICAL)
    for instrumentor in (OpenAIAgentsInstrumentor(), OpenAIInstrumentor()):
        instrumentor.instrument(tracer_provider=providers.tracer, meter_provider=providers.meter)


def uninstrument_openai_agents() -> None:
    OpenAIAgentsInstrumentor().uninstrument()
    OpenAIInstrumentor().uninstrument()


async def run_pydantic_ai(name: str, model: str, tools: Tools, client: AsyncOpenAI) -> str:
    """Run a Pydantic AI agent, over the Chat Completions API."""
    agent = pydantic_ai.Agent(
        OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client)),
        name=name,
        tools=[tools.search, tools.lookup],
    )
    result = await agent.run(PROMPT)
    return result.output


def instrument_pydantic_ai(providers: Providers) -> None:
    pydantic_ai.Agent.instrument_all(
        pydantic_ai.InstrumentationSettings(
            tracer_provider=providers.tracer, meter_provider=providers.meter
        )
    )


def uninstrument_pydantic_ai() -> None:
    pydantic_ai.Agent.instrument_all(instrument=False)


@contextmanager
def instrumented(framework: Framework, providers: Providers) -> Generator[None]:
    """Instrument the framework with these providers until the block is left."""
    framework.instrument(providers)
    try:
        yield
    finally:
        framework.uninstrument()


FRAMEWORKS = (
    Framework(
        name="OpenAI Agents SDK",
        run=run_openai_agents,
        instrument=instrument_openai_agents,
        uninstrument=uninstrument_openai_agents,
        limit_error="MaxTurnsExceeded",
        limit_calls=10,
    ),
    Framework(
        name="Pydantic AI",
        run=run_pydantic_ai,
        instrument=instrument_pydantic_ai,
        uninstrument=uninstrument_pydantic_ai,
        limit_error="UsageLimitExceeded",
        limit_calls=50,
    ),
)

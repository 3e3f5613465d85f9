"""The contract on hand-written loops over the `anthropic` client.

The client writes spans itself, and OpenInference's instrumentation does too: each model call is
seen twice, and is to be counted once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from inspect import cleandoc

from anthropic import Anthropic, AsyncAnthropic, OpenTelemetryOptions
from anthropic.types import Message, MessageParam, ToolParam
from openinference.instrumentation.anthropic import AnthropicInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._contract_plain_loop import TestGuardedRun, TestObserve, TestUnderOneSpan
from tests.frameworks._framework import CAP, Framework, Job, Tool
from tests.frameworks._openinference import openinference
from tests.frameworks._plain_loop import (
    SURROUNDINGS,
    Call,
    TooManyTurnsError,
    awaited,
    carried_out,
)

ANSWER_TOKENS = 100
PROVIDERS: list[TracerProvider] = []
"""Where the client's own spans go: those of an application go to its global provider."""


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    PROVIDERS.append(provider)
    try:
        with openinference(AnthropicInstrumentor(), provider=provider, content=content):
            yield
    finally:
        PROVIDERS.remove(provider)


def client(job: Job) -> Anthropic:
    return Anthropic(base_url=root(job), api_key="none", open_telemetry=traced())


def async_client(job: Job) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=root(job), api_key="none", open_telemetry=traced())


def traced() -> OpenTelemetryOptions:
    """Return what the client needs to be told of its spans."""
    return {"tracer_provider": PROVIDERS[-1]}


def root(job: Job) -> str:
    return job.url.removesuffix("/v1")


def schema(tool: Tool) -> ToolParam:
    return {
        "name": tool.__name__,
        "description": cleandoc(tool.__doc__ or ""),
        "input_schema": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    }


def calls_of(turn: Message) -> list[Call]:
    """Return the calls that a turn asks for."""
    return [
        Call(block.id, block.name, block.input)
        for block in turn.content
        if block.type == "tool_use"
    ]


def text_of(turn: Message) -> str:
    """Return what a turn says."""
    return "".join(block.text for block in turn.content if block.type == "text")


def note(history: list[MessageParam], calls: Sequence[Call], results: Sequence[str]) -> None:
    """Add a turn that asked for calls, and their results, to the history."""
    history.append(
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": call.id,
                    "name": call.name,
                    "input": dict(call.arguments),
                }
                for call in calls
            ],
        }
    )
    history.append(
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call.id, "content": result}
                for call, result in zip(calls, results, strict=True)
            ],
        }
    )


def sync(job: Job) -> str:
    history: list[MessageParam] = [{"role": "user", "content": job.prompt}]
    with client(job) as asked:
        for _ in range(CAP):
            turn = asked.messages.create(
                model=job.script,
                max_tokens=ANSWER_TOKENS,
                messages=history,
                tools=[schema(tool) for tool in job.tools],
            )
            calls = calls_of(turn)
            if not calls:
                return text_of(turn)
            note(history, calls, carried_out(calls, job.tools))
    raise TooManyTurnsError


def stream(job: Job) -> str:
    history: list[MessageParam] = [{"role": "user", "content": job.prompt}]
    with client(job) as asked:
        for _ in range(CAP):
            with asked.messages.stream(
                model=job.script,
                max_tokens=ANSWER_TOKENS,
                messages=history,
                tools=[schema(tool) for tool in job.tools],
            ) as events:
                turn = events.get_final_message()
            calls = calls_of(turn)
            if not calls:
                return text_of(turn)
            note(history, calls, carried_out(calls, job.tools))
    raise TooManyTurnsError


async def asynchronous(job: Job) -> str:
    history: list[MessageParam] = [{"role": "user", "content": job.prompt}]
    async with async_client(job) as asked:
        for _ in range(CAP):
            turn = await asked.messages.create(
                model=job.script,
                max_tokens=ANSWER_TOKENS,
                messages=history,
                tools=[schema(tool) for tool in job.tools],
            )
            calls = calls_of(turn)
            if not calls:
                return text_of(turn)
            note(history, calls, await awaited(calls, job.tools))
    raise TooManyTurnsError


async def async_stream(job: Job) -> str:
    history: list[MessageParam] = [{"role": "user", "content": job.prompt}]
    async with async_client(job) as asked:
        for _ in range(CAP):
            async with asked.messages.stream(
                model=job.script,
                max_tokens=ANSWER_TOKENS,
                messages=history,
                tools=[schema(tool) for tool in job.tools],
            ) as events:
                turn = await events.get_final_message()
            calls = calls_of(turn)
            if not calls:
                return text_of(turn)
            note(history, calls, await awaited(calls, job.tools))
    raise TooManyTurnsError


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync, "stream": stream},
    awaited={"async": asynchronous, "async-stream": async_stream},
    capped=TooManyTurnsError,
    at_cap=(CAP, CAP),
    run_span="handle order",
    agent_span="handle order",
    run_agent="",
    spans_above=1,
    title="a loop over the `anthropic` client",
    packages=("anthropic", "openinference-instrumentation-anthropic"),
    surroundings=SURROUNDINGS,
)

__all__ = ["FRAMEWORK", "TestGuardedRun", "TestMatrix", "TestObserve", "TestUnderOneSpan"]

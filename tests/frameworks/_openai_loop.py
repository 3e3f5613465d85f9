"""Hand-written loops over the `openai` client, and its instrumentations."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from inspect import cleandoc

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
)
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAI
from opentelemetry.instrumentation.openai import OpenAIInstrumentor as Traceloop
from opentelemetry.instrumentation.utils import unwrap
from opentelemetry.sdk.trace import TracerProvider

from tests.frameworks._framework import CAP, Framework, Instrument, Job, Tool, genai_content
from tests.frameworks._openinference import openinference
from tests.frameworks._plain_loop import (
    SURROUNDINGS,
    Call,
    TooManyTurnsError,
    awaited,
    carried_out,
)

Messages = list[ChatCompletionMessageParam]


def schema(tool: Tool) -> ChatCompletionFunctionToolParam:
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    return {
        "type": "function",
        "function": {
            "name": tool.__name__,
            "description": cleandoc(tool.__doc__ or ""),
            "parameters": parameters,
        },
    }


def note(messages: Messages, calls: Sequence[Call], results: Sequence[str]) -> None:
    """Add a turn that asked for calls, and their results, to the history."""
    messages.append(
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in calls
            ],
        }
    )
    for call, result in zip(calls, results, strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def calls_of(turn: ChatCompletionMessage) -> list[Call]:
    """Return the calls that a turn asks for."""
    return [
        Call(call.id, call.function.name, json.loads(call.function.arguments))
        for call in turn.tool_calls or ()
        if call.type == "function"
    ]


def sync(job: Job) -> str:
    messages: Messages = [{"role": "user", "content": job.prompt}]
    with OpenAI(base_url=job.url, api_key="none") as client:
        for _ in range(CAP):
            completion = client.chat.completions.create(
                model=job.script, messages=messages, tools=[schema(tool) for tool in job.tools]
            )
            turn = completion.choices[0].message
            if not turn.tool_calls:
                return turn.content or ""
            calls = calls_of(turn)
            note(messages, calls, carried_out(calls, job.tools))
    raise TooManyTurnsError


async def asynchronous(job: Job) -> str:
    messages: Messages = [{"role": "user", "content": job.prompt}]
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        for _ in range(CAP):
            completion = await client.chat.completions.create(
                model=job.script, messages=messages, tools=[schema(tool) for tool in job.tools]
            )
            turn = completion.choices[0].message
            if not turn.tool_calls:
                return turn.content or ""
            calls = calls_of(turn)
            note(messages, calls, await awaited(calls, job.tools))
    raise TooManyTurnsError


async def stream(job: Job) -> str:
    messages: Messages = [{"role": "user", "content": job.prompt}]
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        for _ in range(CAP):
            chunks = await client.chat.completions.create(
                model=job.script,
                messages=messages,
                tools=[schema(tool) for tool in job.tools],
                stream=True,
            )
            text = call_id = name = arguments = ""
            async for chunk in chunks:
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    for part in choice.delta.tool_calls or ():
                        call_id += part.id or ""
                        if part.function is not None:
                            name += part.function.name or ""
                            arguments += part.function.arguments or ""
            if not name:
                return text
            calls = [Call(call_id, name, json.loads(arguments))]
            note(messages, calls, await awaited(calls, job.tools))
    raise TooManyTurnsError


@contextmanager
def genai(provider: TracerProvider, *, content: bool) -> Generator[None]:
    client = GenAI()
    with genai_content(content=content):
        client.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        client.uninstrument()


def by_openinference(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    return openinference(OpenInference(), provider=provider, content=content)


def unwrap_method(module: str, method: str) -> None:
    """Undo a wrap of Traceloop's, whose own call takes the class for a module and does nothing."""
    owner, _, name = method.partition(".")
    with suppress(ImportError, AttributeError):
        unwrap(getattr(import_module(module), owner), name)


@contextmanager
def traceloop(provider: TracerProvider, *, content: bool) -> Generator[None]:
    client = Traceloop()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRACELOOP_TRACE_CONTENT", str(content).lower())
        environment.setattr("opentelemetry.instrumentation.openai.v1.unwrap", unwrap_method)
        client.instrument(tracer_provider=provider)
        try:
            yield
        finally:
            client.uninstrument()


INSTRUMENTATIONS: Mapping[str, Instrument] = {
    "genai": genai,
    "openinference": by_openinference,
    "traceloop": traceloop,
}
"""OpenTelemetry's own, and the two others that are in wide use."""


OPENAI_LOOP = Framework(
    instrument=genai,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream},
    capped=TooManyTurnsError,
    at_cap=(CAP, CAP),
    run_span="handle order",
    agent_span="handle order",
    run_agent="",
    spans_above=1,
    title="a loop over the `openai` client",
    packages=("openai", "opentelemetry-instrumentation-genai-openai"),
    surroundings=SURROUNDINGS,
)

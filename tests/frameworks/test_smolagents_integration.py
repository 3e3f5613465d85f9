"""The contract of smolagents' integration: agents that call tools, write code, manage others."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from openinference.instrumentation import TraceConfig
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from smolagents import (
    AgentMemory,
    ChatMessage,
    CodeAgent,
    FinalAnswerStep,
    LogLevel,
    MultiStepAgent,
    OpenAIModel,
    Tool,
    ToolCallingAgent,
    tool,
)
from smolagents.models import (
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

from otel_loopguard.integrations import smolagents
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job
from tests.frameworks._integrated import Integrated, Talk

CALLS = "Calling tools:\n"
"""What smolagents writes above the calls of a step."""

WAIT_S = 20
"""Seconds that a tool call waits for those that the model has asked for with it."""

Made = Callable[[Job], MultiStepAgent]
"""Makes an agent."""


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    hidden = TraceConfig(hide_inputs=not content, hide_outputs=not content)
    SmolagentsInstrumentor().instrument(tracer_provider=provider, config=hidden)
    try:
        yield
    finally:
        SmolagentsInstrumentor().uninstrument()


class Model(OpenAIModel):
    """A model whose history has calls and results as such, and whose last words are its answer.

    smolagents writes both as texts, of which the scripted server knows nothing.
    """

    def _prepare_completion_kwargs(
        self, messages: list[ChatMessage], *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        prepared = super()._prepare_completion_kwargs(messages, *args, **kwargs)
        return {**prepared, "messages": spelled(messages)}

    def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
        answer = {"answer": message.content}
        function = ChatMessageToolCallFunction(name="final_answer", arguments=answer)
        message.tool_calls = [ChatMessageToolCall(id="last", type="function", function=function)]
        return message


class Writer(Model):
    """The same for an agent that writes code: its calls and its answer are code."""

    def __init__(self, job: Job, tools: list[Tool]) -> None:
        super().__init__(job.script, api_base=job.url, api_key="none")
        self._tools = tools

    def generate(self, *args: Any, **kwargs: Any) -> ChatMessage:
        message = super().generate(*args, tools_to_call_from=self._tools, **kwargs)
        lines = [
            f"{call.function.name}(**{json.loads(call.function.arguments)})"
            for call in message.tool_calls or ()
        ] or [f"final_answer({message.content!r})"]
        message.content = "\n".join(["<code>", *lines, "</code>"])
        message.tool_calls = None
        return message


def spelled(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages as the API has them: calls with their ids, and a result for each."""
    said: list[dict[str, Any]] = []
    asked: list[str] = []
    for message in messages:
        text = "".join(part["text"] for part in message.content)
        if message.role == MessageRole.TOOL_CALL:
            calls = ast.literal_eval(text.removeprefix(CALLS))
            asked = [call["id"] for call in calls]
            said.append({"role": "assistant", "content": None, "tool_calls": calls_of(calls)})
        elif message.role == MessageRole.TOOL_RESPONSE and asked:
            said += [{"role": "tool", "tool_call_id": each, "content": text} for each in asked]
            asked = []
        else:
            role = message.role if message.role in {"system", "assistant"} else "user"
            said.append({"role": str(role), "content": text})
    return said


def calls_of(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"])}}
        for call in calls
    ]


def single(job: Job) -> MultiStepAgent:
    model = Model(job.script, api_base=job.url, api_key="none")
    return ToolCallingAgent(tools_of(job), model, **QUIET)


def parallel(job: Job) -> MultiStepAgent:
    """Tools that wait for each other, so that each call of a turn is under way when one ends."""
    at_once = threading.Barrier(int(job.script.partition(":")[2] or 1))

    def waiting(function: Callable[[str], str]) -> Callable[[str], str]:
        @wraps(function)
        def call(query: str) -> str:
            found = function(query)
            at_once.wait(WAIT_S)
            return found

        return call

    return single(job._replace(tools=[waiting(each) for each in job.tools]))


def streaming(job: Job) -> MultiStepAgent:
    model = Model(job.script, api_base=job.url, api_key="none")
    return ToolCallingAgent(tools_of(job), model, stream_outputs=True, **QUIET)


def nested(job: Job) -> MultiStepAgent:
    inner = single(job)
    inner.name, inner.description = "researcher", "Searches."
    return Manager([], inner.model, managed_agents=[inner], **QUIET)


class Manager(ToolCallingAgent):
    """An agent that offers the agents that it manages alone: a scripted model calls what is first.

    Its final answer is what the model says last.
    """

    @property
    def tools_and_managed_agents(self) -> list[Any]:
        return [*self.managed_agents.values()]


def coding(job: Job) -> MultiStepAgent:
    tools = tools_of(job)
    return CodeAgent(tools, Writer(job, tools), **QUIET)


QUIET: dict[str, Any] = {"max_steps": CAP, "verbosity_level": LogLevel.OFF}


def tools_of(job: Job) -> list[Tool]:
    """Return the tools as smolagents wants them, with a word on each argument."""
    return [tool(described(each)) for each in job.tools]


def described(function: Callable[[str], str]) -> Callable[[str], str]:
    def call(query: str) -> str:
        return function(query)

    call.__name__ = function.__name__
    call.__doc__ = f"{function.__doc__}\n\nArgs:\n    query: what to look for\n"
    return call


class Conversation:
    """A memory that each agent is given, and leaves behind."""

    def __init__(self, made: Made, *, in_steps: bool) -> None:
        self._made = made
        self._in_steps = in_steps
        self._memory: AgentMemory | None = None

    def ask(self, job: Job) -> str:
        agent = self._made(job)
        if self._memory is not None:
            agent.memory = self._memory
        self._memory = agent.memory
        if not self._in_steps:
            return str(agent.run(job.prompt, reset=False))
        *_, last = agent.run(job.prompt, reset=False, stream=True)
        assert isinstance(last, FinalAnswerStep)
        return str(last.output)


def talk(made: Made = single, *, in_steps: bool = False) -> Callable[[], Talk]:
    @contextmanager
    def conversation() -> Talk:
        yield Conversation(made, in_steps=in_steps)

    return conversation


INTEGRATED = Integrated(
    title="smolagents",
    module=smolagents,
    instrument=instrument,
    blocking={
        "sync": talk(),
        "stream": talk(streaming, in_steps=True),
        "parallel sync": talk(parallel),
        "parallel stream": talk(parallel, in_steps=True),
        "nested sync": talk(nested),
        "nested stream": talk(nested, in_steps=True),
        "code sync": talk(coding),
        "code stream": talk(coding, in_steps=True),
    },
    packages=("smolagents", "openai", "openinference-instrumentation-smolagents"),
    example=Path("examples/integrations/smolagents_agent.py"),
)

__all__ = ["INTEGRATED", "TestIntegration"]

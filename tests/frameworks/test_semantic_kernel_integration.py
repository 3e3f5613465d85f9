"""The contract on the integration of Semantic Kernel, with the spans that it emits itself."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from semantic_kernel import Kernel
from semantic_kernel.agents import (
    ChatCompletionAgent,
    ChatHistoryAgentThread,
    HandoffOrchestration,
    OrchestrationHandoffs,
)
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai import chat_completion_client_base
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.contents import ChatHistory
from semantic_kernel.exceptions import KernelInvokeException
from semantic_kernel.functions import (
    KernelArguments,
    KernelFunctionFromMethod,
    KernelPlugin,
    kernel_function,
)
from semantic_kernel.utils.telemetry.agent_diagnostics import decorators as agent_spans
from semantic_kernel.utils.telemetry.model_diagnostics import decorators as model_spans
from semantic_kernel.utils.telemetry.model_diagnostics import function_tracer

from otel_loopguard import Policy, guarded_run
from otel_loopguard.integrations import semantic_kernel
from otel_loopguard.integrations.semantic_kernel import SemanticKernelRunAborted
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import AGENT, CAP, Job, thread_loop
from tests.frameworks._integrated import Integrated, Talk, Waiting
from tests.frameworks._stage import Scene, Stage
from tests.frameworks._workbench import Counts

TWO_CALLS = Policy.none().with_limits(max_llm_calls=2)
EXAMPLE = Path(__file__).parents[2] / "examples" / "integrations" / "semantic_kernel_agent.py"
TRACED = (
    chat_completion_client_base,
    import_module("semantic_kernel.functions.kernel_function"),  # a decorator has that name too
    agent_spans,
    model_spans,
)
"""Modules that hold a tracer of the provider of the process, which can be set only once."""
SWITCHED = (agent_spans, model_spans, function_tracer)
"""Modules that have read the environment for whether to write spans, and what in them."""

Ask: TypeAlias = Callable[["Conversation", Job], Any]


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in TRACED:
            patch.setattr(module, "tracer", provider.get_tracer(module.__name__))
        for module in SWITCHED:
            settings = module.MODEL_DIAGNOSTICS_SETTINGS
            patch.setattr(settings, "enable_otel_diagnostics", value=True)
            patch.setattr(settings, "enable_otel_diagnostics_sensitive", content)
        yield


class Conversation:
    """What is remembered from one turn to the next; agents are made anew for each."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._client: AsyncOpenAI | None = None
        self.thread = ChatHistoryAgentThread()
        self.history = ChatHistory()

    async def ask(self, job: Job) -> str:
        return str(await self._ask(self, job))

    def service(self, job: Job) -> OpenAIChatCompletion:
        if self._client is None:
            self._client = AsyncOpenAI(base_url=job.url, api_key="none")
        return OpenAIChatCompletion(ai_model_id=job.script, async_client=self._client)

    def agent(self, job: Job, name: str = AGENT, **options: Any) -> ChatCompletionAgent:
        with_tools = {"plugins": [tools(job)], "function_choice_behavior": choice(), **options}
        return ChatCompletionAgent(name=name, service=self.service(job), **with_tools)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


def tools(job: Job) -> KernelPlugin:
    functions = [KernelFunctionFromMethod(kernel_function(tool), "tools") for tool in job.tools]
    return KernelPlugin(name="tools", functions=functions)


def choice() -> FunctionChoiceBehavior:
    chosen = FunctionChoiceBehavior.Auto()
    chosen.maximum_auto_invoke_attempts = CAP
    return chosen


async def response(talk: Conversation, job: Job) -> object:
    return await talk.agent(job).get_response(job.prompt, thread=talk.thread)


async def invoked(talk: Conversation, job: Job) -> str:
    responses = talk.agent(job).invoke(job.prompt, thread=talk.thread)
    return "".join([str(each) async for each in responses])


async def streamed(talk: Conversation, job: Job) -> str:
    chunks = talk.agent(job).invoke_stream(job.prompt, thread=talk.thread)
    return "".join([str(each) async for each in chunks])


async def nested(talk: Conversation, job: Job) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it looks at all that the agent has
        manager = talk.agent(job, "manager", plugins=[talk.agent(job)])
    return await manager.get_response(job.prompt, thread=talk.thread)


async def by_service(talk: Conversation, job: Job) -> object:
    talk.history.add_user_message(job.prompt)
    kernel = Kernel(plugins={"tools": tools(job)})
    settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=choice())
    with guarded_run():  # without an agent there is no span around the loop
        service = talk.service(job)
        return await service.get_chat_message_content(talk.history, settings, kernel=kernel)


async def handed_off(talk: Conversation, job: Job) -> object:
    names = ("triage", "expert")
    members = [talk.agent(job, name, description=f"the {name}") for name in names]
    handoffs = OrchestrationHandoffs().add(*names).add(*reversed(names))
    said: list[Any] = []
    team = HandoffOrchestration(members, handoffs, agent_response_callback=said.append)
    runtime = InProcessRuntime()
    async with guarded_run():  # each message between them begins a trace of its own
        runtime.start()
        try:
            await (await team.invoke(job.prompt, runtime)).get(timeout=20)
        finally:
            await runtime.stop_when_idle()
    return said[-1]


def talk(ask: Ask) -> AbstractAsyncContextManager[Conversation]:
    return aclosing(Conversation(ask))


@contextmanager
def sync() -> Talk:
    with thread_loop() as loop:
        conversation = Conversation(response)
        try:
            yield Waiting(conversation, loop.run_until_complete)
        finally:
            loop.run_until_complete(conversation.aclose())


INTEGRATED = Integrated(
    title="Semantic Kernel",
    module=semantic_kernel,
    instrument=instrument,
    blocking={"sync": sync},
    awaited={
        "async": partial(talk, response),
        "stream": partial(talk, streamed),
        "invoke": partial(talk, invoked),
        "service": partial(talk, by_service),
        "parallel async": partial(talk, response),
        "parallel stream": partial(talk, streamed),
        "nested async": partial(talk, nested),
        "hand-off async": partial(talk, handed_off),
    },
    packages=("semantic-kernel", "openai"),
    example=EXAMPLE,
)


class TestThread:
    """A thread has the whole of a turn that was stopped."""

    @pytest.mark.parametrize("ask", [response, invoked, streamed])
    def test_messages(self, stage: Stage, ask: Ask):
        with stage.guarded(TWO_CALLS) as scene:
            kept = asyncio.run(kept_by(Conversation(ask), job_of(scene)))
        assert kept == ["user", "assistant", "tool", "assistant", "tool"]


async def kept_by(conversation: Conversation, job: Job) -> list[str]:
    with pytest.raises(SemanticKernelRunAborted):
        await conversation.ask(job)
    await conversation.aclose()
    return [message.role.value async for message in conversation.thread.get_messages()]


def job_of(scene: Scene) -> Job:
    return Job("endless", scene.server.url, scene.tools("endless"))


class TestElsewhere:
    """Where there is no agent."""

    def test_prompt(self, stage: Stage):
        """The kernel's own error is not put around the guard's."""
        with (
            stage.guarded(TWO_CALLS) as scene,
            pytest.raises(SemanticKernelRunAborted),
            guarded_run(),
        ):
            asyncio.run(by_prompt(job_of(scene)))
        assert scene.counts() == Counts(requests=2, executions=2)

    def test_error_of_another_kind(self, stage: Stage):
        with stage.guarded(), pytest.raises(KernelInvokeException):
            asyncio.run(Kernel().invoke_prompt("go"))


async def by_prompt(job: Job) -> None:
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        service = OpenAIChatCompletion(ai_model_id=job.script, async_client=client)
        kernel = Kernel(plugins={"tools": tools(job)}, services=service)
        settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=choice())
        await kernel.invoke_prompt("go", arguments=KernelArguments(settings=settings))


__all__ = ["INTEGRATED", "TestElsewhere", "TestIntegration", "TestThread"]

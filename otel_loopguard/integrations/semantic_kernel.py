"""Semantic Kernel, stopped by an error of its own before the next model call.

`ChatCompletionClientBase` holds the loop of model and function calls of agents, orchestrations and
prompts alike: in it each request is asked for. The caller gets `SemanticKernelRunAborted`. A chat
history that a service was given has all messages of the turn, each function call with its result;
`ChatCompletionAgent` gives them to its thread, so that the next call with it goes on.

`KernelFunction.invoke` does not make a refused call of the model's: its result is the reason. A
hint is a user's message at the end of one request. Not reached: services that hold the loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager
from types import ModuleType
from typing import Any

import wrapt
from semantic_kernel.agents import AgentThread, ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.contents import AuthorRole, ChatHistory, ChatMessageContent
from semantic_kernel.exceptions import KernelException, KernelInvokeException
from semantic_kernel.functions import FunctionResult, KernelFunction

from otel_loopguard.abort.aborted import RunAborted, abort_of
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration, reason

_REQUESTS = ("_inner_get_chat_message_contents", "_inner_get_streaming_chat_message_contents")
Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class SemanticKernelRunAborted(RunAborted, KernelException):
    """The loop guard stopped the run before the next model call."""

    messages: tuple[ChatMessageContent, ...] = ()
    """The function calls of the turn and their results; those of a stream have been streamed."""


class _Asking(wrapt.ObjectProxy):
    """A service that asks before each of its requests."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in _REQUESTS:
            return found
        return lambda chat_history, *rest: found(_allowed(chat_history), *rest)


def _allowed(history: ChatHistory) -> ChatHistory:
    """Return what the model may be asked now, or raise."""
    INTEGRATION.ask(SemanticKernelRunAborted)
    hint = INTEGRATION.hint()
    if hint is None:
        return history
    told = ChatMessageContent(role=AuthorRole.USER, content=hint)
    return ChatHistory(messages=[*history.messages, told])


async def _complete(wrapped: Any, service: object, args: Arguments, kwargs: Keywords) -> object:
    history = args[0] if args else kwargs["chat_history"]
    known = len(history)
    try:
        return await wrapped.__func__(_Asking(service), *args, **kwargs)
    except SemanticKernelRunAborted as stopped:
        stopped.messages = tuple(history.messages[known:])
        raise


async def _stream(
    wrapped: Any, service: object, args: Arguments, kwargs: Keywords
) -> AsyncGenerator[Any]:
    # An agent that streams has given each message to its thread already.
    async with aclosing(wrapped.__func__(_Asking(service), *args, **kwargs)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _respond(wrapped: Wrapped, _agent: object, args: Arguments, kwargs: Keywords) -> object:
    async with _kept(kwargs.get("thread")):
        return await wrapped(*args, **kwargs)


async def _responses(
    wrapped: Wrapped, _agent: object, args: Arguments, kwargs: Keywords
) -> AsyncGenerator[Any]:
    async with _kept(kwargs.get("thread")), aclosing(wrapped(*args, **kwargs)) as responses:
        async for response in responses:
            yield response


@asynccontextmanager
async def _kept(thread: AgentThread | None) -> AsyncGenerator[None]:
    """Let a thread have the messages of a turn that is stopped, as it has those of any other."""
    try:
        yield
    except SemanticKernelRunAborted as stopped:
        if thread is not None:
            for message in stopped.messages:
                await thread.on_new_message(message)
        raise


async def _kernel(wrapped: Wrapped, _kernel: object, args: Arguments, kwargs: Keywords) -> object:
    try:
        return await wrapped(*args, **kwargs)
    except KernelInvokeException as error:
        stopped = abort_of(error)
        if isinstance(stopped, SemanticKernelRunAborted):
            raise stopped from error
        raise


async def _function(
    wrapped: Wrapped, function: KernelFunction, args: Arguments, kwargs: Keywords
) -> object:
    metadata = kwargs.get("metadata") or {}
    asked = metadata.get("function")
    if asked is None:  # it is no model that calls it
        return await wrapped(*args, **kwargs)
    name, call_id = function.fully_qualified_name, metadata.get("id")
    with INTEGRATION.calling(name, asked["arguments"], call_id) as call:
        if call.refusal is None:
            result = await wrapped(*args, **kwargs)
            call.result = None if result is None else str(result)
            return result
        return FunctionResult(function=function.metadata, value=reason(call.refusal))


def _places(module: ModuleType) -> Iterator[Entry]:
    yield Entry(ChatCompletionClientBase, "get_chat_message_contents", _complete)
    yield Entry(ChatCompletionClientBase, "get_streaming_chat_message_contents", _stream)
    yield Entry(KernelFunction, "invoke", _function)
    yield Entry(module.Kernel, "invoke", _kernel)
    yield Entry(ChatCompletionAgent, "get_response", _respond)
    yield Entry(ChatCompletionAgent, "invoke", _responses)


INTEGRATION = Integration("Semantic Kernel", {"semantic_kernel": _places})
install = INTEGRATION.install
uninstall = INTEGRATION.uninstall

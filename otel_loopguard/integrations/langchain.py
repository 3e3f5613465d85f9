"""LangChain's `create_agent` and every other graph of LangGraph, ended early when a run is stopped.

Wrapped are the calls of chat models (`BaseChatModel.generate`, `stream` and their awaited forms,
which `invoke` and `batch` go by) and the calls that a `ToolNode` makes. A refused request raises
`LangChainRunAborted`, which is LangGraph's `GraphDrained` too. The checkpoint is that of the step
before, so that a further turn on the same thread goes on; without a checkpointer its `messages` do.

A refused tool call is not made: the model is told so in its result, a `ToolMessage` of status
`error`. An agent that is stopped inside a tool ends that tool in this way, so that the agent around
it, which is stopped before its own next request, has an answer to every call.

Not reached: language models that are no chat models, a model's `stream_events(version="v3")`, and
tools that are called by hand, without a `ToolNode`. The model gate stops them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from otel_loopguard.abort import guarded_run
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.integrations._langchain import (
    LangChainRunAborted,
    answering,
    ask,
    with_hint,
)
from otel_loopguard.integrations._streamed import astreamed, streamed

if TYPE_CHECKING:
    from otel_loopguard.integrations._langchain_middleware import LoopGuardMiddleware

__all__ = ["LangChainRunAborted", "LoopGuardMiddleware", "install", "uninstall"]


def __getattr__(name: str) -> object:
    if name != "LoopGuardMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # LangGraph can be there without LangChain's agents, which alone have middleware.
    from otel_loopguard.integrations import _langchain_middleware  # noqa: PLC0415

    return _langchain_middleware.LoopGuardMiddleware


def _run(wrapped: Wrapped, _graph: Any, args: Any, kwargs: Any) -> Any:
    block, stream = _INTEGRATION.run(), partial(wrapped, *args, **kwargs)
    return streamed(block, stream) if isinstance(block, guarded_run) else stream()


def _arun(wrapped: Wrapped, _graph: Any, args: Any, kwargs: Any) -> Any:
    block, stream = _INTEGRATION.run(), partial(wrapped, *args, **kwargs)
    return astreamed(block, stream) if isinstance(block, guarded_run) else stream()


def _generate(wrapped: Wrapped, _model: Any, args: Any, kwargs: Any) -> Any:
    prompts, others = _first_of(args, kwargs, "messages")
    ask(_INTEGRATION, prompts[0] if prompts else ())
    hinted = [with_hint(_INTEGRATION, list(messages)) for messages in prompts]
    return wrapped(hinted, *others, **kwargs)


async def _agenerate(wrapped: Wrapped, model: Any, args: Any, kwargs: Any) -> Any:
    return await _generate(wrapped, model, args, kwargs)


def _stream(wrapped: Wrapped, _model: Any, args: Any, kwargs: Any) -> Generator[Any, Any, Any]:
    yield from _begun(wrapped, args, kwargs)


async def _astream(
    wrapped: Wrapped, _model: Any, args: Any, kwargs: Any
) -> AsyncGenerator[Any, Any]:
    async for chunk in _begun(wrapped, args, kwargs):
        yield chunk


def _begun(wrapped: Wrapped, args: Any, kwargs: Any) -> Any:
    asked, others = _first_of(args, kwargs, "input")
    if not isinstance(asked, list):  # a text, or a prompt that makes messages
        ask(_INTEGRATION, ())
        return wrapped(asked, *others, **kwargs)
    messages: list[Any] = [*asked]
    ask(_INTEGRATION, messages)
    return wrapped(with_hint(_INTEGRATION, messages), *others, **kwargs)


def _first_of(
    args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> tuple[Any, tuple[Any, ...]]:
    """Return what is given first, be it by its name, and what is given by its place after it."""
    return (args[0], args[1:]) if args else (kwargs.pop(name), ())


def _tool(wrapped: Wrapped, _node: Any, args: Any, kwargs: Any) -> Any:
    with answering(_INTEGRATION, _call_of(args, kwargs)) as answer:
        if answer.given is None:
            answer.given = wrapped(*args, **kwargs)
    return answer.given


async def _atool(wrapped: Wrapped, _node: Any, args: Any, kwargs: Any) -> Any:
    with answering(_INTEGRATION, _call_of(args, kwargs)) as answer:
        if answer.given is None:
            answer.given = await wrapped(*args, **kwargs)
    return answer.given


def _call_of(args: Any, kwargs: Any) -> Any:
    request = args[0] if args else kwargs["request"]
    return request.tool_call


def _graphs(module: ModuleType) -> Iterator[Entry]:
    # `invoke` and `ainvoke` go by these.
    yield Entry(module.Pregel, "stream", _run)
    yield Entry(module.Pregel, "astream", _arun)


def _models(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.BaseChatModel, "generate", _generate)
    yield Entry(module.BaseChatModel, "agenerate", _agenerate)
    yield Entry(module.BaseChatModel, "stream", _stream)
    yield Entry(module.BaseChatModel, "astream", _astream)


def _tools(module: ModuleType) -> Iterator[Entry]:
    # Each attempt at a call comes by here, below the wrappers that try it again or forbid it.
    yield Entry(module.ToolNode, "_execute_tool_sync", _tool)
    yield Entry(module.ToolNode, "_execute_tool_async", _atool)


_INTEGRATION = Integration(
    "LangChain",
    {
        "langgraph.pregel.main": _graphs,
        "langchain_core.language_models.chat_models": _models,
        "langgraph.prebuilt.tool_node": _tools,
    },
)

install = _INTEGRATION.install
uninstall = _INTEGRATION.uninstall

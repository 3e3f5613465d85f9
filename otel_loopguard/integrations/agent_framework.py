"""Microsoft Agent Framework: an agent's turn ends whole, then `run` tells of the stop.

`ChatTelemetryLayer.get_response` asks before each request of agents, their tools and workflows. A
refused one is answered in the model's place by a short message: so the agent ends its turn as ever,
and its session keeps what was said, each tool call with its result. Then `RawAgent.run` raises
`AgentFrameworkRunAborted`, in a stream at its end; the next `run` with that session goes on. An
agent that is another one's tool ends with an error of that tool. A turn that has not begun raises
at once, and so does a chat client that is asked without an agent. What a service that keeps the
conversation has not got is `unsent`.

`FunctionTool.invoke` does not make a refused call: its result is the reason. A hint joins the
instructions of one request. Not reached: chat clients without that layer, and hand-offs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from agent_framework import (
    AgentResponse,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FinishReason,
    Message,
    ResponseStream,
)
from agent_framework.exceptions import AgentException
from agent_framework.observability import ChatTelemetryLayer

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.integrations._integration import Integration, reason

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class AgentFrameworkRunAborted(RunAborted, AgentException):
    """The loop guard stopped an agent's run, the turn of which is kept as far as it came."""

    response: AgentResponse[Any] | None = None
    """The messages of the turn and its usage; `None` if no model was asked in it."""
    unsent: tuple[Message, ...] = ()
    """Results that a service which keeps the conversation has not got. The next thing that it is
    told begins with them: `agent.run([*stopped.unsent, "..."], session=session)`."""


class _Run:
    """A run of an agent, by the client of its first model call, and its stop."""

    client: object = None
    stopped: AgentFrameworkRunAborted | None = None

    @contextmanager
    def entered(self) -> Generator[None]:
        token = _RUN.set(self)
        try:
            yield
        finally:
            _RUN.reset(token)

    def over(self, response: AgentResponse[Any]) -> None:
        if self.stopped is not None:
            self.stopped.response = response
            raise self.stopped


_RUN: ContextVar[_Run | None] = ContextVar("loopguard_agent_framework_run", default=None)


def _run(wrapped: Wrapped, _agent: object, args: Arguments, kwargs: Keywords) -> object:
    run = _Run()
    answer = wrapped(*args, **kwargs)
    if isinstance(answer, ResponseStream):  # its history is kept before this hook is called
        return answer.with_pull_context_manager(run.entered).with_result_hook(run.over)
    return _awaited(run, answer)


async def _awaited(run: _Run, answer: Awaitable[AgentResponse[Any]]) -> AgentResponse[Any]:
    with run.entered():
        response = await answer
    run.over(response)
    return response


def _get_response(wrapped: Wrapped, client: object, args: Arguments, kwargs: Keywords) -> object:
    refusal, run, options = INTEGRATION.refusal(), _RUN.get(), kwargs.get("options") or {}
    if refusal is None:
        if run is not None and run.client is None:
            run.client = client
        hint = INTEGRATION.hint()
        if hint is None:
            return wrapped(*args, **kwargs)
        # Not as one message more: the framework compacts the list itself, in place.
        told = "\n\n".join(filter(None, (options.get("instructions"), hint)))
        return wrapped(*args, **{**kwargs, "options": {**options, "instructions": told}})
    if not isinstance(refusal, RunAborted):
        raise refusal
    stopped = AgentFrameworkRunAborted(refusal.report, refusal.run_id)
    if run is None or run.client is not client:  # there is nothing to keep
        raise stopped
    run.stopped = stopped
    if options.get("conversation_id"):
        messages = args[0] if args else kwargs["messages"]
        stopped.unsent = tuple(message for message in messages if message.role == "tool")
    answer = ResponseStream(_updates(str(stopped)), finalizer=ChatResponse.from_updates)
    return answer if kwargs.get("stream") else answer.get_final_response()


async def _updates(text: str) -> AsyncGenerator[ChatResponseUpdate]:
    # Not without a word: there are models that accept no user's message after a tool's result.
    said = [Content.from_text(text)]
    reason = FinishReason("loopguard")
    yield ChatResponseUpdate(contents=said, role="assistant", finish_reason=reason)


async def _invoke(wrapped: Wrapped, tool: Any, args: Arguments, kwargs: Keywords) -> object:
    given = kwargs.get("arguments", UNKNOWN)
    with INTEGRATION.calling(tool.name, given, kwargs.get("tool_call_id")) as call:
        if call.refusal is None:
            result = await wrapped(*args, **kwargs)
            call.result = _text(result) if isinstance(result, list) else result
            return result
        why = reason(call.refusal)
        return why if kwargs.get("skip_parsing") else [Content.from_text(why)]


def _text(result: list[Content]) -> str:
    """Return what a tool answered, as its span has it."""
    return "\n".join(each.text or "" for each in result if each.type == "text") or str(result)


def _places(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.RawAgent, "run", _run)
    yield Entry(ChatTelemetryLayer, "get_response", _get_response)
    yield Entry(module.FunctionTool, "invoke", _invoke)


INTEGRATION = Integration("Microsoft Agent Framework", {"agent_framework": _places})
install = INTEGRATION.install
uninstall = INTEGRATION.uninstall

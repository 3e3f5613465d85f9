"""Agno, whose runs end as cancelled ones.

What is wrapped: what asks the model, and what makes a tool call, of `Model`.

What the caller gets: a `RunOutput` whose `status` is `RunStatus.cancelled`, of agents and teams;
its `content` says why, its `metadata` has `loopguard.rule` and `loopguard.run.id`. A stream ends
with the `RunCancelledEvent`. Agno keeps every exception from its caller: this is what it makes of
`AgnoRunAborted`, which is its own `RunCancelledException`, and `RunAborted`.

How the history goes on: it is in `messages`, each tool call with its result. A new turn begins with
`agent.run([*stopped.messages, ...])`: Agno does not continue a run that was cancelled, and leaves
it out of a session's history.

What is not reached: where a member is awaited, its work is done after the call that has delegated
it counts as over, for its answer is read as it comes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from agno.exceptions import RunCancelledException
from agno.models.message import Message

from otel_loopguard.abort.aborted import RunAborted, RunInterrupted
from otel_loopguard.abort.patches import Entry
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations import _agno_members as members
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.processor import LoopGuardSpanProcessor

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class AgnoRunAborted(RunCancelledException, RunAborted):
    """The loop guard stopped an agent of Agno; `RunAborted` and a `RunCancelledException`."""

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        RunAborted.__init__(self, report, run_id)
        self.type = self.error_id = "run_cancelled_error"  # as `RunCancelledException` has them


@contextmanager
def _asking(request: Keywords) -> Generator[Keywords]:
    """Give what the model is to be asked, unless it is not to be asked any more."""
    try:
        INTEGRATION.ask()
        hint = INTEGRATION.hint()
        hints = [] if hint is None else [Message(role="user", content=hint)]
        yield {**request, "messages": [*request["messages"], *hints]} if hints else request
    except RunInterrupted as interrupted:
        members.note(interrupted, request.get("run_response"))
        raise
    except RunAborted as aborted:  # be it by the gate
        members.note(aborted, request.get("run_response"))
        raise AgnoRunAborted(aborted.report, aborted.run_id) from aborted


def _model_call(wrapped: Any, _model: object, args: Arguments, kwargs: Keywords) -> object:
    with _asking(kwargs) as request:
        return wrapped(*args, **request)


async def _awaited_call(wrapped: Any, _model: object, args: Arguments, kwargs: Keywords) -> object:
    with _asking(kwargs) as request:
        return await wrapped(*args, **request)


def _stream(wrapped: Any, _model: object, args: Arguments, kwargs: Keywords) -> Generator[object]:
    with _asking(kwargs) as request:
        yield from wrapped(*args, **request)


async def _awaited_stream(
    wrapped: Any, _model: object, args: Arguments, kwargs: Keywords
) -> AsyncGenerator[object]:
    with _asking(kwargs) as request:
        async for item in wrapped(*args, **request):
            yield item


def _tool_call(
    wrapped: Any, _model: object, _args: Arguments, kwargs: Keywords
) -> Generator[object]:
    """Yield what comes of a tool call, or of one in its place that is not made."""
    made, results = kwargs["function_call"], kwargs["function_call_results"]
    work = members.ToolWork()
    with INTEGRATION.calling(made.function.name, made.arguments, made.call_id) as call:
        try:
            if call.refusal is None:
                yield from members.each(wrapped(**kwargs), work)
        except members.STOPS:
            if work.refusal is None:
                raise
        refusal = call.refusal or work.refusal
        if refusal is not None:
            yield from wrapped(**{**kwargs, "function_call": members.blocked(made, refusal)})
        elif results and results[-1].tool_call_error:
            call.end(error=str(results[-1].content))
        elif results:
            call.result = results[-1].content


async def _awaited_tool_call(
    wrapped: Any, _model: object, args: Arguments, kwargs: Keywords
) -> object:
    made = (*args, *kwargs.values())[0]
    with INTEGRATION.calling(made.function.name, made.arguments, made.call_id) as call:
        if call.refusal is not None:
            return await wrapped(members.blocked(made, call.refusal))
        done = await wrapped(made)
        if made.error:
            call.end(error=made.error)
        elif isinstance(made.result, AsyncIterator):
            made.result = members.read(made.result)
        elif not isinstance(made.result, Iterator):
            call.result = getattr(made.result, "content", made.result)
        return done


def _models(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.Model, "_invoke_with_retry", _model_call)
    yield Entry(module.Model, "_ainvoke_with_retry", _awaited_call)
    yield Entry(module.Model, "_invoke_stream_with_retry", _stream)
    yield Entry(module.Model, "_ainvoke_stream_with_retry", _awaited_stream)
    yield Entry(module.Model, "run_function_call", _tool_call)
    yield Entry(module.Model, "arun_function_call", _awaited_tool_call)


INTEGRATION = Integration("Agno", {"agno.models.base": _models})


def install(guard: LoopGuardSpanProcessor) -> None:
    """Let Agno ask this guard before its calls."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Let Agno ask this guard no more."""
    INTEGRATION.uninstall(guard)

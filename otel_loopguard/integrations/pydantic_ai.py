"""Pydantic AI, stopped its own way.

`run`, `run_sync`, `run_stream`, `run_stream_events` and `iter` of agents, and those that a tool
calls, end in `Agent.iter`. It is wrapped: each run gets one more capability, `LoopGuardCapability`,
which asks before every model call and around every call of a function tool.

The caller of a stopped run gets a `PydanticAIRunAborted`, which is a `RunCancelled` as well: pass
its `all_messages()` as `message_history` to go on. A refused tool call is not made: Pydantic AI
tells the model that it has failed, and why, and the next model call is refused.

Not reached: native tools, which run elsewhere; output functions; model calls of realtime sessions.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any, ClassVar

from pydantic_ai import AgentRun, RunCancelled, RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.capabilities.abstract import WrapModelRequestHandler, WrapToolExecuteHandler
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from otel_loopguard.abort.aborted import RunAborted, abort_of
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.processor import LoopGuardSpanProcessor


class PydanticAIRunAborted(RunAborted, RunCancelled):
    """A `RunAborted` that is Pydantic AI's `RunCancelled` too, with the messages and the usage.

    `run_id` is the guard's, as in every `RunAborted`; Pydantic AI's stands on each of its messages.
    """

    run_id: str = ""

    def __init__(self, aborted: RunAborted, run: AgentRun[Any, Any]) -> None:
        messages = run.all_messages()
        RunCancelled.__init__(
            self,
            str(aborted),
            messages=messages,
            new_message_index=len(messages) - len(run.new_messages()),
            usage=run.usage,
            metadata=run.metadata,
            conversation_id=run.conversation_id,
        )
        self.report = aborted.report
        self.run_id = aborted.run_id  # pyright: ignore[reportIncompatibleMethodOverride] -- see above

    def __reduce__(self) -> tuple[Any, ...]:
        """Come out of a pickle as it went in; the run that it was made of cannot."""
        return PydanticAIRunAborted.__new__, (type(self), self.message), self.__dict__


class LoopGuardCapability(AbstractCapability[Any]):
    """Asks the guard before each model call and around each tool call of a run."""

    # It may join a run inside a durable workflow: it brings no tools and no operations of its own.
    _safe_at_runtime: ClassVar[bool] = True

    @override
    def get_ordering(self) -> CapabilityOrdering:
        """Ask before a span says that the call is made."""
        return CapabilityOrdering(position="outermost", wraps=[Instrumentation])

    @override
    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        """Make a model call, with the hint in this request only, or raise its refusal."""
        INTEGRATION.ask()
        hint = INTEGRATION.hint()
        if hint is None:
            return await handler(request_context)
        said = ModelRequest(parts=[UserPromptPart(hint)])
        return await handler(replace(request_context, messages=[*request_context.messages, said]))

    @override
    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Make a tool call, or let it fail with the reason."""
        with INTEGRATION.calling(call.tool_name, args, call.tool_call_id) as calling:
            if calling.refusal is not None:
                raise ToolFailed(str(calling.refusal))
            calling.result = await handler(args)
            return calling.result


def install(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard before the calls of every run from now on."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard no more; with the last one gone, put Pydantic AI back as it was."""
    INTEGRATION.uninstall(guard)


def _iter(
    wrapped: Wrapped, _agent: object, args: Any, kwargs: dict[str, Any]
) -> AbstractAsyncContextManager[AgentRun[Any, Any]]:
    capabilities = [*(kwargs.get("capabilities") or ()), LoopGuardCapability()]
    return _telling(wrapped(*args, **{**kwargs, "capabilities": capabilities}))


@asynccontextmanager
async def _telling(
    opened: AbstractAsyncContextManager[AgentRun[Any, Any]],
) -> AsyncGenerator[AgentRun[Any, Any]]:
    """Open a run, and say with its messages that it was stopped."""
    # Around the run: Pydantic AI makes another `RunCancelled` of each that reaches its edge.
    run: AgentRun[Any, Any] | None = None
    with INTEGRATION.run():
        try:
            async with opened as run:
                yield run
        except (RunAborted, RunCancelled) as error:
            aborted = abort_of(error)
            if run is None or aborted is None:
                raise
            raise PydanticAIRunAborted(aborted, run) from error


def _agent(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.Agent, "iter", _iter)


INTEGRATION = Integration("Pydantic AI", {"pydantic_ai.agent": _agent})

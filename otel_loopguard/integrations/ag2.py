"""AG2, stopped by a middleware of its own.

What is wrapped: the opening of an agent's turn, which every way to ask an agent comes by, so that
the middleware is there in each, within those of the agent. To have it in another place among them
pass `LoopGuardMiddleware` by hand: a call that is asked about twice is one call.

What the caller gets: `AG2RunAborted`, out of `ask` and out of a run's `result()`. It is AG2's own
`AG2Error`, and `RunAborted`. A subagent's goes to the agent above as the error of a tool, and that
agent's next model call is refused too.

How the history goes on: it is in `stream`, each tool call with its result:
`agent.ask(..., stream=aborted.stream)`.

What is not reached: realtime agents (`ag2.live`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from ag2.events import (
    BaseEvent,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolErrorEvent,
)
from ag2.exceptions import AG2Error
from ag2.middleware import BaseMiddleware

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.abort.patches import Entry
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.processor import LoopGuardSpanProcessor


class AG2RunAborted(AG2Error, RunAborted):  # noqa: N818 -- as `RunAborted`
    """The loop guard stopped an agent of AG2; both a `RunAborted` and an `AG2Error`."""

    def __init__(self, report: RunReport, run_id: str = "", stream: Any = None) -> None:
        RunAborted.__init__(self, report, run_id)
        self.stream = stream
        """The agent's stream, with its history so far."""


class LoopGuardMiddleware(BaseMiddleware):
    """Asks the loop guard before each call of an agent; give it to the agent as it is."""

    async def on_turn(self, call_next: Any, event: BaseEvent, context: Any) -> ModelResponse:
        """Let the agent have its turn, which is a run unless it is in one already."""
        try:
            with INTEGRATION.run():
                return await call_next(event, context)
        except AG2RunAborted:
            raise
        except RunAborted as aborted:  # be it by the span of a model call, or the gate behind it
            raise AG2RunAborted(aborted.report, aborted.run_id, context.stream) from aborted

    async def on_llm_call(
        self, call_next: Any, events: Sequence[BaseEvent], context: Any
    ) -> ModelResponse:
        """Ask the model, unless the run is to stop."""
        INTEGRATION.ask()
        hint = INTEGRATION.hint()
        hinted = events if hint is None else [*events, ModelRequest([TextInput(hint)])]
        return await call_next(hinted, context)

    async def on_tool_execution(self, call_next: Any, event: ToolCallEvent, context: Any) -> Any:
        """Make the call, unless it is to be blocked: then it has failed, and says why."""
        with INTEGRATION.calling(event.name, event.arguments, event.id) as call:
            if call.refusal is not None:
                return ToolErrorEvent.from_call(event, call.refusal)
            answer = await call_next(event, context)
            if isinstance(answer, ToolErrorEvent):
                call.end(error=answer.error)
            else:
                call.result = _said(answer)
            return answer


def _said(answer: Any) -> object:
    """Return what a tool has answered, without the events around it."""
    parts = getattr(getattr(answer, "result", None), "parts", ())
    said = [getattr(part, "content", getattr(part, "data", None)) for part in parts]
    return said[0] if len(said) == 1 else said


def _turn(wrapped: Any, _agent: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """Open a turn with the middleware in it."""
    given: Iterable[Any] = kwargs.get("additional_middleware", ())
    return wrapped(*args, **{**kwargs, "additional_middleware": (LoopGuardMiddleware, *given)})


def _agents(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.Agent, "_turn_scope", _turn)


INTEGRATION = Integration("AG2", {"ag2": _agents})


def install(guard: LoopGuardSpanProcessor) -> None:
    """Let AG2 ask this guard before its calls."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Let AG2 ask this guard no more."""
    INTEGRATION.uninstall(guard)

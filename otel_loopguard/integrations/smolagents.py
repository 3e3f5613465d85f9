"""smolagents: a stopped run ends with an exception that the steps let out.

Asked is at the start of each step (`ToolCallingAgent` and `CodeAgent`), before a plan is made, and
before the final answer that an agent gives at its `max_steps`; of managed agents too.

The caller gets `SmolagentsRunAborted`: an `AgentGenerationError`, the one kind of `AgentError` that
ends a run, any other is told to the model. `agent.memory` has every step that was made and one that
is empty: `agent.run(..., reset=False)` goes on from there.

Tool calls are seen in `Tool.__call__`, those that the code of a `CodeAgent` makes in this process
too. One that is refused is not made. A `ToolCallingAgent` gets the reason for an observation, so
that what other calls of the same step found is kept; the code of a `CodeAgent` gets an exception.
`final_answer` is never refused, for it ends the run.

Not reached: agents of an application's own class, which have steps of their own; what the code of a
`CodeAgent` does elsewhere (`executor_type`).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from smolagents import FinalAnswerTool, MultiStepAgent, Tool
from smolagents.models import ChatMessage, MessageRole
from smolagents.utils import AgentGenerationError, AgentToolExecutionError

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class SmolagentsRunAborted(RunAborted, AgentGenerationError):  # noqa: N818 -- as `RunAborted`
    """`RunAborted`, for code that catches the `AgentError` of smolagents too."""

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        Exception.__init__(self, report, run_id)  # that of `AgentError` wants a logger
        self.report = report
        self.run_id = run_id
        self.message = str(self)


class ToolCallRefused(Exception):  # noqa: N818 -- not an error of the tool: it was not called
    """A tool call that is not made; the text says why."""


def _step(
    wrapped: Wrapped, _agent: MultiStepAgent, args: Arguments, kwargs: Keywords
) -> Iterator[object]:
    INTEGRATION.ask(SmolagentsRunAborted)
    yield from wrapped(*args, **kwargs)


def _final_answer(
    wrapped: Wrapped, _agent: MultiStepAgent, args: Arguments, kwargs: Keywords
) -> object:
    INTEGRATION.ask(SmolagentsRunAborted)
    return wrapped(*args, **kwargs)


def _messages(
    wrapped: Wrapped, _agent: MultiStepAgent, args: Arguments, kwargs: Keywords
) -> list[ChatMessage]:
    messages: list[ChatMessage] = wrapped(*args, **kwargs)
    if args or kwargs or not (hint := INTEGRATION.hint()):
        return messages  # a summary, or nothing to say
    content = [{"type": "text", "text": hint}]
    return [*messages, ChatMessage(role=MessageRole.USER, content=content)]


def _run(wrapped: Wrapped, _agent: MultiStepAgent, args: Arguments, kwargs: Keywords) -> object:
    if kwargs.get("stream") or args[1:2] == (True,):
        return wrapped(*args, **kwargs)
    with INTEGRATION.run():  # the agent's span stays open if what is raised leaves it
        return wrapped(*args, **kwargs)


def _call(wrapped: Wrapped, tool: Tool, args: Arguments, kwargs: Keywords) -> object:
    if isinstance(tool, FinalAnswerTool):
        return wrapped(*args, **kwargs)
    named = {name: value for name, value in kwargs.items() if name != "sanitize_inputs_outputs"}
    with INTEGRATION.calling(tool.name, named or (args[0] if len(args) == 1 else args)) as call:
        if call.refusal is not None:
            raise ToolCallRefused(str(call.refusal))
        call.result = wrapped(*args, **kwargs)
        return call.result


def _execute_call(
    wrapped: Wrapped, _agent: MultiStepAgent, args: Arguments, kwargs: Keywords
) -> object:
    try:
        return wrapped(*args, **kwargs)
    except AgentToolExecutionError as error:
        # Raised on, it would lose what the step's other calls have found.
        if isinstance(error.__cause__, ToolCallRefused):
            return str(error.__cause__)
        raise


def _places(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.MultiStepAgent, "run", _run)
    yield Entry(module.ToolCallingAgent, "_step_stream", _step)
    yield Entry(module.CodeAgent, "_step_stream", _step)
    yield Entry(module.MultiStepAgent, "_generate_planning_step", _step)
    yield Entry(module.MultiStepAgent, "provide_final_answer", _final_answer)
    yield Entry(module.MultiStepAgent, "write_memory_to_messages", _messages)
    yield Entry(module.ToolCallingAgent, "execute_tool_call", _execute_call)
    yield Entry(module.Tool, "__call__", _call)


INTEGRATION = Integration(
    "smolagents",
    {"smolagents": _places},
    scopes=frozenset({"openinference.instrumentation.smolagents"}),
)
install = INTEGRATION.install
uninstall = INTEGRATION.uninstall

"""LlamaIndex's agents and `AgentWorkflow`s, which fail as at their own limit when a run is stopped.

Wrapped are two steps of both, `run_agent_step` and `call_tool`, which every kind of agent goes by:
`FunctionAgent`, `ReActAgent`, `CodeActAgent` and those of the application. A refused model call
raises `LlamaIndexRunAborted`, which is a `WorkflowRuntimeError` too, out of the handler that is
awaited; its events just end. Before that the agent puts what it has done into its memory.

A refused tool call is not made: its result says so, as that of a failed one. An agent that is
stopped inside a tool ends that tool in this way, as LlamaIndex does with every exception.

Not reached: a model that is asked in the tools or steps of the application, or for an agent's
structured output. The model gate stops those.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from types import ModuleType
from typing import Any

from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import WorkflowRuntimeError

from otel_loopguard.abort import RunAborted, guarded_run
from otel_loopguard.abort.aborted import Refused
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.slots import CURRENT

__all__ = ["LlamaIndexRunAborted", "install", "uninstall"]


class LlamaIndexRunAborted(RunAborted, WorkflowRuntimeError):  # noqa: N818 -- as `RunAborted`
    """The loop guard stopped the run: the workflow has failed as at the agent's own limit."""


def _run(wrapped: Wrapped, _workflow: Any, args: Any, kwargs: Any) -> Any:
    block = _INTEGRATION.run()
    if not isinstance(block, guarded_run):
        return wrapped(*args, **kwargs)
    outside = CURRENT.get()
    with ExitStack() as stack:
        stack.enter_context(block)
        handler = wrapped(*args, **kwargs)  # whose tasks have begun in the block
        task = getattr(handler, "_result_task", None)  # nothing else tells when they are over
        if task is not None:
            task.add_done_callback(partial(_over, stack.pop_all()))
    CURRENT.set(outside)
    return handler


def _over(block: ExitStack, _task: Any) -> None:
    with suppress(RunAborted):  # who awaits the handler gets it
        block.close()


async def _ask_model(wrapped: Wrapped, workflow: Any, args: Any, kwargs: Any) -> Any:
    context, event = _given(args, kwargs)
    agent = getattr(workflow, "agents", {}).get(event.current_agent_name, workflow)
    refusal = _INTEGRATION.refusal()
    if refusal is not None:
        with suppress(Exception):  # an agent of the application may do anything
            await _keep(context, agent)
        raise _ordinary(refusal)
    hint = _INTEGRATION.hint()
    if hint is not None:
        await _tell(context, event, agent, ChatMessage(role="user", content=hint))
    return await wrapped(*args, **kwargs)


def _ordinary(refusal: Refused) -> LlamaIndexRunAborted:
    # A workflow in whose steps something is raised that is no `Exception` never ends.
    aborted = refusal if isinstance(refusal, RunAborted) else refusal.aborted
    return LlamaIndexRunAborted(aborted.report, aborted.run_id)


async def _keep(context: Any, agent: Any) -> None:
    """Have the agent put what it has done into its memory, as at the end of a run."""
    memory = await context.store.get("memory", default=None)
    if memory is not None:
        nothing = ChatMessage(role="assistant", content="")
        await agent.finalize(
            context, AgentOutput(response=nothing, current_agent_name=agent.name), memory
        )


async def _tell(context: Any, event: Any, agent: Any, message: ChatMessage) -> None:
    """Put a message behind the last that the agent's model is to be asked with."""
    scratchpad = getattr(agent, "scratchpad_key", None)
    if scratchpad is None:
        event.input.append(message)
    else:
        before = await context.store.get(scratchpad, default=[])
        await context.store.set(scratchpad, [*before, message])


async def _call_tool(wrapped: Wrapped, _workflow: Any, args: Any, kwargs: Any) -> Any:
    context, event = _given(args, kwargs)
    with _INTEGRATION.calling(event.tool_name, event.tool_kwargs, event.tool_id) as calling:
        if calling.refusal is not None:
            return _blocked(context, event, calling.refusal)
        result = await wrapped(*args, **kwargs)
        if result.tool_output.is_error:
            calling.end(error=result.tool_output.content)
        calling.result = result.tool_output.content
        return result


def _blocked(context: Any, event: Any, refusal: Refused) -> ToolCallResult:
    given = {"tool_name": event.tool_name, "tool_kwargs": event.tool_kwargs}
    output = ToolOutput(
        content=str(refusal),
        tool_name=event.tool_name,
        raw_input=event.tool_kwargs,
        raw_output=None,
        is_error=True,
    )
    result = ToolCallResult(**given, tool_id=event.tool_id, tool_output=output, return_direct=False)
    context.write_event_to_stream(result)
    return result


def _given(args: Any, kwargs: Any) -> Any:
    """Return the context and the event that a step is called with."""
    given = {**dict(zip(("ctx", "ev"), args, strict=False)), **kwargs}
    return given["ctx"], given["ev"]


def _steps(name: str, module: ModuleType) -> Iterator[Entry]:
    owner = getattr(module, name)
    yield Entry(owner, "run", _run)
    yield Entry(owner, "run_agent_step", _ask_model)
    yield Entry(owner, "call_tool", _call_tool)


_INTEGRATION = Integration(
    "LlamaIndex",
    {
        "llama_index.core.agent.workflow.base_agent": partial(_steps, "BaseWorkflowAgent"),
        "llama_index.core.agent.workflow.multi_agent_workflow": partial(_steps, "AgentWorkflow"),
    },
)

install = _INTEGRATION.install
uninstall = _INTEGRATION.uninstall

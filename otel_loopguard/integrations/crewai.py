"""CrewAI, stopped by its own hooks: those before a model call, and before and after a tool call.

What is wrapped: nothing. The hooks are registered for the whole process, as CrewAI's own
`@before_llm_call` does it, and let every call pass while no guard is there. They see the calls of
crews, of single agents, of coworkers that work is delegated to, and of `LLM.call` itself, whether
blocking, awaited or streamed.

What the caller gets: `CrewAIRunAborted`, out of `kickoff` and its like. It is CrewAI's own
`HookAborted`, after which no task and no call is tried again, and `RunAborted`.

How the history goes on: it is in `messages`, each tool call with its result. Give it to an agent:
`agent.kickoff([*aborted.messages, {"role": "user", "content": ...}])`.

What is not reached: the agent's executor takes the hooks when it is made, so the model calls of one
that has worked before the guard was installed are stopped by the gate. CrewAI tells a hook no id of
a tool call.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from crewai import hooks
from crewai.hooks import HookAborted

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration, ToolCalling
from otel_loopguard.processor import LoopGuardSpanProcessor

_CALLS = 1_000
"""Calls between their two hooks that are kept; some never come to the second."""


class CrewAIRunAborted(HookAborted, RunAborted):
    """The loop guard stopped a crew or an agent; both a `RunAborted` and a `HookAborted`."""

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        RunAborted.__init__(self, report, run_id)
        self.reason = str(self)
        self.source = "otel_loopguard"
        self.messages: list[dict[str, Any]] = []
        """The conversation so far, of the agent whose model was not asked any more."""


def _before_model(context: Any) -> None:
    refusal = INTEGRATION.refusal()
    if isinstance(refusal, RunAborted):
        aborted = CrewAIRunAborted(refusal.report, refusal.run_id)
        # An agent that goes on with them says by itself what it is.
        aborted.messages = [each for each in context.messages if each.get("role") != "system"]
        raise aborted
    if refusal is not None:
        raise refusal
    hint = INTEGRATION.hint()
    if hint is not None:
        context.messages.append({"role": "user", "content": hint})


def _before_tool(context: Any) -> None:
    call = INTEGRATION.calling(context.tool_name, context.tool_input)
    call.begin()
    _calls.add(context.tool_input, call)
    if call.refusal is not None:
        raise HookAborted(str(call.refusal), "otel_loopguard")


def _after_tool(context: Any) -> str | None:
    call = _calls.pop(context.tool_input)
    if call is None:
        return None
    if call.refusal is not None:
        call.end()
        # In place of CrewAI's own sentence, which says no more than that a hook has done it.
        return str(call.refusal)
    call.end(result=context.raw_tool_result)  # of an exception: a text that says so
    return None


class _Calls:
    """The calls that are being made, by their arguments: both hooks are handed the same object."""

    def __init__(self) -> None:
        self._found: OrderedDict[int, tuple[object, ToolCalling]] = OrderedDict()

    def add(self, arguments: object, call: ToolCalling) -> None:
        self._found[id(arguments)] = (arguments, call)  # held, so that its id stays its own
        while len(self._found) > _CALLS:
            self._found.popitem(last=False)

    def pop(self, arguments: object) -> ToolCalling | None:
        return self._found.pop(id(arguments), (None, None))[1]


_calls = _Calls()


INTEGRATION = Integration("CrewAI")

_HOOKS = (
    (
        hooks.get_before_llm_call_hooks,
        hooks.register_before_llm_call_hook,
        hooks.unregister_before_llm_call_hook,
        _before_model,
    ),
    (
        hooks.get_before_tool_call_hooks,
        hooks.register_before_tool_call_hook,
        hooks.unregister_before_tool_call_hook,
        _before_tool,
    ),
    (
        hooks.get_after_tool_call_hooks,
        hooks.register_after_tool_call_hook,
        hooks.unregister_after_tool_call_hook,
        _after_tool,
    ),
)


def install(guard: LoopGuardSpanProcessor) -> None:
    """Let CrewAI ask this guard before its calls."""
    guard.checkpoints.when_closed(_withdraw, _withdraw)  # after what `INTEGRATION` has called
    INTEGRATION.install(guard)
    for registered, register, _, hook in _HOOKS:
        if hook not in registered():
            register(hook)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Let CrewAI ask this guard no more."""
    INTEGRATION.uninstall(guard)
    guard.checkpoints.when_closed(_withdraw, None)
    _withdraw()


def _withdraw() -> None:
    """Take the hooks back if there is no guard that they could ask."""
    if not INTEGRATION.is_active:
        for _, _, unregister, hook in _HOOKS:
            unregister(hook)

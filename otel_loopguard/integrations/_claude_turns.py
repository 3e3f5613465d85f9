"""What the CLI of the Claude Agent SDK asks its hooks, and what the guard answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKError, HookMatcher

from otel_loopguard.abort.aborted import Refused, RunAborted
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration, ToolCalling

Answer = dict[str, Any]
"""What a hook says to the CLI."""

BEFORE_MODEL = ("UserPromptSubmit", "SubagentStart", "PostToolBatch")
"""What the CLI tells of right before it asks the model."""
EVENTS = (*BEFORE_MODEL, "PreToolUse", "PostToolUse", "PostToolUseFailure")
"""What it is to tell of."""


class ClaudeRunAborted(RunAborted, ClaudeSDKError):  # noqa: N818 -- as `RunAborted`
    """`RunAborted`, for code that catches the `ClaudeSDKError` of the SDK too."""

    def __init__(self, report: RunReport, run_id: str = "", session_id: str = "") -> None:
        super().__init__(report, run_id)
        self.args = (report, run_id, session_id)
        self.session_id = session_id
        """The session that goes on with `ClaudeAgentOptions(resume=...)`."""


class Turns:
    """The turns of one CLI, each of which is a run unless there is one around it."""

    def __init__(self, integration: Integration) -> None:
        self._integration = integration
        self._context = copy_context()
        self._block: AbstractContextManager[object] | None = None
        self._calls: dict[str, tuple[Context, ToolCalling]] = {}
        self._asking: ToolCalling | None = None
        self._refusal: Refused | None = None

    def options(self, options: ClaudeAgentOptions | None) -> ClaudeAgentOptions:
        """Return these options with our hooks before theirs: spans that those make come after."""
        given = ClaudeAgentOptions() if options is None else options
        hooks: dict[Any, list[HookMatcher]] = dict(given.hooks or {})
        ours = {each: [HookMatcher(hooks=[self._heard]), *hooks.get(each, ())] for each in EVENTS}
        return dataclasses.replace(given, hooks={**hooks, **ours})

    def look(self) -> None:
        """Take note of where the calling code is, which sends a prompt or waits for an answer."""
        if self._block is None:
            self._context = copy_context()

    def over(self) -> None:
        """End the turn."""
        self._context.run(self._answered)
        block, self._block = self._block, None
        self._calls.clear()
        if block is not None:
            self._context.run(block.__exit__, None, None, None)

    def stop(self, session_id: str) -> BaseException | None:
        """Return what the caller of a turn that was stopped gets; `None` if it was not."""
        refusal, self._refusal = self._refusal, None
        if isinstance(refusal, RunAborted):
            return ClaudeRunAborted(refusal.report, refusal.run_id, session_id)
        return refusal

    async def _heard(
        self, told: Mapping[str, Any], _call_id: str | None, _context: object
    ) -> Answer:
        if self._block is None:
            self._block = self._context.run(self._integration.run)
            self._context.run(self._block.__enter__)
        event, call_id = told["hook_event_name"], told.get("tool_use_id", "")
        if event in BEFORE_MODEL:
            return self._context.run(self._ask, event)
        self._context.run(self._answered)
        if event == "PreToolUse":
            return self._begin(told["tool_name"], told["tool_input"], call_id)
        context, call = self._calls.pop(call_id, (None, None))
        if context is not None and call is not None:
            context.run(call.end, told.get("tool_response"), told.get("error"))
        return {}

    def _ask(self, event: str) -> Answer:
        self._answered()
        self._asking = self._integration.asking().begin()
        self._refusal = self._asking.refusal
        if self._refusal is not None:
            return {"continue_": False, "stopReason": str(self._refusal)}
        if hint := self._integration.hint():
            return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": hint}}
        return {}

    def _answered(self) -> None:
        """Take note that the model has answered, as it must have to go on."""
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.end()

    def _begin(self, name: str, arguments: object, call_id: str) -> Answer:
        # In a context of its own, for calls come back in any order.
        context, call = self._context.copy(), self._integration.calling(name, arguments, call_id)
        context.run(call.begin)
        if call.refusal is None:
            self._calls[call_id] = context, call
            return {}
        context.run(call.end)
        denied = {"permissionDecision": "deny", "permissionDecisionReason": str(call.refusal)}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}

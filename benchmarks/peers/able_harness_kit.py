"""able-harness-kit: a middleware of LangChain's, called as LangChain calls it.

The request and the tool's message are LangChain's own and would be there without it: not timed.
"""

from __future__ import annotations

from able_harness_kit import LoopGuardMiddleware, ProgressAwareLoopGuardMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from benchmarks.peers._adapter import Call, Contender, Verdict


def messages_of(call: Call) -> tuple[ToolCallRequest, ToolMessage]:
    tool_call = {"name": call.tool, "args": call.arguments, "id": "call_1", "type": "tool_call"}
    message = ToolMessage(
        content=call.result,
        name=call.tool,
        tool_call_id="call_1",
        status="error" if call.failed else "success",
    )
    return ToolCallRequest(tool_call=tool_call, tool=None, state={}, runtime=None), message


class Run:
    """A middleware that answers in the tool's place has stopped it."""

    def __init__(self, middleware: LoopGuardMiddleware | ProgressAwareLoopGuardMiddleware) -> None:
        self._ask = middleware.wrap_tool_call

    def judge(self, messages: tuple[ToolCallRequest, ToolMessage]) -> Verdict:
        request, message = messages
        answer = self._ask(request, lambda _: message)
        return "go" if answer is message else "stop"


CONTENDERS = (
    Contender(
        name="able-harness-kit",
        options="ProgressAwareLoopGuardMiddleware()",
        start=lambda: Run(ProgressAwareLoopGuardMiddleware()).judge,
        prepare=messages_of,
    ),
    Contender(
        name="able-harness-kit",
        options="LoopGuardMiddleware()",
        start=lambda: Run(LoopGuardMiddleware()).judge,
        prepare=messages_of,
        timed=False,
    ),
)

"""The guard as a middleware of one LangChain agent, for those who attach it by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware

from otel_loopguard.integrations._integration import Integration
from otel_loopguard.integrations._langchain import answering, ask, with_hint

if TYPE_CHECKING:
    from otel_loopguard.processor import LoopGuardSpanProcessor


class LoopGuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Has one agent ask the guard before its model and tool calls.

        create_agent(model, tools, middleware=[LoopGuardMiddleware(guard)])

    What a refused call comes to is what it comes to by `install(guard)`; agents below this one have
    a middleware of their own or are not asked about. Last in the list, it asks before each attempt.
    """

    def __init__(self, guard: LoopGuardSpanProcessor) -> None:
        super().__init__()
        self._integration = Integration("LangChain")
        self._integration.install(guard)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Ask the guard, and then the model."""
        return handler(self._asked(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `wrap_model_call`."""
        return await handler(self._asked(request))

    def _asked(self, request: Any) -> Any:
        ask(self._integration, request.messages)
        messages = with_hint(self._integration, request.messages)
        return request if messages is request.messages else request.override(messages=messages)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Make the call if the guard lets it, and tell it what the call has come to."""
        with answering(self._integration, request.tool_call) as answer:
            if answer.given is None:
                answer.given = handler(request)
        return answer.given

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `wrap_tool_call`."""
        with answering(self._integration, request.tool_call) as answer:
            if answer.given is None:
                answer.given = await handler(request)
        return answer.given

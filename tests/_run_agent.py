"""Runs of the reference loop in both ways: with ordinary functions, and with coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from otel_loopguard import AgentResult, ModelTurn, Tool, ToolCall, TurnRequest
from otel_loopguard import run_agent as run_sync
from otel_loopguard import run_agent_async as run_async

Play: TypeAlias = Callable[..., AgentResult]
"""Runs a model and tools, all of them ordinary functions, in one of the two ways."""

HELLO = "How is the weather in Paris?"
DONE = ModelTurn(text="It rains.", finish_reason="stop", input_tokens=10, output_tokens=5)


def call(name: str = "search", call_id: str | None = None, **arguments: object) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, call_id=call_id)


def asks(*calls: ToolCall, tokens: tuple[int, int] = (10, 5)) -> ModelTurn:
    return ModelTurn(
        calls=calls, finish_reason="tool_calls", input_tokens=tokens[0], output_tokens=tokens[1]
    )


class Script:
    """A model that plays turns, raises the exceptions among them, and keeps what it was asked."""

    def __init__(self, *turns: ModelTurn | Exception | Callable[[], ModelTurn]) -> None:
        self._turns = turns
        self.requests: list[TurnRequest] = []

    @property
    def calls(self) -> int:
        return len(self.requests)

    def __call__(self, request: TurnRequest) -> ModelTurn:
        self.requests.append(request)
        turn = self._turns[len(self.requests) - 1]  # more than there are is a failure of its own
        if isinstance(turn, Exception):
            raise turn
        return turn if isinstance(turn, ModelTurn) else turn()


class Endless:
    """A model that never finishes, with arguments that are new each time."""

    def __init__(self, *names: str, tokens: tuple[int, int] = (10, 5)) -> None:
        self._names = names or ("search",)
        self._tokens = tokens
        self.calls = 0

    def __call__(self, _: TurnRequest) -> ModelTurn:
        self.calls += 1
        return asks(
            *(call(name, f"{name}-{self.calls}", page=self.calls) for name in self._names),
            tokens=self._tokens,
        )


class Recorded:
    """A tool that keeps what it was called with, and returns or raises what is asked for."""

    def __init__(self, *returns: object, then: Callable[[], object] = lambda: None) -> None:
        self._returns = returns
        self._then = then
        self.executions: list[dict[str, object]] = []

    def __call__(self, **arguments: object) -> object:
        self.executions.append(arguments)
        self._then()
        number = len(self.executions)
        returned = self._returns[number - 1] if number <= len(self._returns) else f"page {number}"
        if isinstance(returned, BaseException):
            raise returned
        return returned


class Clock:
    """Seconds that pass only when somebody says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


def play_sync(
    model: Callable[[TurnRequest], ModelTurn], tools: Sequence[Tool] = (), **options: Any
) -> AgentResult:
    return run_sync(model, options.pop("prompt", HELLO), tools, **options)


def play_async(
    model: Callable[[TurnRequest], ModelTurn], tools: Sequence[Tool] = (), **options: Any
) -> AgentResult:
    async def ask(request: TurnRequest) -> ModelTurn:
        await asyncio.sleep(0)
        return model(request)

    prompt = options.pop("prompt", HELLO)
    return asyncio.run(run_async(ask, prompt, [*map(awaited, tools)], **options))


def awaited(tool: Tool) -> Tool:
    """Return the same tool as one that is awaited."""

    async def later(**arguments: object) -> object:
        await asyncio.sleep(0)
        return tool.call(**arguments)

    return msgspec.structs.replace(tool, call=later)


PLAYS: dict[str, Play] = {"sync": play_sync, "async": play_async}


def roles(result: AgentResult) -> str:
    """Return the conversation in short: u, a, t and f for a tool's answer that is a failure."""
    return "".join("f" if each.failed else each.role[0] for each in result.history)


def answers(result: AgentResult) -> dict[str, str]:
    """Return what each call was answered with."""
    return {each.call_id: each.text for each in result.history if each.role == "tool"}

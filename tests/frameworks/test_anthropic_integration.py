"""The contract on the integration of the `anthropic` client: tool runners, and a loop that asks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any

from anthropic import Anthropic, beta_async_tool, beta_tool
from anthropic.types import MessageParam

from otel_loopguard import guarded_run
from otel_loopguard.integrations import anthropic as module
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job, Tool
from tests.frameworks._integrated import AsyncTalk, Integrated, Talk
from tests.frameworks._plain_loop import TooManyTurnsError, carried_out
from tests.frameworks.test_anthropic_client import (
    ANSWER_TOKENS,
    async_client,
    calls_of,
    client,
    instrument,
    schema,
    text_of,
)

# A thread is a history that the server keeps; the scripted one plays none.
NO_THREAD: dict[str, Any] = (
    {"thread": False}
    if "thread" in inspect.signature(Anthropic(api_key="none").beta.messages.tool_runner).parameters
    else {}
)


def awaited(tool: Tool) -> Callable[..., Any]:
    """Return a coroutine function that does the same."""

    @wraps(tool)
    async def called(query: str) -> str:
        result = tool(query)
        return await result if inspect.isawaitable(result) else result

    return called


class Runner:
    """What was said so far, as a tool runner tells it."""

    def __init__(self, *, is_streamed: bool = False) -> None:
        self._history: list[Any] = []
        self._is_streamed = is_streamed

    def _asked(self, job: Job, tools: Sequence[object]) -> dict[str, Any]:
        return {
            "model": job.script,
            "max_tokens": ANSWER_TOKENS,
            "messages": [*self._history, {"role": "user", "content": job.prompt}],
            "tools": tools,
            "stream": self._is_streamed,
            "max_iterations": CAP,
            **NO_THREAD,
        }

    def _keep(self, runner: Any) -> None:
        self._history = []

        def kept(params: Any) -> Any:
            self._history += params["messages"]
            return params

        runner.set_messages_params(kept)


class Waiting(Runner):
    def ask(self, job: Job) -> str:
        with client(job) as asked:
            messages: Any = asked.beta.messages
            tools = [beta_tool(tool) for tool in job.tools]
            runner = messages.tool_runner(**self._asked(job, tools))
            try:
                return text_of(runner.until_done())
            finally:
                self._keep(runner)


class Awaited(Runner):
    async def ask(self, job: Job) -> str:
        async with async_client(job) as asked:
            messages: Any = asked.beta.messages
            tools = [beta_async_tool(awaited(tool)) for tool in job.tools]
            runner = messages.tool_runner(**self._asked(job, tools))
            try:
                return text_of(await runner.until_done())
            finally:
                self._keep(runner)


class Loop:
    """A hand-written one that stops at once where a call is refused, in the middle of a turn."""

    def __init__(self) -> None:
        self._history: list[Any] = []

    def ask(self, job: Job) -> str:
        said: MessageParam = {"role": "user", "content": job.prompt}
        self._history = [*module.answered(self._history), said]
        with client(job) as asked, guarded_run():
            for _ in range(CAP):
                hint = module.hint()
                told: list[MessageParam] = [{"role": "user", "content": hint or ""}]
                turn = asked.messages.create(
                    model=job.script,
                    max_tokens=ANSWER_TOKENS,
                    messages=[*self._history, *(told if hint else ())],
                    tools=[schema(tool) for tool in job.tools],
                )
                self._history.append({"role": "assistant", "content": turn.content})
                calls = calls_of(turn)
                if not calls:
                    return text_of(turn)
                results: list[dict[str, object]] = []
                self._history.append({"role": "user", "content": results})
                for call in calls:
                    with module.calling(call.name, call.arguments, call.id) as making:
                        if making.refusal is not None:
                            raise making.refusal
                        [making.result] = carried_out([call], job.tools)
                    done = {"type": "tool_result", "tool_use_id": call.id}
                    results.append({**done, "content": making.result})
        raise TooManyTurnsError


@contextmanager
def blocking(kind: Callable[[], Any]) -> Talk:
    yield kind()


@asynccontextmanager
async def awaiting(kind: Callable[[], Any]) -> AsyncTalk:
    yield kind()


EXAMPLE = Path(__file__).parents[2] / "examples" / "integrations" / "anthropic_tool_runner.py"

INTEGRATED = Integrated(
    title="the `anthropic` client",
    module=module,
    instrument=instrument,
    blocking={
        "loop": partial(blocking, Loop),
        "sync": partial(blocking, Waiting),
        "stream": partial(blocking, partial(Waiting, is_streamed=True)),
        "parallel loop": partial(blocking, Loop),
        "parallel sync": partial(blocking, Waiting),
    },
    awaited={
        "async": partial(awaiting, Awaited),
        "async-stream": partial(awaiting, partial(Awaited, is_streamed=True)),
        "parallel async": partial(awaiting, Awaited),
    },
    packages=("anthropic", "openinference-instrumentation-anthropic"),
    example=EXAMPLE if NO_THREAD else None,
)

__all__ = ["INTEGRATED", "TestIntegration"]

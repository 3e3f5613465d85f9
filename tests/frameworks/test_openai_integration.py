"""The contract on hand-written loops over the `openai` client that ask before their tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI
from openai.types.responses import FunctionToolParam

from otel_loopguard import guarded_run
from otel_loopguard.integrations import openai as module
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job, Tool
from tests.frameworks._integrated import AsyncTalk, Integrated, Talk
from tests.frameworks._openai_loop import genai, schema
from tests.frameworks._plain_loop import TooManyTurnsError


def flat_schema(tool: Tool) -> FunctionToolParam:
    """Return what Responses are told of a tool."""
    function = schema(tool)["function"]
    return {
        "type": "function",
        "name": function["name"],
        "parameters": function.get("parameters"),
        "strict": False,
    }


class Loop:
    """A loop that stops at once where a call is refused, between the calls of one turn too."""

    def __init__(self) -> None:
        self._history: list[Any] = []

    def _begin(self, job: Job) -> None:
        """Go on with what was said, whatever calls have been left without an answer."""
        said = {"role": "user", "content": job.prompt}
        self._history = [*module.answered(self._history), said]

    def _sent(self) -> list[Any]:
        hint = module.hint()
        said = [] if hint is None else [{"role": "user", "content": hint}]
        return [*self._history, *said]


def called(job: Job, name: str, arguments: str) -> Any:
    tools: Mapping[str, Tool] = {tool.__name__: tool for tool in job.tools}
    return tools[name](**json.loads(arguments))


class Chatting(Loop):
    """Over Chat Completions."""

    def ask(self, job: Job) -> str:
        self._begin(job)
        with OpenAI(base_url=job.url, api_key="none") as client, guarded_run():
            for _ in range(CAP):
                completion = client.chat.completions.create(
                    model=job.script,
                    messages=self._sent(),
                    tools=[schema(tool) for tool in job.tools],
                )
                turn = completion.choices[0].message
                self._history.append(turn)
                for call in turn.tool_calls or ():
                    assert call.type == "function"
                    name, arguments = call.function.name, call.function.arguments
                    with module.calling(name, arguments, call.id) as asked:
                        if asked.refusal is not None:
                            raise asked.refusal
                        asked.result = called(job, name, arguments)
                    result = {"role": "tool", "tool_call_id": call.id, "content": asked.result}
                    self._history.append(result)
                if not turn.tool_calls:
                    return turn.content or ""
        raise TooManyTurnsError


class Responding(Loop):
    """Over Responses, in one piece or streamed."""

    def __init__(self, *, is_streamed: bool) -> None:
        super().__init__()
        self._is_streamed = is_streamed

    async def ask(self, job: Job) -> str:
        self._begin(job)
        async with AsyncOpenAI(base_url=job.url, api_key="none") as client, guarded_run():
            for _ in range(CAP):
                turn = await self._turn(job, client)
                self._history += turn.output
                calls = [item for item in turn.output if item.type == "function_call"]
                for call in calls:
                    with module.calling(call.name, call.arguments, call.call_id) as asked:
                        if asked.refusal is not None:
                            raise asked.refusal
                        result = called(job, call.name, call.arguments)
                        asked.result = await result if isawaitable(result) else result
                    done = {"type": "function_call_output", "call_id": call.call_id}
                    self._history.append({**done, "output": asked.result})
                if not calls:
                    return turn.output_text
        raise TooManyTurnsError

    async def _turn(self, job: Job, client: AsyncOpenAI) -> Any:
        tools = [flat_schema(tool) for tool in job.tools]
        if not self._is_streamed:
            return await client.responses.create(model=job.script, input=self._sent(), tools=tools)
        answer: Any = None
        async for event in await client.responses.create(
            model=job.script, input=self._sent(), tools=tools, stream=True
        ):
            answer = event.response if event.type == "response.completed" else answer
        return answer


@contextmanager
def chats() -> Talk:
    yield Chatting()


@asynccontextmanager
async def responses(*, is_streamed: bool) -> AsyncTalk:
    yield Responding(is_streamed=is_streamed)


INTEGRATED = Integrated(
    title="a loop over the `openai` client",
    module=module,
    instrument=genai,
    blocking={"sync": chats, "parallel sync": chats},
    awaited={
        "async": partial(responses, is_streamed=False),
        "stream": partial(responses, is_streamed=True),
        "parallel async": partial(responses, is_streamed=False),
        "parallel stream": partial(responses, is_streamed=True),
    },
    packages=("openai", "opentelemetry-instrumentation-genai-openai"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "openai_loop.py",
)

__all__ = ["INTEGRATED", "TestIntegration"]

"""The integration of DSPy: `ReActV2` with a model that calls functions, by OpenInference."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import dspy
from dspy.predict import ReActV2
from openinference.instrumentation.dspy import DSPyInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.integrations import dspy as integration
from tests.frameworks._contract_integration import TestIntegration
from tests.frameworks._framework import CAP, Job
from tests.frameworks._integrated import (
    AsyncConversation,
    AsyncTalk,
    Conversation,
    Integrated,
    Talk,
)
from tests.frameworks._openinference import openinference

# Else it asks a public address what models there are.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"


class Model(dspy.LM):
    """A model of which DSPy does not know that it calls functions."""

    @property
    def supports_function_calling(self) -> bool:
        return True


class PlainAnswers(dspy.ChatAdapter):
    """Takes a text for the answer, as agents of other frameworks do."""

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:  # noqa: ARG002 -- theirs
        call = {"name": "submit", "args": {"answer": completion}}
        calls = dspy.ToolCalls.from_dict_list([call])
        return {"tool_calls": calls, "next_thought": None}


ADAPTER = PlainAnswers(use_native_function_calling=True)

Made: TypeAlias = Callable[[Job], Any]
"""Makes the program of a job."""


def instrument(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    return openinference(DSPyInstrumentor(), provider=provider, content=content)


def surroundings(job: Job) -> AbstractContextManager[Any]:
    model = Model(f"openai/{job.script}", api_base=job.url, api_key="none", cache=False)
    return dspy.context(lm=model, adapter=ADAPTER)


def program(tools: Any) -> Any:
    return ReActV2("question -> answer", tools=[*tools], max_iters=CAP)


def single(job: Job) -> Any:
    return program(job.tools)


def nested(job: Job) -> Any:
    def delegate(query: str) -> str:
        """Have another program look something up."""
        return str(single(job)(question=query).answer)

    return program([delegate, *job.tools[1:]])


def awaiting(job: Job) -> Any:
    async def delegate(query: str) -> str:
        """Have another program look something up."""
        return str((await single(job).acall(question=query)).answer)

    return program([delegate, *job.tools[1:]])


class Blocking(NamedTuple):
    made: Made
    history: dspy.History

    def ask(self, job: Job) -> str:
        with surroundings(job):
            return str(self.made(job)(question=job.prompt, history=self.history).answer)


class Awaited(NamedTuple):
    made: Made
    history: dspy.History

    async def ask(self, job: Job) -> str:
        with surroundings(job):
            said = await self.made(job).acall(question=job.prompt, history=self.history)
        return str(said.answer)


class Streamed(NamedTuple):
    made: Made
    history: dspy.History

    async def ask(self, job: Job) -> str:
        with surroundings(job):
            streamed: Any = dspy.streamify(self.made(job), is_async_program=True)
            parts = streamed(question=job.prompt, history=self.history)
            predictions = [each async for each in parts if isinstance(each, dspy.Prediction)]
        return str(predictions[-1].answer)


def blocking(made: Made) -> Callable[[], AbstractContextManager[Conversation]]:
    @contextmanager
    def opened() -> Talk:
        yield Blocking(made, dspy.History(messages=[]))

    return opened


def awaited(
    kind: Callable[[Made, dspy.History], AsyncConversation], made: Made
) -> Callable[[], AbstractAsyncContextManager[AsyncConversation]]:
    @asynccontextmanager
    async def opened() -> AsyncTalk:
        yield kind(made, dspy.History(messages=[]))

    return opened


INTEGRATED = Integrated(
    title="DSPy",
    module=integration,
    instrument=instrument,
    blocking={
        "sync": blocking(single),
        "parallel sync": blocking(single),
        "nested sync": blocking(nested),
    },
    awaited={
        "async": awaited(Awaited, single),
        "stream": awaited(Streamed, single),
        "parallel async": awaited(Awaited, single),
        "nested async": awaited(Awaited, awaiting),
    },
    packages=("dspy", "openinference-instrumentation-dspy"),
    example=Path(__file__).parents[2] / "examples" / "integrations" / "dspy_agent.py",
)

__all__ = ["INTEGRATED", "TestIntegration"]

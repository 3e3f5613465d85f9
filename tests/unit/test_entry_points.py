"""Entry points of frameworks that somebody else has wrapped, or that give what is no generator.

The frameworks themselves are tried in `tests/frameworks`; here are methods where theirs would be.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from functools import wraps
from types import ModuleType
from typing import Any

import pytest

from otel_loopguard import Policy, RunAborted, guarded_run
from tests._tracing import Traced

ALLOWED = 2
LIMIT = Policy.none().with_limits(max_llm_calls=ALLOWED)


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function as tracers and patches do that do not look at its kind."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


class Items:
    """An asynchronous iterator that is no generator: each item is a turn of an agent."""

    def __init__(self, process: Traced) -> None:
        self._process = process
        self._left = ALLOWED + 1
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        if self._left == 0:
            raise StopAsyncIteration
        self._process.turn()
        self._left -= 1
        return self._left


class ClosingItems(Items):
    """One that wants to be closed."""

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def frameworks(process: Traced, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return classes whose methods are agents that make one turn more than is allowed."""

    class Begun:
        @wrapped
        def kickoff(self) -> None:
            process.turn(ALLOWED + 1)

        @wrapped
        async def akickoff(self) -> None:
            for _ in range(ALLOWED + 1):
                await asyncio.sleep(0)
                process.turn()

        kickoff_async = akickoff

        @wrapped
        async def run_stream(self) -> AsyncIterator[int]:
            for turn in range(ALLOWED + 1):
                process.turn()
                yield turn

    class Crew(Begun):
        kickoff, akickoff = Begun.kickoff, Begun.akickoff

    class Agent(Begun):
        kickoff, kickoff_async = Begun.kickoff, Begun.kickoff_async

    class BaseGroupChat(Begun):
        run_stream = Begun.run_stream

    class Module(ModuleType):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.Crew, self.Agent, self.BaseGroupChat = Crew, Agent, BaseGroupChat
            monkeypatch.setitem(sys.modules, name, self)

    Module("crewai")
    return Module("autogen_agentchat.teams")


async def all_of(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


WAYS: dict[str, Callable[[Any], object]] = {
    "Crew.kickoff": lambda package: package.Crew().kickoff(),
    "Crew.akickoff": lambda package: asyncio.run(package.Crew().akickoff()),
    "Agent.kickoff_async": lambda package: asyncio.run(package.Agent().kickoff_async()),
    "run_stream": lambda package: asyncio.run(all_of(package.BaseGroupChat().run_stream())),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_that_somebody_has_wrapped_is_a_run_for_as_long_as_it_works(
    process: Traced, frameworks: Any, way: str
) -> None:
    process.guard(LIMIT, mode="enforce")
    for _ in range(2):
        with pytest.raises(RunAborted) as raised:
            WAYS[way](frameworks)
        assert raised.value.report.model_calls == ALLOWED

    assert process.total("loopguard.runs") == 2


@pytest.mark.parametrize("items", [Items, ClosingItems])
@pytest.mark.parametrize("around", [False, True], ids=["alone", "in-a-block"])
def test_a_stream_that_is_no_generator_is_one_run(
    process: Traced, frameworks: Any, items: type[Items], *, around: bool
) -> None:
    made: list[Items] = []

    def run_stream(_team: object) -> Items:
        made.append(items(process))
        return made[-1]

    frameworks.BaseGroupChat.run_stream = run_stream
    process.guard(LIMIT, mode="observe")

    async def main() -> list[int]:
        if not around:
            return await all_of(frameworks.BaseGroupChat().run_stream())
        async with guarded_run():
            return await all_of(frameworks.BaseGroupChat().run_stream())

    assert asyncio.run(main()) == [2, 1, 0]
    assert [each.closed for each in made] == [int(items is ClosingItems)]
    assert process.total("loopguard.runs") == 1

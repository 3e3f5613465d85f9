"""A runaway, and a healthy run that lasts until the runaway is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from tests.frameworks._framework import Tool
from tests.frameworks._workbench import Recorder

WAIT_S = 20
"""Seconds that the healthy run waits for the runaway beside it to be stopped."""

_Outcome_co = TypeVar("_Outcome_co", covariant=True)
_Outcome = TypeVar("_Outcome")


class Healthy(Protocol[_Outcome_co]):
    """Plays the healthy run, with these tools."""

    def __call__(self, *, tools: tuple[Tool, Tool]) -> _Outcome_co:
        """Play it to its end."""
        ...


async def in_one_loop(
    scene: Recorder,
    runaway: Awaitable[_Outcome],
    healthy: Healthy[Awaitable[_Outcome]],
) -> tuple[_Outcome, _Outcome]:
    """Play both in one event loop."""
    over = threading.Event()  # a framework may run the tool in another loop

    async def played() -> _Outcome:
        outcome = await runaway
        over.set()
        return outcome

    async def lookup(query: str) -> str:
        """Look a key up, once the runaway is over."""
        scene.calls.append("finish3")
        assert await asyncio.to_thread(over.wait, WAIT_S)
        return f"the value of {query}"

    return await asyncio.gather(played(), healthy(tools=(scene.tools("finish3")[0], lookup)))


def beside(
    scene: Recorder, runaway: Callable[[], _Outcome], healthy: Healthy[_Outcome]
) -> tuple[Callable[[], _Outcome], Callable[[], _Outcome]]:
    """Return what plays each of both, to be called in threads of any kind."""
    over = threading.Event()

    def played() -> _Outcome:
        outcome = runaway()
        over.set()
        return outcome

    def lookup(query: str) -> str:
        """Look a key up, once the runaway is over."""
        scene.calls.append("finish3")
        assert over.wait(WAIT_S)
        return f"the value of {query}"

    return played, lambda: healthy(tools=(scene.tools("finish3")[0], lookup))


def in_two_threads(
    scene: Recorder, runaway: Callable[[], _Outcome], healthy: Healthy[_Outcome]
) -> tuple[_Outcome, _Outcome]:
    """Play both in two threads."""
    first, second = beside(scene, runaway, healthy)
    with ThreadPoolExecutor(2) as pool:
        untouched, stopped = pool.submit(second), pool.submit(first)
    return stopped.result(), untouched.result()

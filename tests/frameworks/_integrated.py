"""What the contract must know about an integration: how to talk to an agent of its framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from otel_loopguard import LoopGuardSpanProcessor
from tests._integrations import Goal
from tests.frameworks._framework import Instrument, Job


class Module(Protocol):
    """A module of `otel_loopguard.integrations`."""

    def install(self, guard: LoopGuardSpanProcessor) -> None:
        """Let the framework ask this guard."""
        ...

    def uninstall(self, guard: LoopGuardSpanProcessor) -> None:
        """Let it ask this guard no more."""
        ...


class Conversation(Protocol):
    """An agent that remembers what was said, talked to from code that has no event loop.

    `ask` says the job's prompt, with the job's model and tools, and returns what is answered. What
    it raises reaches the contract as it is. If the framework ends a stopped run without raising
    anything, it returns `Ended` with the framework's own word for it.
    """

    def ask(self, job: Job) -> str | Ended:
        """Say something."""
        ...


class AsyncConversation(Protocol):
    """The same, talked to inside an event loop."""

    async def ask(self, job: Job) -> str | Ended:
        """Say something."""
        ...


class Waiting(NamedTuple):
    """A conversation for event loops, talked to from code that has none."""

    conversation: AsyncConversation
    run: Callable[[Coroutine[Any, Any, str | Ended]], str | Ended] = asyncio.run
    """Runs a turn to its end; by default in a loop of its own."""

    def ask(self, job: Job) -> str | Ended:
        """Say something."""
        return self.run(self.conversation.ask(job))


class Ended(NamedTuple):
    """A run that was stopped and raised nothing: how the caller can tell."""

    by: str
    """Such as `stop_reason='cancelled'`."""


Blocking: TypeAlias = Callable[[], AbstractContextManager[Conversation]]
Awaited: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncConversation]]

Talk: TypeAlias = Generator[Conversation]
"""What a function with `@contextmanager` yields that opens a conversation."""

AsyncTalk: TypeAlias = AsyncGenerator[AsyncConversation]
"""The same with `@asynccontextmanager`."""


class Reason(NamedTuple):
    """Why a part of what was measured is not at its target, in some ways to run an agent."""

    goal: Goal
    why: str
    ways: tuple[str, ...] = ()
    """Those that it speaks of; all of them if none is named."""


class Integrated(NamedTuple):
    """A framework with its integration. Every conversation makes an agent and a client anew.

    Ways are called `sync`, `async` and `stream`; others are called what is special about them, then
    how they are run: `parallel sync`, `nested async`, `hand-off stream`. They are given these
    scripts: `parallel:3` where the name says so, `handoff` for hand-offs, else `endless`, which in
    nested ones the inner agent plays (the outer one is to call it again and again, too).
    """

    title: str
    """What the documentation calls the framework."""
    module: Module
    instrument: Instrument
    example: Path | None
    """A script that shows it, to be run as it is; `None` on versions that are too old for it."""
    blocking: Mapping[str, Blocking] = {}
    """Ways to run an agent from code that has no event loop."""
    awaited: Mapping[str, Awaited] = {}
    """Ways to run an agent inside an event loop."""
    packages: tuple[str, ...] = ()
    """The distributions whose versions are noted: the framework's, the client's, the spans'."""
    steers: bool = True
    """Whether it hands hints to the model."""
    reasons: tuple[Reason, ...] = ()
    """Why parts are not at their target."""

    @property
    def ways(self) -> tuple[str, ...]:
        """The names of all ways to run an agent."""
        return (*self.blocking, *self.awaited)

    @property
    def plain_ways(self) -> tuple[str, ...]:
        """Those with one agent that calls one tool at a time."""
        return tuple(way for way in self.ways if " " not in way)


def script_of(way: str) -> str:
    """Return the script that a runaway plays in one way to run an agent."""
    special = way.split(maxsplit=1)[0]
    return {"parallel": "parallel:3", "hand-off": "handoff"}.get(special, "endless")

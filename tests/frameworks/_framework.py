"""What the contract must know about a framework: how to build an agent in it and how to run it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.steps import StepKind
from tests._zero_code import Figure, Surroundings

AGENT = "assistant"
"""What every framework is to call its agent."""

CAP = 12
"""Model requests after which a framework is to stop by itself, where it can be told to."""

Tool: TypeAlias = Callable[..., Any]
"""A plain function, or a coroutine function, that takes `query` and returns text."""


class Job(NamedTuple):
    """One run of an agent."""

    script: str
    """The model's name: the scripted server plays the script of that name."""
    url: str
    tools: Sequence[Tool]
    prompt: str = "go"


Run: TypeAlias = Callable[[Job], str]
AsyncRun: TypeAlias = Callable[[Job], Awaitable[str]]


class Instrument(Protocol):
    """Makes the framework emit its spans into a provider while the block lasts."""

    def __call__(
        self, provider: TracerProvider, *, content: bool
    ) -> AbstractContextManager[object]:
        """`content` is whether arguments, results and messages are to be on the spans."""
        ...


class Reason(NamedTuple):
    """Why a figure of `_contract_matrix` is not at its target, in some surroundings and modes."""

    figure: Figure
    why: str
    around: tuple[Surroundings, ...] = ()
    """Those that it speaks of; all of them if none is named."""
    modes: tuple[str, ...] = ()
    """As `around`."""

    def explains(self, figure: Figure, around: Surroundings, mode: str) -> bool:
        """Whether it speaks of this figure of a row."""
        return (
            figure == self.figure
            and around in (self.around or (around,))
            and mode in (self.modes or (mode,))
        )


class Framework(NamedTuple):
    """A framework as its contract test describes it. Every run makes an agent and a client anew."""

    instrument: Instrument
    blocking: Mapping[str, Run]
    """Ways to run an agent from code that has no event loop, by mode."""
    awaited: Mapping[str, AsyncRun]
    """Ways to run an agent inside an event loop, by mode."""
    capped: type[Exception | None]
    """What the caller gets at the framework's own limit; that of `None` if it is an answer."""
    at_cap: tuple[int, int]
    """Model requests and tool executions of a runaway that is ended by that limit."""
    run_span: str
    """The name of the run's topmost span."""
    agent_span: str
    """The name of the span that stands above the tools' spans."""
    run_agent: str
    """The agent's name as the metrics of the run have it."""
    spans_above: int
    """How many spans a healthy run has besides one for each of its model and tool calls."""
    model_spans: frozenset[str] = frozenset({"chat endless"})
    """The names of the span of a model call; of several inside one another the innermost counts."""
    tool_span: str = "execute_tool search"
    """The name of the span of a tool call."""
    spans_between: frozenset[str] = frozenset()
    """The names of what stands between the agent's span and those of model and tool calls."""
    agent: str = AGENT
    """The agent's name as violations have it."""
    vetoed: frozenset[StepKind] = frozenset()
    """The kinds of steps whose spans let an exception out when they start: a refused one does not
    happen."""
    shows_arguments_late: bool = False
    """A tool call shows its arguments only at its end: one that is refused by them is made."""
    wraps: frozenset[str] = frozenset()
    """Modes in which what is raised and is no `Exception` is the cause of a `RuntimeError`."""
    answers_vetoes: bool = False
    """Whether it hands its model the refusal of a tool call for a result: the next request is
    refused too."""
    stumbles: frozenset[str] = frozenset()
    """Modes in which it takes what is raised and is no `Exception` for a result, and fails over it:
    the caller gets an error that says nothing of the stop."""
    title: str = ""
    """What the documentation calls it."""
    packages: tuple[str, ...] = ()
    """The distributions whose versions are noted: the framework's, the client's, the spans'."""
    surroundings: tuple[Surroundings, ...] = ("nothing",)
    """What stands around its runs in `_contract_matrix`."""
    reasons: tuple[Reason, ...] = ()
    """Why figures of its rows are not those that are aimed at."""
    block_span: str = ""
    """The topmost span in a `guarded_run`; empty if the block makes none in the provider."""
    at_cap_status: str = "running"
    """How a runaway counts that is ended by that limit."""
    cancelled: bool = False
    """Whether a run that goes on after a stop is cancelled before its next request is refused: its
    requests are made in tasks of their own."""

    @property
    def spans_told_on(self) -> frozenset[str]:
        """The names of the spans that violations are written on."""
        return self.spans_between or frozenset({self.agent_span})

    @property
    def stopped_by(self) -> str:
        """What keeps a refused model request from leaving: the first of the two that is asked."""
        return "veto" if "llm" in self.vetoed else "gate"

    @property
    def modes(self) -> tuple[str, ...]:
        """The names of all ways to run an agent."""
        return (*self.blocking, *self.awaited)


@contextmanager
def thread_loop() -> Generator[asyncio.AbstractEventLoop]:
    """Give this thread an event loop of its own, for frameworks whose blocking call drives one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@contextmanager
def genai_content(*, content: bool) -> Generator[None]:
    """Tell OpenTelemetry's GenAI packages whether to write arguments, results and messages."""
    with pytest.MonkeyPatch.context() as environment:
        mode = "SPAN_ONLY" if content else "NO_CONTENT"
        environment.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", mode)
        yield

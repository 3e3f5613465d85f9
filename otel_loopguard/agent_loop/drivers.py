"""`run_agent` and `run_agent_async`: two thin ways to do what the loop asks for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from otel_loopguard.agent_loop.attempts import Attempt, Outcome
from otel_loopguard.agent_loop.awaited import at_once, is_awaited
from otel_loopguard.agent_loop.loop import Loop, Work
from otel_loopguard.agent_loop.messages import Message, TurnRequest
from otel_loopguard.agent_loop.plan import Plan, RunOptions, plan_of
from otel_loopguard.agent_loop.results import AgentResult
from otel_loopguard.agent_loop.telemetry import Spans
from otel_loopguard.agent_loop.tools import Tool
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.options.errors import wrong
from otel_loopguard.policy import Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack


def run_agent(
    model: Callable[[TurnRequest], ModelTurn],
    prompt: str | Sequence[Message],
    tools: Iterable[Tool] = (),
    *,
    max_steps: int = 60,
    max_tool_calls: int = 30,
    max_tokens: int = 500_000,
    deadline_s: float = 600.0,
    policy: Policy | None = None,
    temporary: tuple[type[Exception], ...] = (),
    **options: Unpack[RunOptions],
) -> AgentResult:
    """Ask a model, call its tools, and so on, until it is done or may not go on.

        result = run_agent(ask, "How is the weather in Paris?", [Tool(name="search", call=search)])
        print(result.ending, result.output)

    It always ends, and says how: `result.ending`. Nothing that a model, a tool or a guard raises
    comes out of it, except what is no `Exception`: cancellation, `KeyboardInterrupt`, and
    `RunInterrupted`, which is there to pass. Each call has a span of its own.

    Args:
        model: answers a `TurnRequest` with a `ModelTurn`; called once for each step of its kind.
        prompt: what the agent is to do, or a conversation to go on from, such as a `history`.
        tools: what the model may call.
        max_steps: model calls and tool calls together that may be attempted.
        max_tool_calls: tool calls that may be attempted: retries, calls of unknown tools and calls
            with wrong arguments included.
        max_tokens: once more have been used, into the model and out of it, nothing is begun.
        deadline_s: seconds after which nothing is begun, and what comes back is thrown away.
        policy: the rules and further limits of the run's own guard; the default policy if `None`.
        temporary: what a tool may raise for a call to be tried again, once, after the others.
        options: what else there is: see `RunOptions`.

    Raises:
        PolicyError: for what is not as it must be; no limit is switched off by 0 or `None`.

    """
    plan = plan_of(
        model,
        prompt,
        tools,
        max_steps=max_steps,
        max_tool_calls=max_tool_calls,
        max_tokens=max_tokens,
        deadline_s=deadline_s,
        policy=policy,
        temporary=temporary,
        **options,
    )
    _refuse_async(plan)
    spans, work = Spans(plan), Loop(plan, parallel=False).run()
    with spans.of_run() as span:
        said = _go_on(work)
        while not isinstance(said, AgentResult):
            said = _go_on(work, [_made(attempt, spans, plan.clock) for attempt in said])
        spans.end(span, said)
        return said


async def run_agent_async(
    model: Callable[[TurnRequest], ModelTurn | Awaitable[ModelTurn]],
    prompt: str | Sequence[Message],
    tools: Iterable[Tool] = (),
    *,
    max_steps: int = 60,
    max_tool_calls: int = 30,
    max_tokens: int = 500_000,
    deadline_s: float = 600.0,
    policy: Policy | None = None,
    temporary: tuple[type[Exception], ...] = (),
    **options: Unpack[RunOptions],
) -> AgentResult:
    """Do what `run_agent` does, and make the calls of one turn at the same time.

    The model and the tools may be coroutine functions, or ordinary ones, which hold up all others
    while they work. Everything else is as with `run_agent`.

    Raises:
        PolicyError: as `run_agent` does.

    """
    plan = plan_of(
        model,
        prompt,
        tools,
        max_steps=max_steps,
        max_tool_calls=max_tool_calls,
        max_tokens=max_tokens,
        deadline_s=deadline_s,
        policy=policy,
        temporary=temporary,
        **options,
    )
    spans, work = Spans(plan), Loop(plan, parallel=True).run()
    with spans.of_run() as span:
        said = _go_on(work)
        while not isinstance(said, AgentResult):
            said = _go_on(work, await _all_made(said, spans, plan.clock))
        spans.end(span, said)
        return said


def _go_on(
    work: Work[AgentResult], outcomes: Sequence[Outcome] | None = None
) -> tuple[Attempt, ...] | AgentResult:
    """Tell the loop what came of its attempts, and return the next ones, or its result."""
    try:
        # As for any generator, there is nothing to tell at first.
        return work.send(cast("Sequence[Outcome]", outcomes))
    except StopIteration as done:
        return cast("AgentResult", done.value)


def _made(attempt: Attempt, spans: Spans, clock: Callable[[], float]) -> Outcome:
    """Make an attempt, and return what came of it."""
    outcome = Outcome(attempt.call_id)
    with outcome, spans.of(attempt) as span:
        returned = at_once(attempt(), attempt.name)
        outcome.at_s = clock()
        outcome.value = attempt.taken(returned)
        spans.show(span, attempt, outcome.value)
    return outcome


async def _made_async(attempt: Attempt, spans: Spans, clock: Callable[[], float]) -> Outcome:
    """Make an attempt that may have to be awaited, and return what came of it."""
    outcome = Outcome(attempt.call_id)
    with outcome, spans.of(attempt) as span:
        returned = attempt()
        value = await returned if inspect.isawaitable(returned) else returned
        outcome.at_s = clock()
        outcome.value = attempt.taken(value)
        spans.show(span, attempt, outcome.value)
    return outcome


async def _all_made(
    attempts: tuple[Attempt, ...], spans: Spans, clock: Callable[[], float]
) -> list[Outcome]:
    """Make attempts at the same time, and return what came of them in the order of their ends."""
    outcomes: list[Outcome] = []

    async def make(attempt: Attempt) -> None:
        outcomes.append(await _made_async(attempt, spans, clock))

    tasks = [asyncio.ensure_future(make(attempt)) for attempt in attempts]
    try:
        await asyncio.gather(*tasks)
    finally:
        # Where one was interrupted, or all were cancelled, none is left behind.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return outcomes


def _refuse_async(plan: Plan) -> None:
    """Refuse coroutine functions where nobody awaits them."""
    called = {"model": plan.model, **{f"Tool({n!r}).call": t.call for n, t in plan.tools.items()}}
    for name, function in called.items():
        if is_awaited(function):
            raise wrong(name, "an ordinary function; run_agent_async awaits", function)

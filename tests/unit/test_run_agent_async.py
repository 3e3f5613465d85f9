"""What only one way to run the loop has: calls at the same time, cancellation, interruptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from opentelemetry.trace import StatusCode

from otel_loopguard import (
    LoopGuard,
    Policy,
    PolicyError,
    RunInterrupted,
    RunReport,
    Tool,
    TurnRequest,
    run_agent,
    run_agent_async,
)
from otel_loopguard.model_turns import ModelTurn
from tests._run_agent import (
    DONE,
    HELLO,
    Clock,
    Endless,
    Recorded,
    Script,
    answers,
    asks,
    call,
    roles,
)
from tests._tracing import Traced

TWO = asks(call("first", "a", n=1), call("second", "b", n=2))


def tools(**calls: Callable[..., object]) -> list[Tool]:
    return [Tool(name=name, call=function) for name, function in calls.items()]


@pytest.mark.asyncio
async def test_calls_of_one_turn_are_made_at_the_same_time_and_matched_by_id():
    second_is_back, order = asyncio.Event(), list[str]()

    async def first(n: int) -> str:
        await second_is_back.wait()
        order.append("first")
        return f"first got {n}"

    async def second(n: int) -> str:
        order.append("second")
        second_is_back.set()
        await asyncio.sleep(0)
        return f"second got {n}"

    result = await run_agent_async(Script(TWO, DONE), HELLO, tools(first=first, second=second))

    assert order == ["second", "first"]
    assert answers(result) == {"a": "first got 1", "b": "second got 2"}
    assert [each.call_id for each in result.history if each.role == "tool"] == ["a", "b"]
    assert (result.ending, result.tool_calls) == ("complete", 2)


@pytest.mark.asyncio
async def test_what_ends_it_does_not_depend_on_who_is_back_first():
    """A fatal error comes before a deadline, whichever is heard of first."""
    for fatal_first in (True, False):
        clock, back = Clock(), asyncio.Event()

        async def fail(n: int, *, at_once: bool = fatal_first, back: asyncio.Event = back) -> None:
            if not at_once:
                await back.wait()
            back.set()
            raise KeyError(n)

        async def linger(
            n: int, *, last: bool = fatal_first, back: asyncio.Event = back, clock: Clock = clock
        ) -> int:
            if last:
                await back.wait()
            clock.advance(10)
            back.set()
            return n

        result = await run_agent_async(
            Script(TWO),
            HELLO,
            tools(first=fail, second=linger),
            fatal=(KeyError,),
            clock=clock,
            deadline_s=10,
        )

        assert (result.ending, result.tool_calls, result.model_calls) == ("tool_error", 2, 1)
        assert answers(result)["a"] == "KeyError: 1"
        assert roles(result) == "uaff"


@pytest.mark.asyncio
async def test_ordinary_functions_do_as_well():
    result = await run_agent_async(
        Script(TWO, DONE), HELLO, tools(first=Recorded(), second=Recorded())
    )

    assert (result.ending, result.steps) == ("complete", 4)


async def started(run: Awaitable[object], begun: asyncio.Event) -> asyncio.Task[object]:
    task = asyncio.ensure_future(run)
    await begun.wait()
    assert isinstance(task, asyncio.Task)
    return task


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [1, 2], ids=["one call", "two at once"])
async def test_cancellation_passes_through_and_ends_all_calls_and_spans(
    process: Traced, number: int
):
    begun, cancelled = asyncio.Event(), list[int]()

    async def hang(n: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            cancelled.append(n)
            raise

    turn = asks(*(call("hang", f"c{n}", n=n) for n in range(number)))
    run = run_agent_async(Script(turn), HELLO, tools(hang=hang), tracer_provider=process.provider)
    task = await started(run, begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert cancelled == [*range(number)]
    names = [span.name for span in process.spans]
    assert names == ["chat", *["execute_tool hang"] * number, "invoke_agent agent"]
    errors = [(span.attributes or {}).get("error.type") for span in process.spans]
    assert errors == [None, *["CancelledError"] * (number + 1)]


@pytest.mark.asyncio
async def test_cancellation_of_a_model_call_passes_through(process: Traced):
    begun = asyncio.Event()

    async def hang(_: TurnRequest) -> ModelTurn:
        begun.set()
        await asyncio.Event().wait()
        return DONE

    task = await started(run_agent_async(hang, HELLO, tracer_provider=process.provider), begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [span.name for span in process.spans] == ["chat", "invoke_agent agent"]


REPORT = LoopGuard().end()


def interruptions(report: RunReport) -> list[BaseException]:
    return [KeyboardInterrupt(), RunInterrupted(report), SystemExit(3)]


@pytest.mark.parametrize("error", interruptions(REPORT), ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("where", ["model", "tool"])
def test_what_is_no_ordinary_exception_passes_through_and_spans_end(
    process: Traced, error: BaseException, where: str
):
    def interrupt(**_: object) -> None:
        raise error

    def ask(_: TurnRequest) -> ModelTurn:
        raise error

    model = ask if where == "model" else Script(TWO)
    with pytest.raises(type(error)) as raised:
        run_agent(
            model,
            HELLO,
            tools(first=interrupt, second=Recorded()),
            tracer_provider=process.provider,
            temporary=(Exception,),
            fatal=(Exception,),
        )

    assert raised.value is error
    made = ["chat"] if where == "model" else ["chat", "execute_tool first"]
    assert [span.name for span in process.spans] == [*made, "invoke_agent agent"]
    assert process.spans[-1].status.status_code is StatusCode.ERROR
    assert (process.spans[-1].attributes or {})["error.type"] == type(error).__qualname__


@pytest.mark.asyncio
async def test_an_interruption_leaves_no_call_behind():
    ended: list[str] = []

    async def first(n: int) -> None:
        await asyncio.sleep(0)
        raise RunInterrupted(REPORT, str(n))

    async def second(n: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(f"second {n}")

    with pytest.raises(RunInterrupted):
        await run_agent_async(Script(TWO), HELLO, tools(first=first, second=second))

    assert ended == ["second 2"]


@pytest.mark.asyncio
@pytest.mark.parametrize("limit", [1, 2], ids=str)
async def test_of_calls_at_the_same_time_only_those_within_the_allowance_begin(limit: int):
    tool = Recorded()
    result = await run_agent_async(
        Endless("search", "search2", "search3"),
        HELLO,
        [Tool(name=name, call=tool) for name in ("search", "search2", "search3")],
        policy=Policy.none(),
        max_tool_calls=limit,
    )

    assert (result.ending, result.tool_calls, len(tool.executions)) == ("tool_limit", limit, limit)
    assert roles(result) == "ua" + "t" * limit + "f" * (3 - limit)


class AwaitedObject:
    async def __call__(self, **_: object) -> str:
        return "never"


async def awaited(**_: object) -> str:
    return "never"


@pytest.mark.parametrize("function", [awaited, AwaitedObject()], ids=["function", "object"])
def test_coroutine_functions_belong_to_the_other_way(function: Callable[..., object]):
    with pytest.raises(PolicyError, match=r"Tool\('first'\).call: expected an ordinary function"):
        run_agent(Script(DONE), HELLO, tools(first=function))


def test_a_coroutine_function_is_no_model_where_nobody_awaits_it():
    async def ask(_: TurnRequest) -> ModelTurn:
        return DONE

    with pytest.raises(PolicyError, match="model: expected an ordinary function"):
        run_agent(ask, HELLO)  # type: ignore[arg-type]  # that is what is tried

"""`@guarded_run()`: each call of a function is a run, be it plain, a coroutine or a generator."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import inspect
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager
from typing import Any

import pytest
from opentelemetry import trace

from otel_loopguard import Policy, PolicyError, RunAborted, guarded_run
from otel_loopguard.slots import CURRENT
from tests._tracing import Traced

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="outside")


def here() -> str | None:
    """Return the id of the run that code here belongs to."""
    slot = CURRENT.get()
    return None if slot is None else slot.explicit_id


# ------------------------------------------------------------------------------- functions


def test_each_call_is_a_run_of_its_own(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_llm_calls=2), mode="enforce")
    ids: list[str | None] = []

    @guarded_run()
    def agent(turns: int, *, answer: str) -> str:
        """Answer."""
        ids.append(here())
        for _ in range(turns):
            process.turn()
        return answer

    assert agent(2, answer="42") == "42"
    assert agent(1, answer="43") == "43"
    with pytest.raises(RunAborted) as raised:
        agent(3, answer="never")

    assert raised.value.report.model_calls == 2
    assert raised.value.run_id == ids[-1]
    assert len(set(ids)) == 3
    assert here() is None
    assert process.total("loopguard.runs") == 3
    assert (agent.__name__, agent.__doc__) == ("agent", "Answer.")


def test_a_given_id_is_that_of_each_call_and_its_limits_are(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    @guarded_run("nightly", max_llm_calls=1)
    def agent(turns: int) -> str | None:
        for _ in range(turns):
            process.turn()
        return here()

    assert [agent(1), agent(1)] == ["nightly", "nightly"]
    with pytest.raises(RunAborted):
        agent(2)


def test_calls_may_overlap_and_call_each_other(process: Traced) -> None:
    process.guard(Policy.none())

    @guarded_run()
    async def agent(depth: int) -> list[str | None]:
        process.turn()
        await asyncio.sleep(0)
        ids = [here()]
        if depth:
            for deeper in await asyncio.gather(agent(depth - 1), agent(depth - 1)):
                ids += deeper
        process.turn()
        return ids

    ids = asyncio.run(agent(2))
    assert len(set(ids)) == 7
    assert process.total("loopguard.runs") == 7
    assert process.total("loopguard.run.active") == 0


def test_methods_and_callables_of_all_kinds(process: Traced) -> None:
    process.guard(Policy.none())

    class Agents:
        @guarded_run("method")
        def method(self) -> str | None:
            return here()

        @classmethod
        @guarded_run("class")
        def of_class(cls) -> str | None:
            return here()

        @staticmethod
        @guarded_run("static")
        async def static() -> str | None:
            return here()

        async def __call__(self) -> str | None:
            await asyncio.sleep(0)
            return here()

    agents = Agents()
    partial = functools.partial(agents.static)
    assert (agents.method(), agents.of_class()) == ("method", "class")
    assert asyncio.run(Agents.static()) == "static"
    assert asyncio.run(guarded_run("object")(agents)()) == "object"
    assert asyncio.run(guarded_run("partial")(partial)()) == "static", "the innermost block counts"


def test_what_a_function_is_can_still_be_told() -> None:
    def plain() -> None:
        """Do nothing."""

    async def coroutine() -> None:
        """Do nothing."""

    def generator() -> Generator[None]:
        yield

    async def async_generator() -> AsyncGenerator[None]:
        yield

    for kind, function in (
        (inspect.isfunction, plain),
        (inspect.iscoroutinefunction, coroutine),
        (inspect.isgeneratorfunction, generator),
        (inspect.isasyncgenfunction, async_generator),
    ):
        made = guarded_run()(function)
        assert kind(made)
        assert inspect.signature(made) == inspect.signature(function)


def test_a_coroutine_that_is_stopped_raises_for_who_awaits_it(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    @guarded_run(max_duration_s=0.05)
    async def agent() -> None:
        process.turn()
        await asyncio.sleep(60)

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            await agent()
        assert raised.value.report.rule == "time_budget"

    asyncio.run(main())


@pytest.mark.parametrize("wrong", [len, 7, lambda: None])
def test_forgotten_parentheses_are_told_of(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"write @guarded_run\(\) with parentheses"):
        guarded_run(wrong)


def test_what_cannot_be_called_cannot_be_decorated() -> None:
    wrong: Any = "agent"
    with pytest.raises(TypeError, match="expected a function to decorate, got 'agent'"):
        guarded_run()(wrong)


def test_a_mistake_in_a_limit_fails_before_any_call() -> None:
    wrong: Any = {"max_steps": -1}
    with pytest.raises(PolicyError, match="max_steps"):

        @guarded_run(**wrong)
        def agent() -> None:
            """Never called."""


# ------------------------------------------------------------------------------ generators


def test_a_generator_is_one_run_and_who_pulls_it_is_not_in_it(process: Traced) -> None:
    process.guard(Policy.none())

    @guarded_run("pages")
    def pages() -> Generator[str | None, None, str | None]:
        with process.tracer.start_as_current_span("reading"):
            WHERE.set("inside")
            for _ in range(3):
                process.turn()
                yield here()
        return "last"

    items = pages()
    assert process.total("loopguard.runs") == 0
    seen: list[str | None] = []
    for item in items:
        seen.append(item)
        assert here() is None
        assert WHERE.get() == "outside"
        assert not trace.get_current_span().is_recording()

    assert seen == ["pages"] * 3
    assert process.total("loopguard.runs") == 1


def test_a_generator_may_be_told_things_and_returns_what_it_returns() -> None:
    @guarded_run("g")
    def echo() -> Generator[str, str, str]:
        heard = yield "first"
        while heard != "stop":
            try:
                heard = yield heard
            except LookupError as error:
                heard = f"caught {error.args[0]}"
        return f"returned in {here()}"

    items = echo()
    assert next(items) == "first"
    assert items.send("one") == "one"
    assert items.throw(LookupError("it")) == "caught it"
    with pytest.raises(StopIteration) as ended:
        items.send("stop")
    assert ended.value.value == "returned in g"


@contextmanager
def left_open(closed: list[str | None]) -> Generator[None]:
    try:
        yield
    finally:
        closed.append(here())


def test_a_generator_that_is_closed_or_dropped_ends_its_run(process: Traced) -> None:
    process.guard(Policy.none())
    closed: list[str | None] = []

    @guarded_run("g")
    def endless() -> Generator[int]:
        with left_open(closed):
            while True:
                process.turn()
                yield 1

    items = endless()
    next(items)
    items.close()
    assert process.total("loopguard.runs") == 1
    next(endless())
    gc.collect()
    assert process.total("loopguard.runs") == 2
    assert closed == ["g", "g"]


def test_a_stopped_generator_raises_for_who_pulls_it(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_llm_calls=2), mode="enforce")

    @guarded_run()
    def endless() -> Generator[int]:
        with process.agent():
            while True:
                process.turn()
                yield 1

    seen: list[int] = []
    with pytest.raises(RunAborted) as raised:
        seen += endless()
    assert raised.value.report.model_calls == 2


def test_a_generator_keeps_its_run_whatever_context_pulls_it(process: Traced) -> None:
    """Some web servers pull each item in another copy of the context."""
    process.guard(Policy.none())

    @guarded_run("g")
    def pages() -> Generator[str | None]:
        for _ in range(3):
            with process.tool():
                yield here()

    items = pages()
    assert [contextvars.copy_context().run(next, items) for _ in range(3)] == ["g"] * 3
    assert contextvars.copy_context().run(next, items, "over") == "over"
    assert process.total("loopguard.runs") == 1
    assert process.total("loopguard.errors") == 0


# ------------------------------------------------------------------------ async generators


def test_an_async_generator_is_one_run_and_who_pulls_it_is_not_in_it(process: Traced) -> None:
    process.guard(Policy.none())

    @guarded_run("stream")
    async def stream() -> AsyncGenerator[str | None]:
        WHERE.set("inside")
        for _ in range(3):
            with process.tool():
                await asyncio.sleep(0)
                child = asyncio.get_running_loop().create_task(asyncio.sleep(0, here()))
                assert await child == "stream"
                yield here()

    async def main() -> None:
        count = 0
        async for item in stream():
            count += 1
            assert item == "stream"
            assert here() is None
            assert WHERE.get() == "outside"
            await asyncio.sleep(0)
            assert here() is None
        assert count == 3

    asyncio.run(main())
    assert process.total("loopguard.runs") == 1


def test_an_async_generator_may_be_told_things_and_closed(process: Traced) -> None:
    process.guard(Policy.none())
    closed: list[str | None] = []

    @guarded_run("g")
    async def echo() -> AsyncGenerator[str, str]:
        with left_open(closed):
            heard = yield "first"
            while True:
                process.turn()
                try:
                    heard = yield heard
                except LookupError as error:
                    heard = f"caught {error.args[0]}"

    async def main() -> None:
        async with aclosing(echo()) as items:
            assert await items.asend(None) == "first"  # type: ignore[arg-type]  # starts it
            assert await items.asend("one") == "one"
            assert await items.athrow(LookupError("it")) == "caught it"
        assert process.total("loopguard.runs") == 1
        with pytest.raises(StopAsyncIteration):
            await items.asend("more")

    asyncio.run(main())
    assert closed == ["g"]


def test_an_async_generator_that_is_stopped_while_it_waits(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    @guarded_run(max_duration_s=0.05)
    async def stream() -> AsyncGenerator[int]:
        process.turn()
        yield 1
        await asyncio.sleep(60)

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async for _ in stream():
                pass
        assert raised.value.report.rule == "time_budget"
        assert here() is None

    asyncio.run(main())


def test_the_caller_s_own_cancellation_of_an_async_generator(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")
    waiting = asyncio.Event()

    @guarded_run()
    async def stream() -> AsyncGenerator[int]:
        process.turn()
        yield 1
        waiting.set()
        await asyncio.sleep(60)

    async def pull() -> None:
        async for _ in stream():
            pass

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(pull())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert process.total("loopguard.runs") == 1


def test_an_error_of_a_generator_that_was_not_stopped_passes_through(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")
    error = LookupError("of the application")

    @guarded_run()
    async def stream() -> AsyncGenerator[int]:
        process.turn()
        yield 1
        raise error

    async def main() -> None:
        with pytest.raises(LookupError) as raised:
            async for _ in stream():
                pass
        assert raised.value is error

    asyncio.run(main())


# ------------------------------------------------------------------- whose task is cancelled


def test_whoever_has_an_item_is_not_cancelled_for_the_generator(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    @guarded_run(max_idle_s=0.05)
    async def stream() -> AsyncGenerator[int]:
        for number in range(2):
            process.turn()
            yield number

    @guarded_run(max_idle_s=0.05)
    def items() -> Generator[int]:
        for number in range(2):
            process.turn()
            yield number

    async def reads_slowly() -> list[int]:
        got: list[int] = []
        with pytest.raises(RunAborted):
            async for number in stream():
                got.append(number)
                await asyncio.sleep(0.3)
        with pytest.raises(RunAborted):
            for number in items():
                got.append(number)
                await asyncio.sleep(0.3)
        return got

    assert asyncio.run(reads_slowly()) == [0, 0]


def test_the_task_that_waits_for_an_item_is_cancelled_and_no_other(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    @guarded_run(max_idle_s=0.1)
    async def stream() -> AsyncGenerator[int]:
        process.turn()
        yield 1
        with process.tool():
            await asyncio.sleep(20)

    async def main() -> str:
        items = stream()
        await anext(items)

        async def waits() -> None:
            with pytest.raises(RunAborted):
                await anext(items)

        await asyncio.create_task(waits())
        await asyncio.sleep(0.05)
        return "unharmed"

    assert asyncio.run(main()) == "unharmed"


def test_a_generator_that_is_left_open_is_closed_with_its_loop(process: Traced) -> None:
    process.guard(Policy.none())
    heard: list[object] = []

    @guarded_run()
    async def stream() -> AsyncGenerator[int]:
        try:
            process.turn()
            yield 1
        finally:
            await asyncio.sleep(0)
            heard.append("cleaned")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, told: heard.append(told))
        kept.append(stream())
        await anext(kept[0])

    kept: list[AsyncGenerator[int]] = []
    asyncio.run(main())
    assert heard == ["cleaned"]

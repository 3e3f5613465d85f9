"""Which loop a request is of where no span says it: hand-written loops, and all that they do."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from openai import OpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import use_span

from otel_loopguard import Policy, RunAborted, abort_of
from tests.frameworks._expected import ANSWER, HEALTHY, REPEATED
from tests.frameworks._framework import CAP
from tests.frameworks._openai_loop import OPENAI_LOOP as FRAMEWORK
from tests.frameworks._openai_loop import Messages, calls_of, note, schema
from tests.frameworks._plain_loop import TooManyTurnsError, carried_out
from tests.frameworks._workbench import Counts, Scene, Workbench

CALLS = 5
ONLY_CALLS = Policy.none().with_limits(max_llm_calls=CALLS)

Turns = Generator[None, None, str]


def turns(
    scene: Scene, script: str = "endless", messages: Messages | None = None, keep: int = 0
) -> Turns:
    """Make one model request at each step, and run the tools that it asks for.

    With `keep`, no more than that many of the last messages are sent besides the first.
    """
    sent: Messages = [] if messages is None else messages
    if not sent or sent[-1]["role"] != "user":
        sent.append({"role": "user", "content": "go"})
    tools = scene.tools(script)
    with OpenAI(base_url=scene.server.url, api_key="none") as client:
        for _ in range(CAP):
            told = [sent[0], *sent[-keep:]] if keep and len(sent) > keep else sent
            completion = client.chat.completions.create(
                model=script, messages=told, tools=[schema(tool) for tool in tools]
            )
            said = completion.choices[0].message
            if not said.tool_calls:
                return said.content or ""
            calls = calls_of(said)
            note(sent, calls, carried_out(calls, tools))
            yield
    raise TooManyTurnsError


def answer_of(loop: Turns) -> str:
    while True:
        try:
            next(loop)
        except StopIteration as end:
            return str(end.value)


class TestNoSpanOfItsOwn:
    """Loops with nothing around them: their requests repeat the ids of their calls."""

    def test_with_content_no_request_is_made_after_the_trip(self, bench: Workbench, mode: str):
        with bench.guarded() as scene:
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == REPEATED

    def test_without_content_the_first_request_is_not_counted(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY_CALLS, content=False) as scene:
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        assert outcome.error.report.rule == "llm_call_budget"
        assert outcome.counts == Counts(CALLS + 1, CALLS + 1)

    def test_with_content_every_request_is_counted(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY_CALLS) as scene:
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        assert outcome.error.report.model_calls == CALLS
        assert outcome.counts == Counts(CALLS, CALLS)

    @pytest.mark.parametrize("content", [True, False], ids=["content", "no-content"])
    def test_healthy_loop(self, bench: Workbench, mode: str, *, content: bool):
        with bench.guarded(ONLY_CALLS, content=content) as scene:
            outcomes = scene.play_in_turn(mode, ["finish3"] * 4)
        assert [(each.answer, each.counts) for each in outcomes] == [(ANSWER, HEALTHY)] * 4

    def test_healthy_loop_after_one_that_was_stopped(self, bench: Workbench, mode: str):
        with bench.guarded() as scene:
            stopped, healthy = scene.play_in_turn(mode, ["endless", "finish3"])
        assert (type(stopped.error), stopped.counts) == (RunAborted, REPEATED)
        assert healthy == (ANSWER, None, HEALTHY)

    def test_two_at_once(self, bench: Workbench, awaited_mode: str):
        with bench.guarded() as scene:
            stopped, healthy = asyncio.run(both(scene, awaited_mode))
        assert (type(stopped.error), stopped.counts) == (RunAborted, REPEATED)
        assert healthy == (ANSWER, None, HEALTHY)

    def test_history_that_is_cut_short(self, bench: Workbench):
        with bench.guarded() as scene, pytest.raises(RunAborted):
            answer_of(turns(scene, keep=4))
        assert scene.counts() == REPEATED

    def test_no_span_at_all(self, bench: Workbench):
        bare = Workbench(FRAMEWORK._replace(instrument=uninstrumented), bench.server)
        with bare.guarded(ONLY_CALLS) as scene, pytest.raises(RunAborted):
            answer_of(turns(scene))
        assert scene.spans == ()
        assert scene.counts() == Counts(CALLS + 1, CALLS + 1)


async def both(scene: Scene, mode: str) -> tuple[Any, Any]:
    return await asyncio.gather(scene.played(mode, "endless"), scene.played(mode, "finish3"))


def uninstrumented(_: TracerProvider, *, content: bool) -> AbstractContextManager[object]:
    return nullcontext(content)


class TestOneSpanForSeveral:
    """Loops below one span of the application: the first that tells of a call is its run."""

    def test_at_once(self, bench: Workbench, awaited_mode: str):
        with bench.guarded() as scene, scene.span("handle order"):
            stopped, healthy = asyncio.run(both(scene, awaited_mode))
        assert type(stopped.error) is RunAborted
        # Until they tell of a call both are one, that of the loop which tells of one first: what
        # the other has asked for first counts there, and not where it goes on.
        assert abs(stopped.counts.requests - REPEATED.requests) <= 1
        assert healthy == (ANSWER, None, HEALTHY)

    def test_in_turn(self, bench: Workbench, mode: str):
        with bench.guarded() as scene, scene.span("session"):
            stopped, healthy = scene.play_in_turn(mode, ["endless", "finish3"])
            again = scene.play(mode, "endless")
        assert (type(stopped.error), stopped.counts) == (RunAborted, REPEATED)
        assert healthy == (ANSWER, None, HEALTHY)
        assert (type(again.error), again.counts) == (RunAborted, Counts(0, 0)), "it begins anew"

    def test_in_turn_with_one_history(self, bench: Workbench):
        messages: Messages = []
        with bench.guarded() as scene, scene.span("session"):
            with pytest.raises(RunAborted):
                answer_of(turns(scene, messages=messages))
            messages.append({"role": "user", "content": "something else then"})
            assert answer_of(turns(scene, "finish3", messages)) == ANSWER
        # The script sees the work of the first turn, and has enough.
        assert scene.counts("finish3") == Counts(1, 0)

    def test_one_that_goes_on_is_guarded_too(self, bench: Workbench):
        with bench.guarded() as scene, scene.span("session"):
            with pytest.raises(RunAborted):
                answer_of(turns(scene))
            other: Messages = [{"role": "user", "content": "another one"}]
            with pytest.raises(RunAborted):
                answer_of(turns(scene, messages=other))
        # Its calls are counted from its second request on if it has begun after the trip.
        assert scene.counts() == Counts(10, 10)

    def test_interleaved_in_one_thread(self, bench: Workbench):
        with bench.guarded() as scene, scene.span("session"):
            first, second = turns(scene), turns(scene, "finish3")
            for _ in range(2):
                next(first)
                next(second)
            with pytest.raises(RunAborted):
                answer_of(first)
            assert answer_of(second) == ANSWER
        assert scene.counts("endless") == REPEATED

    def test_a_limit_is_of_all_of_them(self, bench: Workbench):
        with bench.guarded(ONLY_CALLS) as scene, scene.span("session"):
            with pytest.raises(RunAborted):
                answer_of(turns(scene))
            with pytest.raises(RunAborted):
                answer_of(turns(scene, "finish3"))
        assert scene.counts("finish3") == Counts(0, 0)


class TestLostContext:
    """Requests on threads and in tasks that know of another run, or of none."""

    def test_a_pool_that_knows_no_context(self, bench: Workbench):
        with bench.guarded() as scene, scene.span("handle order"), ThreadPoolExecutor(1) as pool:
            loop = turns(scene)
            next(loop)
            with pytest.raises(RunAborted):
                pool.submit(contextvars.Context().run, answer_of, loop).result()
        assert scene.counts() == REPEATED

    def test_a_pool_for_the_whole_loop(self, bench: Workbench):
        with bench.guarded() as scene, scene.span("handle order"), ThreadPoolExecutor(1) as pool:
            run = pool.submit(contextvars.Context().run, answer_of, turns(scene))
            assert type(run.exception()) is RunAborted
        assert scene.counts() == REPEATED

    def test_a_thread_of_asyncio(self, bench: Workbench):
        async def main() -> None:
            await asyncio.to_thread(answer_of, turns(scene))

        with bench.guarded() as scene, pytest.raises(RunAborted), scene.span("handle order"):
            asyncio.run(main())
        assert scene.counts() == REPEATED

    def test_a_worker_that_was_started_by_another_run(self, bench: Workbench):
        """What a task was started in stays its context, whatever it works at."""

        async def main() -> str:
            jobs: asyncio.Queue[Turns] = asyncio.Queue()
            done: asyncio.Queue[str] = asyncio.Queue()

            async def worker() -> None:
                while True:
                    await done.put(answer_of(await jobs.get()))

            with scene.span("first"):
                task = asyncio.create_task(worker())
                with pytest.raises(RunAborted):
                    answer_of(turns(scene))
                other: Messages = [{"role": "user", "content": "of somebody else"}]
                await jobs.put(turns(scene, "finish3", other))
                answer = await done.get()
            task.cancel()
            return answer

        with bench.guarded() as scene:
            assert asyncio.run(main()) == ANSWER
        assert scene.counts("finish3") == HEALTHY


class TestStubborn:
    """Whatever the application does about it, no request of the loop leaves."""

    @pytest.mark.parametrize("around", ["span", "nothing"])
    def test_every_exception_is_swallowed(self, bench: Workbench, around: str):
        refused = 0
        with bench.guarded() as scene:
            span = scene.provider.get_tracer("application").start_span("handle order")
            with use_span(span, end_on_exit=True) if around == "span" else use_span(span):
                messages: Messages = [{"role": "user", "content": "go"}]
                tools = scene.tools("endless")
                with OpenAI(base_url=scene.server.url, api_key="none") as client:
                    for _ in range(CAP):
                        try:
                            said = client.chat.completions.create(
                                model="endless",
                                messages=messages,
                                tools=[schema(tool) for tool in tools],
                            )
                        except BaseException as error:  # noqa: BLE001 -- the hazard
                            refused += abort_of(error) is not None
                            continue
                        calls = calls_of(said.choices[0].message)
                        note(messages, calls, carried_out(calls, tools))
        assert (scene.counts(), refused) == (REPEATED, CAP - 5)

"""The contract: only the runaway is stopped, whatever runs beside it, before it or after it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import httpx
import pytest

from otel_loopguard import Policy, guarded_run
from tests.frameworks._expected import ANSWER, HEALTHY, REPEATED, aborted, ended_runs
from tests.frameworks._notebook import Notebook, notebook
from tests.frameworks._side_by_side import in_one_loop, in_two_threads
from tests.frameworks._surroundings import Around
from tests.frameworks._workbench import Counts, Outcome, Scene, Workbench

SPANS = pytest.mark.parametrize("one_span", [False, True], ids=["apart", "under-one-span"])
"""Whether the runs are below one span of the application."""

BLOCKS = pytest.mark.parametrize("in_blocks", [False, True], ids=["bare", "in-blocks"])
"""Whether each run has a `guarded_run` block of its own."""


def around(scene: Scene, *, one_span: bool) -> AbstractContextManager[object]:
    return scene.span("request") if one_span else nullcontext()


async def both_in_one_loop(
    scene: Scene, mode: str, around: tuple[Around | None, Around | None] = (None, None)
) -> tuple[Outcome, Outcome]:
    """Play a runaway, and a healthy run that lasts until the runaway is over, in one event loop."""
    runaway = scene.played(mode, around=around[0])
    healthy = partial(scene.played, mode, "finish3", around=around[1])
    return await in_one_loop(scene, runaway, healthy)


def both_in_two_threads(
    scene: Scene, mode: str, around: tuple[Around | None, Around | None] = (None, None)
) -> tuple[Outcome, Outcome]:
    """Play a runaway, and a healthy run that lasts until the runaway is over, in two threads."""
    runaway = partial(scene.play, mode, around=around[0])
    healthy = partial(scene.play, mode, "finish3", around=around[1])
    return in_two_threads(scene, runaway, healthy)


class TestTwoAtOnce:
    """A healthy run that lasts until the runaway beside it has been stopped."""

    @SPANS
    @BLOCKS
    def test_in_one_event_loop(
        self, bench: Workbench, awaited_mode: str, *, one_span: bool, in_blocks: bool
    ):
        with bench.guarded() as scene, around(scene, one_span=one_span):
            blocks = (guarded_run(), guarded_run()) if in_blocks else (None, None)
            stopped, healthy = asyncio.run(both_in_one_loop(scene, awaited_mode, blocks))
        self._only_the_runaway_was_stopped(scene, stopped, healthy)

    def test_in_two_threads(self, bench: Workbench, blocking_mode: str):
        with bench.guarded() as scene:
            stopped, healthy = both_in_two_threads(scene, blocking_mode)
        self._only_the_runaway_was_stopped(scene, stopped, healthy)

    @staticmethod
    def _only_the_runaway_was_stopped(scene: Scene, stopped: Outcome, healthy: Outcome) -> None:
        assert aborted(stopped).report.rule == "repeated_result"
        assert stopped.counts == REPEATED
        assert healthy == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("aborted", True): 1, ("complete", False): 1}


class TestOneAfterAnother:
    """A trip ends with its run, in the same thread, task and context."""

    @SPANS
    def test_healthy_after_stopped(self, bench: Workbench, mode: str, *, one_span: bool):
        with bench.guarded() as scene, around(scene, one_span=one_span):
            outcomes = scene.play_in_turn(mode, ("endless", "finish3", "endless", "finish3"))
        assert [outcome.counts for outcome in outcomes] == [REPEATED, HEALTHY] * 2
        assert [outcome.answer for outcome in outcomes] == [None, ANSWER] * 2
        assert [aborted(outcome).report.rule for outcome in outcomes[::2]] == [
            "repeated_result"
        ] * 2
        assert ended_runs(scene) == {("aborted", True): 2, ("complete", False): 2}


class TestOneInsideAnother:
    """An agent that runs as a tool of another belongs to the other's run."""

    def test_runaway_inside(self, bench: Workbench, awaited_mode: str):
        async def delegate(query: str) -> str:
            """Let another agent search."""
            scene.calls.append("finish3")
            inner = await scene.played(awaited_mode)
            tried.append(inner)
            raise inner.error or AssertionError(query)

        tried: list[Outcome] = []
        block = guarded_run() if bench.framework.cancelled else None
        with bench.guarded() as scene:
            outcome = scene.play(awaited_mode, "finish3", tools=[delegate], around=block)
        assert [inner.counts for inner in tried] == [REPEATED]
        assert aborted(tried[0]).report.rule == "repeated_result"
        # Whatever the outer agent makes of its tool's failure: its next request does not leave.
        assert aborted(outcome).report.rule == "repeated_result"
        assert outcome.counts == Counts(requests=1, executions=1)
        report = aborted(outcome).report
        # The inner agent's five executions: the call that runs it is none of its own.
        # A request whose task was cancelled on the way to the gate has left, for all that shows.
        assert (report.model_calls, report.tool_calls) == (6 + bench.framework.cancelled, 5)
        assert ended_runs(scene) == {("aborted", True): 1}


class TestOtherRequests:
    """What is no model request leaves, also when its run has tripped."""

    @pytest.fixture
    def notes(self) -> Generator[Notebook]:
        with notebook() as notes:
            yield notes

    def test_from_a_tool_while_the_run_is_refused(
        self, bench: Workbench, mode: str, notes: Notebook
    ):
        def search(query: str) -> str:
            """Search by way of another API."""
            scene.calls.append("endless")
            return httpx.post(f"{notes.url}/v1/search", json={"query": query}).text

        # The third tool call breaks the limit and runs: its request is one of a tripped run.
        policy = Policy.none().with_limits(max_tool_calls=2)
        with bench.guarded(policy, abort=("gate", "cancel")) as scene:
            outcome = scene.play(mode, tools=[search])
        assert aborted(outcome).report.rule == "tool_call_budget"
        assert outcome.counts == Counts(requests=3, executions=3)
        assert notes.paths == ["/v1/search"] * 3

    def test_from_an_asynchronous_tool(self, bench: Workbench, awaited_mode: str, notes: Notebook):
        async def search(query: str) -> str:
            """Search by way of another API."""
            scene.calls.append("endless")
            async with httpx.AsyncClient() as client:
                answered = await client.post(f"{notes.url}/v1/search", json={"query": query})
            return answered.text

        policy = Policy.none().with_limits(max_tool_calls=2)
        with bench.guarded(policy, abort=("gate", "cancel")) as scene:
            outcome = scene.play(awaited_mode, tools=[search])
        assert outcome.counts == Counts(requests=3, executions=3)
        assert notes.paths == ["/v1/search"] * 3


__all__ = [
    "TestOneAfterAnother",
    "TestOneInsideAnother",
    "TestOtherRequests",
    "TestTwoAtOnce",
    "both_in_one_loop",
    "both_in_two_threads",
]

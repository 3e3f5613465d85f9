"""The contract on a team of AutoGen, in whose turns an agent calls its tools once.

By itself a team has no span, and its members' messages begin traces of their own. What comes out
of it is a `RuntimeError` with a text: the guard's entry point makes `RunAborted` of that. `run` is
the blocking mode here, `run_stream` the awaited one.

Two parts are left out. A team that is cancelled finishes its turn first: see `TestCancel` here. And
turns of an agent inside a turn of one of the same name are judged apart, so that a team in a tool
of its like is stopped by limits alone.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import BaseGroupChat, RoundRobinGroupChat
from autogen_core import AgentRuntime, SingleThreadedAgentRuntime
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.surroundings import Surroundings
from tests.frameworks import test_autogen
from tests.frameworks._contract_calm import TestHealthy
from tests.frameworks._contract_company import TestOneAfterAnother, TestTwoAtOnce
from tests.frameworks._contract_hooks import TestHooks
from tests.frameworks._contract_limits import TestModelCalls
from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._contract_stops import TestGuardedRun, TestStop
from tests.frameworks._expected import (
    ANSWER,
    HEALTHY,
    REPEATED,
    aborted,
    ended_runs,
    run_attributes,
)
from tests.frameworks._framework import AGENT, CAP, Job
from tests.frameworks._workbench import Counts, Outcome, Workbench


def team(member: AssistantAgent, runtime: AgentRuntime | None = None) -> RoundRobinGroupChat:
    ends = TextMessageTermination(AGENT)
    return RoundRobinGroupChat([member], termination_condition=ends, max_turns=CAP, runtime=runtime)


async def run(job: Job) -> str:
    async with test_autogen.agent(job, turns=1) as member:
        return (await team(member).run(task=job.prompt)).messages[-1].to_text()


def sync(job: Job) -> str:
    return asyncio.run(run(job))


async def stream(job: Job) -> str:
    async with test_autogen.agent(job, turns=1) as member:
        last = [message async for message in team(member).run_stream(task=job.prompt)][-1]
    assert isinstance(last, TaskResult)
    return last.messages[-1].to_text()


async def of_teams(job: Job) -> str:
    """Run a team whose member is a team."""
    async with test_autogen.agent(job, turns=1) as member:
        outer = RoundRobinGroupChat([team(member)], max_turns=1)
        return (await outer.run(task=job.prompt)).messages[-1].to_text()


async def in_an_agent(job: Job) -> str:
    """Run an agent that thinks by way of a team; what that has found it writes up in the end."""
    async with test_autogen.agent(job, turns=1) as member, test_autogen.client(job) as writer:
        society = SocietyOfMindAgent("society", team(member), writer)
        return (await society.run(task=job.prompt)).messages[-1].to_text()


async def in_a_runtime(job: Job) -> str:
    """Run a team in a runtime that is there already."""
    runtime = SingleThreadedAgentRuntime()
    async with test_autogen.agent(job, turns=1) as member:
        runtime.start()
        try:
            return (await team(member, runtime).run(task=job.prompt)).messages[-1].to_text()
        finally:
            await runtime.stop()


FRAMEWORK = test_autogen.FRAMEWORK._replace(
    blocking={"sync": sync},
    awaited={"stream": stream},
    run_span="RoundRobinGroupChat.run_stream",
    run_agent="RoundRobinGroupChat.run_stream",
    spans_above=60,  # most are of messages between the members
    title="AutoGen `RoundRobinGroupChat`",
)

OTHERS = FRAMEWORK._replace(
    awaited={"of-teams": of_teams, "in-an-agent": in_an_agent, "in-a-runtime": in_a_runtime}
)


class TestCancel:
    """A team that is cancelled finishes its turn; the block raises `RunAborted` all the same."""

    def test_a_cancelled_team_finishes_its_turn(self, bench: Workbench, awaited_mode: str):
        with bench.guarded(abort=("cancel",)) as scene:
            outcome = scene.play(awaited_mode, around=guarded_run())
        assert type(outcome.error) is RunAborted
        assert outcome.counts.requests in (6, 7)


class TestTeamsElsewhere:
    """Teams in teams, in agents, and in runtimes that others have started."""

    @pytest.fixture
    def bench(self, bench: Workbench) -> Workbench:
        return bench._replace(framework=OTHERS)

    @pytest.mark.parametrize("way", ["of-teams", "in-an-agent"])
    def test_stopped_as_one_run(self, bench: Workbench, way: str):
        with bench.guarded() as scene:
            outcome = scene.play(way)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == REPEATED
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_a_healthy_team_of_teams(self, bench: Workbench):
        with bench.guarded() as scene:
            outcome = scene.play("of-teams", "finish3")
        assert outcome == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("complete", False): 1}

    def test_a_runtime_that_is_started_in_a_block(self, bench: Workbench):
        with bench.guarded() as scene:
            outcome = scene.play("in-a-runtime", around=guarded_run())
        assert type(outcome.error) is RunAborted
        assert outcome.counts == REPEATED


@contextmanager
def own_spans(provider: TracerProvider, *, content: bool) -> Generator[None]:
    del content  # there is none on them
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield


class TestOwnSpans:
    """With no spans but AutoGen's own, which know of no run, no model call and no content."""

    @pytest.fixture
    def bench(self, bench: Workbench) -> Workbench:
        return bench._replace(framework=FRAMEWORK._replace(instrument=own_spans))

    @pytest.mark.parametrize(
        ("limits", "counts"),
        [
            pytest.param({"max_tool_calls": 4}, Counts(5, 4), id="tools"),
            pytest.param({"max_same_tool_calls": 3}, Counts(4, 3), id="same-tool"),
            pytest.param({"max_llm_calls": 5}, Counts(5, 5), id="models"),
        ],
    )
    def test_its_turns_are_one_run(
        self, bench: Workbench, mode: str, limits: dict[str, int], counts: Counts
    ):
        with bench.guarded(Policy.none().with_limits(**limits)) as scene:
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == counts
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_two_at_once(self, bench: Workbench, awaited_mode: str):
        async def both() -> list[Outcome]:
            scripts = ("endless", "finish3")
            return await asyncio.gather(*(scene.played(awaited_mode, each) for each in scripts))

        with bench.guarded(Policy.none().with_limits(max_tool_calls=4)) as scene:
            stopped, healthy = asyncio.run(both())
        assert aborted(stopped).report.rule == "tool_call_budget"
        assert stopped.counts == Counts(5, 4)
        assert healthy == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("aborted", True): 1, ("running", False): 1}

    def test_one_after_another(self, bench: Workbench, mode: str):
        with bench.guarded(Policy.none().with_limits(max_tool_calls=4)) as scene:
            stopped, healthy = scene.play_in_turn(mode, ("endless", "finish3"))
        assert stopped.counts == Counts(5, 4)
        assert healthy == (ANSWER, None, HEALTHY)


IMPORTED_LATER = """
from otel_loopguard import LoopGuardSpanProcessor

guard = LoopGuardSpanProcessor()

from autogen_agentchat.teams import BaseGroupChat

assert hasattr(BaseGroupChat.run_stream, "__wrapped__")
guard.shutdown()
assert not hasattr(BaseGroupChat.run_stream, "__wrapped__")
"""


class TestEntryPoint:
    """The guard's own wrapper, whatever else is around it."""

    def test_nothing_is_left(self, bench: Workbench):
        before = vars(BaseGroupChat)["run_stream"]
        with bench.guarded():
            assert vars(BaseGroupChat)["run_stream"] is not before
        assert vars(BaseGroupChat)["run_stream"] is before

    def test_imported_after_the_guard(self):
        ran = subprocess.run(
            [sys.executable, "-c", IMPORTED_LATER], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")

    def test_instrumented_after_the_guard(self, bench: Workbench, mode: str):
        with (
            bench._replace(framework=FRAMEWORK._replace(instrument=not_yet)).guarded() as scene,
            FRAMEWORK.instrument(scene.provider, content=True),
        ):
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == REPEATED
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_a_fault_of_ours_leaves_the_team_alone(
        self, bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ):
        monkeypatch.setattr(Surroundings, "are_a_run", fail)
        with bench.guarded() as scene:
            outcomes = [scene.play("sync", "finish3") for _ in range(2)]
        assert outcomes == [(ANSWER, None, HEALTHY)] * 2
        assert caplog.text.count("a call that begins a run is left as it is") == 1

    def test_a_fault_of_ours_leaves_what_the_team_has_raised(
        self, bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ):
        monkeypatch.setattr(Surroundings, "stopped", fail)
        with (
            bench._replace(framework=FRAMEWORK._replace(instrument=not_yet)).guarded() as scene,
            FRAMEWORK.instrument(scene.provider, content=True),
        ):
            outcome = scene.play("sync")
        assert type(outcome.error) is RuntimeError
        assert outcome.counts == REPEATED
        assert "what a run has raised is left as it is" in caplog.text

    def test_the_spans_of_the_teams_are_described_and_not_the_one_around(self, bench: Workbench):
        with bench.guarded() as scene, scene.span("request"):
            scene.play_in_turn("stream", ("endless", "finish3"))
        assert [each["run.status"] for each in run_attributes(scene)] == ["aborted", "complete"]
        [request] = scene.named("request")
        assert not request.attributes


class FaultError(Exception):
    """What goes wrong in the guard."""


def fail(_: Surroundings) -> None:
    raise FaultError


def not_yet(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    del provider, content
    return nullcontext()


__all__ = [
    "FRAMEWORK",
    "TestGuardedRun",
    "TestHealthy",
    "TestHooks",
    "TestMatrix",
    "TestModelCalls",
    "TestOneAfterAnother",
    "TestStop",
    "TestTwoAtOnce",
]

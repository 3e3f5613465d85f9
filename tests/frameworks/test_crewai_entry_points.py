"""CrewAI begun by other ways than those that OpenInference has a span around, or with no such span.

What hangs a run's spans together is the guard's own entry point alone. The contract is tried on
`akickoff`. Where no span lasts as long as the run, events and attributes have no span to be written
on that would: what they say is in the metrics, the log and the report.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AbstractContextManager
from functools import partial

import pytest
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import AbortRequest, Policy, RunAborted, guarded_run
from tests.frameworks import test_crewai
from tests.frameworks._contract_company import (
    SPANS,
    TestOneAfterAnother,
    TestOneInsideAnother,
    TestTwoAtOnce,
    around,
)
from tests.frameworks._contract_hooks import TestCancel
from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._expected import (
    ANSWER,
    HEALTHY,
    REPEATED,
    VIOLATIONS,
    aborted,
    ended_runs,
    stops,
)
from tests.frameworks._framework import Job
from tests.frameworks._side_by_side import beside
from tests.frameworks._workbench import Counts, Outcome, Scene, Workbench
from tests.frameworks.test_crewai import Agent, Crew


async def akickoff(job: Job) -> str:
    return (await test_crewai.crew(job).akickoff()).raw


def sync(job: Job) -> str:
    return asyncio.run(akickoff(job))


async def streamed(job: Job) -> str:
    crew = test_crewai.crew(job)
    crew.stream = True
    output = await crew.akickoff()
    async for _ in output:
        pass
    return output.result.raw


async def agent(job: Job) -> str:
    return (await test_crewai.agent(job).kickoff_async(job.prompt)).raw


async def agent_in_a_loop(job: Job) -> str:
    """Call the blocking method where a loop runs: what it does is done by who awaits the answer."""
    return (await test_crewai.agent(job).kickoff(job.prompt)).raw


def blocking_agent(job: Job) -> str:
    return test_crewai.agent(job).kickoff(job.prompt).raw


FRAMEWORK = test_crewai.FRAMEWORK._replace(
    blocking={"sync": sync},
    awaited={"akickoff": akickoff},
    spans_above=0,
    title="CrewAI `Crew.akickoff`",
)

pytestmark = test_crewai.pytestmark


IMPORTED_LATER = """
from otel_loopguard import LoopGuardSpanProcessor

guard = LoopGuardSpanProcessor()

from crewai import Agent, Crew

methods = (Crew.kickoff, Crew.akickoff, Agent.kickoff, Agent.kickoff_async)
assert all(hasattr(method, "__wrapped__") for method in methods)
guard.shutdown()
methods = (Crew.kickoff, Crew.akickoff, Agent.kickoff, Agent.kickoff_async)
assert not any(hasattr(method, "__wrapped__") for method in methods)
"""


class TestAkickoff:
    """The guard opens the run, says so to nobody, and goes when it is shut down."""

    def test_healthy(self, bench: Workbench, mode: str):
        with bench.scene() as alone:
            expected = alone.play(mode, "finish3")
        with bench.guarded() as scene:
            outcome = scene.play(mode, "finish3")
        assert outcome == expected == (ANSWER, None, HEALTHY)
        assert scene.paths() == alone.paths()
        assert len(scene.paths()) == 5
        assert ended_runs(scene) == {("complete", False): 1}
        assert scene.points("loopguard.violations") == []

    def test_stopped(self, bench: Workbench, mode: str):
        told: list[AbortRequest] = []
        with bench.guarded(abort_hooks=[told.append]) as scene:
            outcome = scene.play(mode)
        assert outcome.counts == REPEATED
        assert type(outcome.error) is RunAborted
        report = outcome.error.report
        assert (report.rule, report.status) == ("repeated_result", "aborted")
        assert (report.model_calls, report.tool_calls) == REPEATED
        assert [
            (violation.rule, violation.action, violation.count, violation.step)
            for violation in report.violations
        ] == VIOLATIONS
        assert [request.run_id for request in told] == [outcome.error.run_id]
        assert ended_runs(scene) == {("aborted", True): 1}
        assert stops(scene)["gate", "ok"] == 1
        assert scene.points("loopguard.errors") == []

    @pytest.mark.parametrize(
        ("limits", "rule", "executions"),
        [
            pytest.param({"max_llm_calls": 5}, "llm_call_budget", 5, id="models"),
            pytest.param({"max_tool_calls": 4}, "tool_call_budget", 4, id="tools"),
        ],
    )
    def test_limits(self, bench: Workbench, limits: dict[str, int], rule: str, executions: int):
        with bench.guarded(Policy.none().with_limits(**limits), content=False) as scene:
            outcome = scene.play("akickoff")
        assert type(outcome.error) is RunAborted
        assert outcome.error.report.rule == rule
        assert outcome.counts == Counts(requests=5, executions=executions)

    def test_observed_as_one_run(self, bench: Workbench, mode: str):
        with bench.guarded(mode="observe") as scene:
            outcome = scene.play(mode)
        assert outcome.error is None
        assert outcome.counts == FRAMEWORK.at_cap
        assert ended_runs(scene) == {("complete", True): 1}

    def test_a_block_around_it_is_the_run(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded() as scene:
            outcome = scene.play(mode, around=block)
        assert type(outcome.error) is RunAborted
        assert outcome.error.run_id == "order-4711"
        assert outcome.counts == REPEATED
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_imported_after_the_guard(self):
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", IMPORTED_LATER],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert ran.returncode == 0, ran.stderr

    def test_nothing_is_left(self, bench: Workbench):
        methods = [(Crew, "kickoff"), (Crew, "akickoff"), (Agent, "kickoff_async")]
        before = [vars(owner)[name] for owner, name in methods]
        with bench.guarded():
            now = [vars(owner)[name] for owner, name in methods]
            assert not any(one is other for one, other in zip(before, now, strict=True))
        after = [vars(owner)[name] for owner, name in methods]
        assert all(one is other for one, other in zip(before, after, strict=True))


class TestOtherWays:
    """Whatever way a crew or an agent is begun by, it is one run."""

    @pytest.fixture
    def bench(self, bench: Workbench) -> Workbench:
        ways = {"streamed": streamed, "agent": agent, "agent-in-a-loop": agent_in_a_loop}
        return bench._replace(framework=FRAMEWORK._replace(awaited=ways))

    @pytest.mark.parametrize("way", ["streamed", "agent", "agent-in-a-loop"])
    def test_stopped_or_left_alone(self, bench: Workbench, way: str):
        with bench.guarded() as scene:
            stopped, healthy = scene.play_in_turn(way, ("endless", "finish3"))
        assert aborted(stopped).report.rule == "repeated_result"
        assert stopped.counts == REPEATED
        assert healthy == (ANSWER, None, HEALTHY)
        ended = ended_runs(scene)
        assert (ended["aborted", True], ended["complete", False]) == (1, 1)


def of_the_client(provider: TracerProvider, *, content: bool) -> AbstractContextManager[None]:
    return test_crewai.instrumented(OpenAIInstrumentor(), provider=provider, content=content)


class TestSpansOfTheClientAlone:
    """With no spans but those of model calls. A crew tries a task that fails three times over."""

    @pytest.fixture
    def bench(self, bench: Workbench) -> Workbench:
        return bench._replace(
            framework=FRAMEWORK._replace(
                instrument=of_the_client,
                blocking={"crew": test_crewai.sync, "agent": blocking_agent},
                awaited={
                    "crew-in-a-thread": test_crewai.threaded,
                    "akickoff": akickoff,
                    "agent-awaited": agent,
                },
            )
        )

    @pytest.mark.parametrize(
        "way", ["crew", "agent", "crew-in-a-thread", "akickoff", "agent-awaited"]
    )
    def test_stopped_or_left_alone(self, bench: Workbench, way: str):
        with bench.guarded() as scene:
            stopped, healthy = scene.play_in_turn(way, ("endless", "finish3"))
        assert type(stopped.error) is RunAborted
        assert stopped.error.report.rule == "repeated_output"
        assert stopped.counts == REPEATED
        assert healthy == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("aborted", True): 1, ("complete", False): 1}

    @SPANS
    def test_two_in_the_threads_of_a_pool(self, bench: Workbench, *, one_span: bool):
        with bench.guarded() as scene:
            stopped, healthy = asyncio.run(self._both(scene, one_span=one_span))
        assert aborted(stopped).report.rule == "repeated_output"
        assert stopped.counts == REPEATED
        assert healthy == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("aborted", True): 1, ("complete", False): 1}

    @staticmethod
    async def _both(scene: Scene, *, one_span: bool) -> tuple[Outcome, Outcome]:
        """Run a healthy crew until a runaway beside it is over.

        Threads without any context of their own run them, or those that take a span along.
        """
        both = beside(scene, partial(scene.play, "crew"), partial(scene.play, "crew", "finish3"))
        loop = asyncio.get_running_loop()
        in_thread = asyncio.to_thread if one_span else partial(loop.run_in_executor, None)
        with around(scene, one_span=one_span):
            return await asyncio.gather(*map(in_thread, both))


__all__ = [
    "FRAMEWORK",
    "TestCancel",
    "TestMatrix",
    "TestOneAfterAnother",
    "TestOneInsideAnother",
    "TestTwoAtOnce",
]

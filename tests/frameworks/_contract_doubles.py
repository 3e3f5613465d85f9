"""The contract of models in process: exact counts in a real framework, under a guard and without.

No request leaves the process, so the model gate has nothing to refuse. What stops a run here is the
framework's integration, or a veto where a span lets it out; what else comes of the guard alone is
written down for each framework.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted
from otel_loopguard.model_turns import ToolCall
from otel_loopguard.testing import (
    EndlessModel,
    ModelRefusedError,
    RecordingTool,
    ScriptedModel,
    ScriptEndedError,
    recording_tool,
)
from otel_loopguard.testing.double import Double
from tests.frameworks._framework import CAP, Instrument
from tests.frameworks._workbench import traced

ROOT = Path(__file__).parents[2]
FIVE = Policy.none().with_limits(max_llm_calls=5)
ANSWER = "It has been shipped."
LOOKUP = ("lookup", {"order": 7})

Tool: TypeAlias = "RecordingTool[[int], str]"
Run: TypeAlias = Callable[[Any, Any], str]
"""Runs an agent with a model of the framework and a tool, and returns its answer."""


class Doubles(NamedTuple):
    """A framework whose agents are given models in process."""

    module: ModuleType
    """Its integration."""
    aborted: type[RunAborted]
    """What the caller of a run gets that the integration has stopped."""
    model_of: Callable[[Double, TracerProvider], Any]
    instrument: Instrument
    ways: Mapping[str, Run]
    example: str
    """What is in `examples/doubles`."""
    capped: type[Exception]
    """What the caller gets at the framework's own limit of model calls, or of what goes with it."""
    alone: Mapping[str, tuple[int, int, str]]
    """Model calls and tool executions with the guard but without the integration, and the type of
    what the caller gets, by way."""
    silent_ways: tuple[str, ...] = ()
    """Ways in which a call whose arguments are no JSON is no call: the run ends without a text."""
    unseen_ways: tuple[str, ...] = ()
    """Ways in which the integration does not reach a run that no span of the framework shows."""


doubles_of: Callable[[object], Doubles] = attrgetter("module.DOUBLES")
"""Returns the framework that a test's module describes."""


class Scene(NamedTuple):
    """A framework under a guard."""

    doubles: Doubles
    provider: TracerProvider

    def run(self, way: str, double: Double, tool: object) -> str | BaseException:
        """Run an agent; what is raised is returned."""
        model = self.doubles.model_of(double, self.provider)
        try:
            return self.doubles.ways[way](model, tool)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- frameworks wrap
            return error


def nothing(
    provider: TracerProvider,  # noqa: ARG001 -- an `Instrument` is given one
    *,
    content: bool,  # noqa: ARG001 -- as `provider`
) -> AbstractContextManager[None]:
    """Leave the framework as it is, without any spans."""
    return nullcontext()


@contextmanager
def scene(
    doubles: Doubles,
    policy: Policy | None,
    *,
    instrument: Instrument | None = None,
    integrated: bool = True,
) -> Generator[Scene]:
    """Trace a framework's agents, with a guard of this policy if there is one."""
    with traced(instrument or doubles.instrument, content=True) as provider:
        guard = LoopGuardSpanProcessor(policy, mode="observe" if policy is None else "enforce")
        provider.add_span_processor(guard)
        if integrated:
            doubles.module.install(guard)
        try:
            yield Scene(doubles, provider)
        finally:
            doubles.module.uninstall(guard)
            guard.shutdown()


def looking_up() -> Tool:
    @recording_tool
    def lookup(order: int) -> str:
        """Look an order up."""
        return f"nothing is known of order {order}"

    return lookup


class TestDoubles:
    """Models in process, in every way to run an agent of the framework."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test once for every way."""
        if "way" in metafunc.fixturenames:
            metafunc.parametrize("way", tuple(doubles_of(metafunc).ways))

    @pytest.fixture
    def doubles(self, request: pytest.FixtureRequest) -> Doubles:
        return doubles_of(request)

    def test_the_integration_stops_an_endless_model(self, doubles: Doubles, way: str):
        """The sixth call is refused; the tool call that the fifth asked for has been made."""
        model, tool = EndlessModel(), looking_up()
        with scene(doubles, FIVE) as at:
            stopped = at.run(way, model, tool)
        assert isinstance(stopped, RunAborted)
        assert type(stopped) is doubles.aborted
        assert stopped.report.rule == "llm_call_budget"
        assert (stopped.report.model_calls, stopped.report.tool_calls) == (5, 5)
        assert (model.calls, tool.executions) == (5, 5)
        assert [each.arguments for each in tool.calls] == [{"order": 1}] * 5

    def test_calls_count_that_no_span_of_the_framework_shows(self, doubles: Doubles, way: str):
        model, tool = EndlessModel("lookup", {"order": 7}), looking_up()
        with scene(doubles, FIVE, instrument=nothing) as at:
            stopped = at.run(way, model, tool)
        if way in doubles.unseen_ways:
            assert type(stopped) is doubles.capped
            assert model.calls == CAP
        else:
            assert type(stopped) is doubles.aborted
            assert (model.calls, tool.executions) == (5, 5)

    def test_the_guard_alone(self, doubles: Doubles, way: str):
        model, tool = EndlessModel(), looking_up()
        with scene(doubles, FIVE, integrated=False) as at:
            ended = at.run(way, model, tool)
        assert (model.calls, tool.executions, type(ended).__name__) == doubles.alone[way]

    def test_without_a_guard_the_framework_has_the_last_word(self, doubles: Doubles, way: str):
        model, tool = EndlessModel(), looking_up()
        with scene(doubles, None, integrated=False) as at:
            assert type(at.run(way, model, tool)) is doubles.capped
        assert (model.calls, tool.executions) == (CAP, CAP)

    def test_a_tool_call_too_many_is_not_made(self, doubles: Doubles, way: str):
        """The fourth is refused, and then the model call that would hear of it."""
        model, tool = EndlessModel(), looking_up()
        with scene(doubles, Policy.none().with_limits(max_tool_calls=3)) as at:
            assert type(at.run(way, model, tool)) is doubles.aborted
        assert (model.calls, tool.executions) == (4, 3)

    def test_calls_at_once_are_all_made(self, doubles: Doubles, way: str):
        model, tool = EndlessModel(at_once=2), looking_up()
        with scene(doubles, FIVE) as at:
            assert type(at.run(way, model, tool)) is doubles.aborted
        assert (model.calls, tool.executions) == (5, 10)

    def test_a_script_completes(self, doubles: Doubles, way: str):
        model, tool = ScriptedModel([LOOKUP, LOOKUP, ANSWER]), looking_up()
        with scene(doubles, Policy.none().with_limits(max_llm_calls=3, max_tool_calls=2)) as at:
            assert at.run(way, model, tool) == ANSWER
        assert (model.calls, tool.executions) == (3, 2)
        assert tool.calls[-1].arguments == {"order": 7}

    def test_a_script_that_runs_dry_is_an_error(self, doubles: Doubles, way: str):
        model, tool = ScriptedModel([LOOKUP]), looking_up()
        with scene(doubles, FIVE) as at:
            ended = at.run(way, model, tool)
        assert any(isinstance(each, ScriptEndedError) for each in causes(ended))
        assert (model.calls, tool.executions) == (2, 1)

    def test_a_refused_model_ends_the_run(self, doubles: Doubles, way: str):
        model = EndlessModel()

        @recording_tool
        def lookup(order: int) -> str:
            """Look an order up."""
            model.refuse("the test has seen enough")
            return f"nothing is known of order {order}"

        with scene(doubles, None, integrated=False) as at:
            ended = at.run(way, model, lookup)
        assert any(isinstance(each, ModelRefusedError) for each in causes(ended))
        assert (model.calls, lookup.executions) == (2, 1)

    def test_arguments_that_are_no_json_reach_no_tool(self, doubles: Doubles, way: str):
        cut = ToolCall(name="lookup", arguments='{"order": ')
        model, tool = ScriptedModel([cut, ANSWER]), looking_up()
        with scene(doubles, FIVE) as at:
            ended = at.run(way, model, tool)
        is_silent = way in doubles.silent_ways
        assert ended == ("" if is_silent else ANSWER)
        assert (model.calls, tool.executions) == (1 if is_silent else 2, 0)

    def test_an_async_tool_is_awaited(self, doubles: Doubles):
        @recording_tool
        async def lookup(order: int) -> str:
            """Look an order up."""
            await asyncio.sleep(0)
            return f"nothing is known of order {order}"

        model = ScriptedModel([LOOKUP, ANSWER])
        with scene(doubles, FIVE) as at:
            assert at.run("async", model, lookup) == ANSWER
        assert (model.calls, lookup.executions) == (2, 1)

    def test_example(self, doubles: Doubles):
        """In a process of its own: it sets the global tracer provider."""
        result = subprocess.run(
            [sys.executable, f"examples/doubles/{doubles.example}"],
            capture_output=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"},
            text=True,
            timeout=120,
        )
        said = "llm_call_budget: 5 model calls, 5 executions\n"
        assert (result.stdout, result.returncode) == (said, 0)
        assert said.strip() in (ROOT / "docs" / "testing-doubles.md").read_text("utf-8")


def causes(error: object) -> Iterator[BaseException]:
    """What was raised, and what it was raised from."""
    while isinstance(error, BaseException):
        yield error
        error = error.__cause__ or error.__context__


__all__ = ["TestDoubles"]

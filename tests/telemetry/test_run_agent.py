"""A guard on the provider watches the reference loop's spans: it counts what the loop counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from otel_loopguard import (
    AgentResult,
    ModelTurn,
    Policy,
    RunAborted,
    RunReport,
    Tool,
    guarded_run,
    run_agent_async,
)
from otel_loopguard.agent_loop.telemetry import CONTENT
from otel_loopguard.registry.names import STEP_PREVENTED
from tests._run_agent import DONE, PLAYS, Endless, Play, Recorded, Script, asks, call
from tests._tracing import Traced

NO_RULES = Policy.none()
BROKEN = ModelTurn(text="It ra", finish_reason="length", input_tokens=1, output_tokens=1)


@pytest.fixture(params=PLAYS)
def play(request: pytest.FixtureRequest) -> Play:
    return PLAYS[request.param]


@pytest.fixture(params=["", "SPAN_ONLY"], ids=["no content", "content"])
def content(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(CONTENT, request.param)
    return request.param


def watched(
    play: Play, process: Traced, model: Any, *tools: Tool, **options: Any
) -> tuple[AgentResult, RunReport]:
    """Run in a block; return the loop's result, and the report of the guard that watched."""
    with guarded_run() as run:
        result = play(model, tools, tracer_provider=process.provider, **options)
    assert run.report is not None
    return result, run.report


def counted(report: RunReport) -> tuple[int, int, int, str, int, int]:
    return (
        report.steps,
        report.model_calls,
        report.tool_calls,
        report.last_tool,
        report.input_tokens,
        report.output_tokens,
    )


SCRIPTS: dict[str, tuple[Any, ...]] = {
    "complete": (asks(call(n=1)), asks(call(n=2)), DONE),
    "calls at the same time": (asks(call(call_id="a", n=1), call(call_id="b", n=2)), DONE),
    "the same id again": (asks(call(call_id="a", n=1)), asks(call(call_id="a", n=2)), DONE),
    "an unknown tool": (asks(call("serach", q="x")), DONE),
    "wrong arguments": (asks(call(n="one")), DONE),
    "a model that raises": (asks(call(n=1)), ConnectionError()),
    "cut and tried again": (BROKEN, DONE),
    "filtered": (asks(call(n=1)), ModelTurn(text="It", finish_reason="refusal")),
    "invalid action": (asks(call(call_id="a", n=1), call(call_id="a", n=2)),),
    "empty": (ModelTurn(text=" "),),
}


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_counts_what_the_loop_counts(play: Play, process: Traced, name: str):
    process.guard(NO_RULES)
    schema = {"properties": {"n": {"type": "integer"}}}
    tool = Tool(name="search", call=Recorded(), parameters=schema)
    result, report = watched(
        play, process, Script(*SCRIPTS[name]), tool, policy=NO_RULES, retry_output_tokens=9
    )

    assert counted(report) == counted(result.report)
    assert report.open_call_ids == ()


@pytest.mark.usefixtures("content")
def test_retries_count_there_too(play: Play, process: Traced):
    process.guard(NO_RULES)
    tool = Tool(name="search", call=Recorded(TimeoutError(), TimeoutError(), "a", "b"))
    model = Script(asks(call(call_id="a", n=1), call(call_id="b", n=2)), DONE)
    result, report = watched(play, process, model, tool, temporary=(TimeoutError,))

    assert counted(report) == counted(result.report) == (6, 2, 4, "search", 20, 10)
    assert (result.report.status, report.status) == ("complete", "complete")


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize("name", ["complete", "a model that raises", "filtered"])
def test_it_knows_how_the_run_ended(play: Play, process: Traced, name: str):
    process.guard(NO_RULES)
    tool = Tool(name="search", call=Recorded())
    result, report = watched(play, process, Script(*SCRIPTS[name]), tool)

    assert report.status == result.report.status


def test_with_content_both_find_the_loop_at_the_same_step(
    play: Play, process: Traced, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(CONTENT, "SPAN_ONLY")
    process.guard()
    model = Script(*[asks(call(q="x"))] * 9)
    result, report = watched(
        play, process, model, Tool(name="search", call=Recorded(*["nothing"] * 9))
    )

    assert counted(report) == counted(result.report) == (10, 5, 5, "search", 50, 25)
    assert (report.rule, result.report.rule) == ("repeated_result", "repeated_result")
    assert [(v.rule, v.action, v.step, v.count) for v in report.violations] == [
        (v.rule, v.action, v.step, v.count) for v in result.report.violations
    ]


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize(
    ("policy", "expected", "refused"),
    [
        (NO_RULES.with_limits(max_llm_calls=3), (6, 3, 3), "chat"),
        (NO_RULES.with_limits(max_tool_calls=3), (7, 4, 3), "execute_tool search"),
    ],
    ids=["model calls", "tool calls"],
)
@pytest.mark.parametrize("abort", [None, ("veto",)], ids=["all stops", "veto"])
def test_its_veto_ends_the_loop_and_hands_over_the_stop(
    play: Play,
    process: Traced,
    policy: Policy,
    expected: tuple[int, int, int],
    refused: str,
    abort: Any,
):
    process.guard(policy, mode="enforce", abort=abort)
    model, tool = Endless(), Recorded()
    result, report = watched(play, process, model, Tool(name="search", call=tool), policy=NO_RULES)

    assert (result.ending, result.report.status, report.status) == ("aborted",) * 3
    assert isinstance(result.aborted, RunAborted)
    assert (result.aborted, result.aborted.report.rule) == (result.error, report.rule)
    assert (report.steps, report.model_calls, report.tool_calls) == expected
    assert (model.calls, len(tool.executions)) == expected[1:], "what was refused was not made"
    assert report.steps_after_trip == 0
    prevented = [span for span in process.spans if (span.attributes or {}).get(STEP_PREVENTED)]
    assert [span.name for span in prevented] == [refused]


def test_an_attempt_that_was_refused_is_one_of_the_loops(play: Play, process: Traced):
    process.guard(NO_RULES.with_limits(max_llm_calls=1), mode="enforce")
    result, report = watched(play, process, Endless(), Tool(name="search", call=Recorded()))

    assert (report.steps, result.steps, result.model_calls) == (2, 3, 2)


def test_a_caller_that_expects_the_stop_raises_it(play: Play, process: Traced):
    process.guard(NO_RULES.with_limits(max_llm_calls=2), mode="enforce")
    with pytest.raises(RunAborted) as raised, guarded_run("outer") as run:
        result = play(
            Endless(), [Tool(name="search", call=Recorded())], tracer_provider=process.provider
        )
        if result.aborted is not None:
            raise result.aborted

    assert (raised.value.run_id, raised.value.report.rule) == ("outer", "llm_call_budget")
    assert run.report is not None
    assert run.report.status == "aborted"


def test_a_guard_that_sees_no_arguments_says_what_shows_them(
    play: Play, process: Traced, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(CONTENT, raising=False)
    process.guard()
    tools = [Tool(name="search", call=Recorded())]
    play(Script(asks(call(n=1)), DONE), tools, tracer_provider=process.provider)

    [said] = [record.getMessage() for record in caplog.records]
    assert f"{CONTENT}=SPAN_ONLY" in said


def test_what_is_there_to_pass_passes(play: Play, process: Traced):
    """With `abort_exception="base"` the guard around it ends the code around the loop as well."""
    process.guard(NO_RULES.with_limits(max_llm_calls=2), mode="enforce", abort_exception="base")
    model, tools = Endless(), [Tool(name="search", call=Recorded())]
    with pytest.raises(RunAborted) as raised, guarded_run("outer"):
        play(model, tools, tracer_provider=process.provider)
        pytest.fail("the code after it went on")

    assert (model.calls, raised.value.run_id) == (2, "outer")
    assert process.spans[-1].name == "invoke_agent agent", "and it was ended"


@pytest.mark.asyncio
async def test_a_call_that_hangs_is_cancelled_by_the_guard_around_it(process: Traced):
    process.guard(NO_RULES, mode="enforce")

    async def hang(_: object) -> ModelTurn:
        await asyncio.Event().wait()
        return DONE

    with pytest.raises(RunAborted) as raised:
        # Long enough for a machine at work to begin the call that hangs.
        async with guarded_run("outer", max_duration_s=2):
            await run_agent_async(hang, "hello", tracer_provider=process.provider)

    assert raised.value.report.rule == "time_budget"
    assert [span.name for span in process.spans][:2] == ["chat", "invoke_agent agent"]


def test_a_run_without_a_block_is_one_run(play: Play, process: Traced):
    process.guard(NO_RULES.with_limits(max_llm_calls=2), mode="enforce")
    for _ in range(2):
        model = Endless()
        result = play(
            model, [Tool(name="search", call=Recorded())], tracer_provider=process.provider
        )
        assert (result.ending, model.calls) == ("aborted", 2), "nothing is left of the one before"

    assert process.total("loopguard.runs", run__status="aborted") == 2
    assert process.total("loopguard.errors") == 0

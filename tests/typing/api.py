"""How the public API looks to the type checkers of its users. Checked, never run."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from typing_extensions import assert_type

from otel_loopguard import (
    UNKNOWN,
    AbortHook,
    AbortRequest,
    AgentResult,
    Decision,
    LoopGuard,
    LoopGuardError,
    LoopGuardSpanProcessor,
    ModelTurn,
    Policy,
    RecordDropped,
    RunAborted,
    RunInterrupted,
    RunReport,
    Stats,
    Step,
    Tool,
    ToolCall,
    TurnRequest,
    Violation,
    abort_of,
    can_drop,
    guarded_run,
    install,
    read_policy,
    record_dropped,
    run_agent,
    run_agent_async,
    signal_process,
    webhook,
)
from otel_loopguard.testing import Capture, EndlessModel, assert_stops


def engine() -> None:
    guard = LoopGuard(
        Policy.none(), max_steps=20, max_duration_s=60, max_calls_per_tool={"search": 3}
    )
    guard.start(at=0.0)
    decision = guard.check(Step(kind="tool", name="search", arguments={"q": "x"}))
    assert_type(decision, Decision)
    assert_type(decision.allowed, bool)
    assert_type(decision.reason, "str | None")
    assert_type(decision.details, Mapping[str, object])
    assert_type(decision.violations, "tuple[Violation, ...]")
    assert_type(guard.record(Step(kind="llm", tool_calls=(ToolCall(name="a"),))), Decision)
    assert_type(guard.stats(), Stats)
    assert_type(guard.end(), RunReport)
    if not decision.allowed:
        raise LoopGuardError(decision)


def mistakes() -> None:
    LoopGuard(max_stepps=5)  # type: ignore[call-arg]  # there is no such option
    LoopGuard(max_steps="5")  # type: ignore[arg-type]  # options are numbers
    Step("tool", "search")  # type: ignore[call-arg]  # fields are given by name
    Step(kind="tools")  # type: ignore[arg-type]  # there is no such kind


def policies() -> None:
    assert_type(read_policy("loopguard.toml"), Policy)
    assert_type(Policy.from_mapping({"limits": {"max_steps": 5}}), Policy)
    assert_type(Policy.from_toml("mode = 'observe'", source="inline"), Policy)
    Policy(mode="enforce", rules={"repeated_result": {"warn": 3, "abort": 5}}, max_steps=5)


def hook(request: AbortRequest) -> None:
    assert_type(request.violation, Violation)


async def slow_hook(request: AbortRequest) -> None:
    assert_type(request.report, RunReport)


def ready_made_hooks() -> None:
    assert_type(
        webhook(
            "https://hooks.example.com/",
            secret="made-up",
            headers={"X-Key": "y"},
            body=lambda request: {"text": request.violation.message, "id": request.id},
        ),
        AbortHook,
    )
    assert_type(signal_process(), AbortHook)
    assert_type(signal_process(signal.SIGTERM, pid=4711), AbortHook)
    webhook()  # type: ignore[call-arg]  # where to?
    signal_process("SIGINT")  # type: ignore[arg-type]  # a signal is a number


def processor(provider: TracerProvider) -> None:
    provider.add_span_processor(
        LoopGuardSpanProcessor(
            Policy(max_llm_calls=5), mode="enforce", abort_hooks=(hook, slow_hook)
        )
    )
    followed = install("loopguard.toml", mode="enforce")
    assert_type(followed.policy, Policy)
    LoopGuardSpanProcessor(Path("loopguard.toml"))
    LoopGuardSpanProcessor({"limits": {}})  # type: ignore[arg-type]  # of a mapping: from_mapping
    followed.policy = Policy()  # type: ignore[misc]  # that of the file holds


def sampling(provider: TracerProvider) -> None:
    TracerProvider(sampler=RecordDropped(ParentBased(TraceIdRatioBased(0.1)), spans="runs"))
    RecordDropped(0.1)  # type: ignore[arg-type]  # a sampler, not a ratio
    assert_type(record_dropped(provider), bool)
    assert_type(can_drop(provider.sampler), bool)


async def boundaries() -> None:
    with guarded_run() as run:
        assert_type(run, guarded_run)
    async with guarded_run("a-run", max_duration_s=60, max_calls_per_tool={"search": 3}):
        pass
    guarded_run(max_stepps=5)  # type: ignore[call-arg]  # there is no such limit
    guarded_run(engine)  # type: ignore[arg-type]  # a decorator has parentheses


@guarded_run()
def decorated(question: str, *, turns: int = 1) -> str:
    return question * turns


@guarded_run("nightly", max_steps=5)
async def decorated_coroutine(question: str) -> str:
    return question


@guarded_run()
def decorated_generator(items: int) -> Generator[int, str, bool]:
    yield items
    return True


@guarded_run()
async def decorated_stream(items: int) -> AsyncGenerator[int, None]:
    yield items


async def decorated_are_as_they_were() -> None:
    assert_type(decorated("x", turns=2), str)
    assert_type(await decorated_coroutine("x"), str)
    assert_type(decorated_generator(3), Generator[int, str, bool])
    async for item in decorated_stream(3):
        assert_type(item, int)
    decorated(7)  # type: ignore[arg-type]  # parameters are what they were
    decorated("x", turn=2)  # type: ignore[call-arg]  # and their names


def caught(exception: BaseException) -> RunReport | None:
    if isinstance(exception, RunAborted):
        return exception.report
    if isinstance(exception, RunInterrupted):
        return assert_type(exception.aborted, RunAborted).report
    LoopGuardSpanProcessor(abort=("gate", "veto"), abort_exception="base")
    LoopGuardSpanProcessor(abort_exception="BaseException")  # type: ignore[arg-type]  # no name
    aborted = abort_of(exception)
    assert_type(aborted, "RunAborted | None")
    return aborted.report if aborted is not None else None


def unknown() -> Step:
    return Step(kind="tool", name="search", arguments=UNKNOWN)


def model(request: TurnRequest) -> ModelTurn:
    return ModelTurn(text=request.messages[0].text)


async def awaited_model(request: TurnRequest) -> ModelTurn:
    return model(request)


async def loops() -> None:
    tools = [Tool(name="search", call=len, parameters={"type": "object"}, finish=True)]
    result = run_agent(model, "hello", tools, max_steps=8, temporary=(TimeoutError,), agent="a")
    assert_type(result, AgentResult)
    assert_type(result.report, RunReport)
    assert_type(result.history[0].text, str)
    assert_type(result.aborted, "RunAborted | None")
    assert_type(await run_agent_async(awaited_model, result.history, deadline_s=5), AgentResult)
    assert_type(await run_agent_async(model, "hello", clock=float), AgentResult)
    run_agent(awaited_model, "hello")  # type: ignore[arg-type]  # nobody awaits it
    run_agent(model, "hello", max_stepps=8)  # type: ignore[call-arg]  # there is no such option
    run_agent(model, "hello", max_steps=None)  # type: ignore[arg-type]  # no limit is switched off


async def agent() -> str:
    return "done"


async def testing_kit(capture: Capture) -> None:
    with Capture(contents=True) as other:
        other.assert_stops(agent, rule="step_budget", model_calls=5, timeout=None)
    assert_type(capture.assert_stops(agent, model=EndlessModel("search")), "RunReport | None")
    assert_type(await capture.assert_stops_async(agent()), "RunReport | None")
    assert_type(capture.assert_completes(agent), object)
    assert_type(capture.violations, "tuple[Violation, ...]")
    assert_type(capture.reports, "tuple[RunReport, ...]")
    assert_type(assert_stops(agent, timeout=5), "RunReport | None")
    assert_stops(agent, modelcalls=5)  # type: ignore[call-arg]  # there is no such expectation

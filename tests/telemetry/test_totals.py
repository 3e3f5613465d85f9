"""What is added up while runs go on: steps, tokens, cost and evictions; it never goes back."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from opentelemetry.context import Context

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, guarded_run, open_runs
from otel_loopguard.dialects import BUILT_IN, Dialect
from otel_loopguard.engine import open_steps
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from tests._tracing import Traced
from tests.telemetry.test_running import PRICED, by_agent


def test_counters_grow_while_a_run_goes_on(process: Traced) -> None:
    process.guard(PRICED)
    with process.agent():
        for turns in (1, 2, 3):
            process.work(1)
            assert by_agent(process, "loopguard.steps", "loopguard.step.kind") == {
                ("scout", "llm"): turns,
                ("scout", "tool"): turns,
            }
            assert by_agent(process, "loopguard.token.usage", "gen_ai.token.type") == {
                ("scout", "input"): 10 * turns,
                ("scout", "output"): 5 * turns,
            }
            assert by_agent(process, "loopguard.cost") == {"scout": 20 * turns}
        assert process.points("loopguard.run.cost") == []

    (point,) = process.points("loopguard.run.cost")
    assert (point.sum, point.count) == (60, 1)


def test_a_cost_that_is_not_known_adds_nothing(process: Traced) -> None:
    process.guard(Policy.none())
    with process.agent():
        process.work(2)
        assert by_agent(process, "loopguard.cost") == {"scout": 0}
        assert by_agent(process, "loopguard.run.cost.max") == {"scout": 0}

    assert process.points("loopguard.run.cost") == []


def test_what_a_sub_agent_takes_is_its_own(process: Traced) -> None:
    process.guard(PRICED)
    with process.agent():
        process.work(1)
        with process.agent("cook"):
            process.work(2)

    assert by_agent(process, "loopguard.cost") == {"scout": 20, "cook": 40}
    assert by_agent(process, "loopguard.steps", "loopguard.step.kind") == {
        ("scout", "llm"): 1,
        ("scout", "tool"): 1,
        ("cook", "llm"): 2,
        ("cook", "tool"): 2,
    }
    (point,) = process.points("loopguard.run.cost")
    assert (point.attributes["gen_ai.agent.name"], point.sum) == ("scout", 60)


def test_steps_of_a_run_inside_another_are_counted_once(process: Traced) -> None:
    process.guard(PRICED)
    with guarded_run(), process.agent():
        process.work(1)
        with guarded_run(), process.agent("cook"):
            process.work(2)
        process.work(1)

    assert by_agent(process, "loopguard.cost") == {"scout": 40, "cook": 40}
    assert process.total("loopguard.steps") == 8


def test_a_step_that_is_kept_from_happening_is_not_counted(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_llm_calls=2), mode="enforce")
    with pytest.raises(RunAborted), guarded_run() as run:
        process.loop_for_ever()

    assert run.report is not None
    assert run.report.model_calls == 2
    assert by_agent(process, "loopguard.steps", "loopguard.step.kind") == {
        ("scout", "llm"): 2,
        ("scout", "tool"): run.report.tool_calls,
    }


def test_a_call_that_was_forgotten_while_it_was_open_is_counted_as_what_it_is(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_steps, "NAMED", 2)
    process.guard(PRICED)
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with guarded_run() as run, process.agent():
        calls = [
            process.tracer.start_span("execute_tool search", attributes=attributes)
            for _ in range(3)
        ]
        calls[0].end()  # the oldest, which nothing is known of any more: it is counted again
        assert by_agent(process, "loopguard.steps", "loopguard.step.kind") == {
            ("scout", "llm"): 0,
            ("scout", "tool"): 4,
        }
        with process.agent("cook"):
            pass

    assert run.report is not None
    assert run.report.steps == process.total("loopguard.steps")
    kinds = {labels["loopguard.step.kind"] for labels, _ in process.counts("loopguard.steps")}
    assert kinds == {"llm", "tool"}
    for call in calls[1:]:
        call.end()


def counted(record: SpanRecord) -> Step | None:
    """Read a call of a tool that tells what it took, as that of `gen_ai` does not."""
    if record.name != "call":
        return None
    found: Any = record.attributes
    return Step(
        kind="tool",
        name="search",
        input_tokens=found.get("gen_ai.usage.input_tokens"),
        output_tokens=found.get("gen_ai.usage.output_tokens"),
    )


@pytest.mark.parametrize("depth", [1, 2], ids=["by its span", "by the span inside that"])
@pytest.mark.parametrize("tokens", ["input", "output"])
def test_what_a_tool_call_takes_is_told_as_soon_as_it_is_over(
    process: Traced, tokens: str, depth: int
) -> None:
    ours = Dialect(name="ours", read=counted)
    process.guard(Policy.none(), dialects=[ours, *BUILT_IN])
    with process.agent():
        with ExitStack() as calls:
            spans = [
                calls.enter_context(process.tracer.start_as_current_span("call"))
                for _ in range(depth)
            ]
            spans[-1].set_attribute(f"gen_ai.usage.{tokens}_tokens", 7)
        assert by_agent(process, "loopguard.token.usage", "gen_ai.token.type") == {
            ("scout", "input"): 7 if tokens == "input" else 0,
            ("scout", "output"): 7 if tokens == "output" else 0,
        }
        assert process.total("loopguard.steps") == 1


def shut_down(guards: list[LoopGuardSpanProcessor]) -> None:
    guards.pop().shutdown()


def let_go(guards: list[LoopGuardSpanProcessor]) -> None:
    guards.pop()
    gc.collect()


@pytest.mark.parametrize("leave", [shut_down, let_go], ids=["shut-down", "let-go"])
def test_counters_of_several_guards_add_up_and_never_go_back(
    process: Traced, leave: Callable[[list[LoopGuardSpanProcessor]], None]
) -> None:
    process.guard(PRICED)
    with process.agent():
        process.work(1)
    # One that no provider holds hears of spans as a processor does.
    guards = [LoopGuardSpanProcessor(PRICED, mode="observe", meter_provider=process.meters)]
    span: Any = process.tracer.start_span("chat m", attributes={"gen_ai.operation.name": "chat"})
    guards[0].on_start(span)
    span.set_attribute("gen_ai.usage.input_tokens", 7)
    span.end()
    guards[0].on_end(span)
    del span

    def spent() -> float:
        return process.total("loopguard.cost")

    both = spent()
    assert both == 20 + 7 + 7, "the first guard has heard of it too"
    leave(guards)
    assert spent() == both
    with process.agent():
        process.work(1)
    assert spent() == both + 20


def hear_of_too_many(process: Traced, guard: LoopGuardSpanProcessor) -> None:
    """Let a guard hear of four agents at once, and of their end."""
    agent = {"gen_ai.operation.name": "invoke_agent"}
    spans: list[Any] = [
        process.tracer.start_span("invoke_agent", Context(), attributes=agent) for _ in range(4)
    ]
    for span in spans:
        guard.on_start(span)
    for span in spans:  # else what is around this knows the run, and the run the guard
        span.end()
        guard.on_end(span)


@pytest.mark.parametrize("leave", [shut_down, let_go], ids=["shut-down", "let-go"])
def test_evictions_of_a_guard_that_is_no_more_are_counted_still(
    process: Traced,
    monkeypatch: pytest.MonkeyPatch,
    leave: Callable[[list[LoopGuardSpanProcessor]], None],
) -> None:
    monkeypatch.setattr(open_runs, "RUNS", 2)
    guards = [
        LoopGuardSpanProcessor(mode="observe", meter_provider=process.meters) for _ in range(2)
    ]
    for number in range(2):
        hear_of_too_many(process, guards[number])
    assert process.total("loopguard.evictions", store="runs") == 4

    leave(guards)
    assert process.total("loopguard.evictions", store="runs") == 4


def test_evictions_since_metrics_were_last_read_are_counted(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_runs, "RUNS", 2)
    guard = process.guard()
    with guarded_run(), process.agent(), guarded_run(), process.agent(), guarded_run():
        process.work(1)
    guard.shutdown()

    assert process.total("loopguard.evictions", store="runs") == 1

"""A `guarded_run` inside another: a run of its own, whose totals count for the outer one too."""

from __future__ import annotations

import asyncio
import contextvars
import json
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from opentelemetry import baggage, context

from otel_loopguard import AbortRequest, Policy, RunAborted, RunReport, guarded_run
from otel_loopguard.registry import names
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT, Slot
from tests._tracing import ONE_RULE, Traced


def report_of(run: guarded_run) -> RunReport:
    assert run.report is not None
    return run.report


def open_runs(process: Traced) -> dict[str, Run]:
    (guard,) = process.guards
    runs = guard._tracker.runs.open_runs()  # pyright: ignore[reportPrivateUsage]
    return {run.id: run for run in runs}


def found(process: Traced) -> list[tuple[str, str]]:
    """Return the violations that were written: which run, which rule."""
    return [
        (str(labels["loopguard.run.id"]), str(labels["loopguard.rule"]))
        for _, name, labels in process.events()
        if name == "loopguard.violation"
    ]


# ------------------------------------------------------------------------------------- totals


def test_what_an_inner_run_does_counts_for_the_outer_too(process: Traced) -> None:
    process.guard(Policy.none())

    with guarded_run("outer") as outer:
        process.turn()
        with guarded_run("inner") as inner, process.agent():
            process.turn(2)
        process.turn()

    one, both = report_of(inner), report_of(outer)
    assert (one.steps, one.model_calls, one.tool_calls) == (4, 2, 2)
    assert (both.steps, both.model_calls, both.tool_calls) == (8, 4, 4)
    assert (one.input_tokens, both.input_tokens) == (20, 40)
    assert both.duration_s > one.duration_s > 0
    assert [label for label in both.trace if label != "agent:scout"] == [
        *["llm:m", "tool:search"] * 4
    ]
    assert process.total("loopguard.runs") == 2
    assert process.total("loopguard.run.active") == 0


TOTALS = [
    ({"max_steps": 5}, "step_budget"),
    ({"max_llm_calls": 2}, "llm_call_budget"),
    ({"max_tool_calls": 2}, "tool_call_budget"),
    ({"max_calls_per_tool": {"search": 2}}, "tool_call_budget"),
    ({"max_input_tokens": 25}, "token_budget"),
    ({"max_output_tokens": 12}, "token_budget"),
    ({"max_total_tokens": 40}, "token_budget"),
    ({"max_cost_usd": 2.5}, "cost_budget"),
]


@pytest.mark.parametrize(("limits", "rule"), TOTALS)
@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_totals_of_the_outer_run_are_held_against_both(
    process: Traced, limits: Any, rule: str, mode: str
) -> None:
    priced = {"usage": {"price": {"per_request_usd": 1, "input_per_m_usd": 0.0}}}
    priced["usage"]["price"]["output_per_m_usd"] = 0.0
    process.guard(Policy.from_mapping(priced, base=Policy.none()), mode=mode)

    outer, inner = guarded_run("outer", **limits), guarded_run("inner")
    with process.tracer.start_as_current_span("request"), suppress(RunAborted), outer:
        process.turn()
        with inner:
            process.turn(3)

    assert report_of(outer).rule == rule
    assert report_of(inner).rule is None
    assert report_of(inner).violations == ()
    assert found(process) == [("outer", rule)], "once, for the run whose limit it is"
    stopped = "outer" if mode == "enforce" else None
    assert report_of(inner).stopped_with == stopped
    assert report_of(outer).stopped_with is None


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_a_limit_that_both_have_is_reached_by_both(process: Traced, mode: str) -> None:
    """Nothing but the inner one has happened in the outer one."""
    process.guard(Policy.none().with_limits(max_llm_calls=2), mode=mode)

    outer, inner = guarded_run("outer"), guarded_run("inner")
    with process.tracer.start_as_current_span("request"), suppress(RunAborted), outer, inner:
        process.turn(4)

    assert sorted(found(process)) == [("inner", "llm_call_budget"), ("outer", "llm_call_budget")]
    assert report_of(inner).model_calls == report_of(outer).model_calls
    assert report_of(inner).model_calls == (2 if mode == "enforce" else 4)


def test_limits_that_are_no_totals_are_held_against_each_run_alone(process: Traced) -> None:
    limits = {"max_agent_depth": 1, "max_steps_per_minute": 6, "max_context_tokens": 10}
    rows = {"max_consecutive_errors": 1, "max_turns_without_tool": 1, "max_repeated_calls": 5}
    process.guard(Policy.none())

    with guarded_run("outer", **limits, **rows) as outer:  # type: ignore[arg-type]
        for _ in range(3):
            with guarded_run(), process.agent("one"), process.agent("another"):
                for _ in range(2):
                    with process.chat(tokens=(1000, 1), asks=False):
                        pass
                process.turn(2)

    assert report_of(outer).violations == ()
    assert report_of(outer).steps == 18


def test_an_exempt_tool_counts_for_neither(process: Traced) -> None:
    tools = {"tools": {"search": {"exempt": True}}}
    process.guard(Policy.from_mapping(tools, base=Policy.none()))

    with guarded_run("outer", max_tool_calls=1) as outer, guarded_run():
        process.turn(3)

    assert report_of(outer).rule is None
    assert report_of(outer).tool_calls == 3


def test_limits_of_an_agent_are_held_against_it_in_its_own_run(process: Traced) -> None:
    agents = {"agents": {"helper": {"limits": {"max_steps": 3}}}}
    process.guard(Policy.from_mapping(agents, base=Policy.none()))

    inner = guarded_run("inner")
    with guarded_run("outer") as outer:
        for _ in range(2):
            with inner, process.agent("helper"):
                process.turn(2)

    assert report_of(inner).rule == "step_budget"
    assert report_of(outer).rule is None


def test_sub_agents_and_their_usage_are_seen_by_both(process: Traced) -> None:
    process.guard(Policy.none())

    with guarded_run() as outer, guarded_run() as inner, process.agent():
        with process.tool("ask_helper"), process.agent("helper") as helper:
            helper.set_attribute("gen_ai.usage.input_tokens", 7)
        with process.tool():
            pass

    assert report_of(inner).tool_calls == report_of(outer).tool_calls == 1
    assert report_of(inner).input_tokens == report_of(outer).input_tokens == 7


def test_calls_without_a_span_are_counted_by_both(process: Traced) -> None:
    process.guard(Policy.none())

    with guarded_run() as outer:
        with guarded_run() as inner, process.agent():
            for _ in range(3):  # each asks for a tool, of which nothing is seen
                with process.chat():
                    pass
        with process.tool():
            pass

    assert (report_of(inner).steps, report_of(inner).tool_calls) == (3, 3)
    assert (report_of(outer).steps, report_of(outer).tool_calls) == (4, 4)


def test_a_conversation_s_totals_count_each_step_once(process: Traced) -> None:
    process.guard(Policy(scope="conversation", rules={}, max_tool_calls=5))
    conversation = {"gen_ai.conversation.id": "c"}

    def call(times: int) -> None:
        for _ in range(times):
            with process.tracer.start_as_current_span(
                "execute_tool t", attributes={"gen_ai.operation.name": "execute_tool"}
            ):
                pass

    def talk(first: int, inside: int) -> guarded_run:
        with (
            process.tracer.start_as_current_span("turn", attributes=conversation),
            guarded_run("outer") as outer,
        ):
            call(first)
            with guarded_run("inner"):
                call(inside)
        return outer

    assert report_of(talk(1, 2)).rule is None
    assert report_of(talk(0, 2)).rule is None
    assert report_of(talk(0, 1)).rule == "tool_call_budget", "the sixth of the conversation"
    assert [run for run, _ in found(process)] == ["outer"]


# ------------------------------------------------------------------------------ rules, silence


def test_what_is_repeated_in_an_inner_run_is_not_held_against_the_outer(process: Traced) -> None:
    process.guard(ONE_RULE)

    inner = guarded_run("inner")
    with guarded_run("outer") as outer:
        for _ in range(4):
            with inner, process.agent():
                process.work(2)

    assert report_of(inner).violations == ()
    assert report_of(outer).violations == ()
    assert report_of(outer).tool_calls == 8


def test_nor_does_it_end_what_the_outer_one_repeats(process: Traced) -> None:
    process.guard(ONE_RULE)

    with guarded_run("outer") as outer, process.agent():
        for turn_number in range(5):
            process.work(1)
            with guarded_run("inner"), process.agent():
                process.work(1, name="other", arguments={"n": turn_number})

    assert [(found.action, found.count) for found in report_of(outer).violations] == [
        ("warn", 3),
        ("abort", 5),
    ]


def test_work_in_an_inner_run_is_no_silence_for_the_outer(process: Traced) -> None:
    asked: list[AbortRequest] = []
    came = threading.Event()

    def hook(request: AbortRequest) -> None:
        asked.append(request)
        came.set()

    process.guard(Policy.none(), abort_hooks=[hook])
    with guarded_run("outer", max_idle_s=0.3) as outer:
        process.turn()
        with guarded_run("inner"), process.agent():
            for _ in range(6):
                process.turn()
                time.sleep(0.1)
            assert asked == []
            assert came.wait(10), "it is silent now"

    assert [(request.run_id, request.violation.rule) for request in asked] == [
        ("outer", "idle_run")
    ]
    assert report_of(outer).rule == "idle_run"


def test_the_outer_s_time_runs_out_while_the_inner_one_hangs(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    outer, inner = guarded_run("outer", max_duration_s=0.2), guarded_run("inner")

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async with outer, inner:
                with process.agent():
                    process.turn()
                    await asyncio.sleep(60)
        assert raised.value.run_id == "outer"

    asyncio.run(main())
    assert (report_of(outer).rule, report_of(outer).status) == ("time_budget", "aborted")
    assert (report_of(inner).stopped_with, report_of(inner).status) == ("outer", "aborted")


# ------------------------------------------------------------------------------------ stopping


def test_an_inner_trip_ends_with_the_inner_run(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    with guarded_run("outer") as outer:
        process.turn()
        with pytest.raises(RunAborted) as raised, guarded_run("inner", max_llm_calls=2) as inner:
            process.loop_for_ever()
        process.turn()

    assert raised.value.report.rule == report_of(inner).rule == "llm_call_budget"
    assert raised.value.run_id == "inner"
    assert report_of(inner).stopped_with is None
    assert (report_of(outer).rule, report_of(outer).model_calls) == (None, 4)
    assert report_of(outer).status != "aborted"


def test_an_inner_stop_that_nobody_catches_stays_that_of_the_inner_run(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    with (
        pytest.raises(RunAborted) as raised,
        guarded_run("outer") as outer,
        guarded_run("inner", max_llm_calls=2) as inner,
    ):
        process.loop_for_ever()

    assert raised.value.report.rule == report_of(inner).rule
    assert raised.value.run_id == "inner"
    assert report_of(outer).rule is None


def test_an_inner_stop_in_disguise_is_not_taken_for_the_outer_s(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")

    def framework() -> None:
        try:
            with guarded_run("inner", max_llm_calls=2):
                process.loop_for_ever()
        except RunAborted as error:
            raise LookupError("the tool failed") from error

    with pytest.raises(LookupError), guarded_run("outer") as outer:
        process.turn()
        framework()

    assert report_of(outer).status != "aborted"


def test_an_outer_trip_stops_both_and_each_says_so(process: Traced) -> None:
    asked: list[str] = []

    def hook(request: AbortRequest) -> None:
        asked.append(request.run_id)

    process.guard(Policy.none(), mode="enforce", abort_hooks=[hook])
    blocks = [guarded_run("a", max_llm_calls=3), guarded_run("b"), guarded_run("c")]
    caught: list[RunAborted] = []

    def nest(left: list[guarded_run]) -> None:
        if not left:
            process.loop_for_ever()
        try:
            with left[0]:
                nest(left[1:])
        except RunAborted as error:
            caught.append(error)
            raise

    with pytest.raises(RunAborted):
        nest(blocks)

    assert [error.run_id for error in caught] == ["c", "b", "a"]
    reports = [report_of(block) for block in blocks]
    assert [error.report for error in reversed(caught)][:2] == reports[:2]
    assert [report.rule for report in reports] == ["llm_call_budget", None, None]
    assert [report.stopped_with for report in reports] == [None, "a", "a"]
    assert {(report.status, report.model_calls) for report in reports} == {("aborted", 3)}
    assert "part of run 'a'" in str(caught[0])
    assert asked == ["a"]
    assert process.total("loopguard.aborts", abort__hook="gate") == 1
    assert process.total("loopguard.violations") == 1


def test_a_run_inside_one_that_was_stopped_is_refused_from_its_first_request(
    process: Traced,
) -> None:
    process.guard(Policy.none(), mode="enforce")

    with pytest.raises(RunAborted) as raised, guarded_run("outer", max_llm_calls=1):
        with suppress(RunAborted):
            process.loop_for_ever()
        for _ in range(2):
            with pytest.raises(RunAborted) as refused, guarded_run():
                process.request_model()
            assert refused.value.report.stopped_with == "outer"
            assert refused.value.report.model_calls == 0
        raise ValueError("of no interest")

    assert raised.value.report.model_calls == 1


def test_steps_that_still_start_in_an_inner_run_have_the_outer_s_task_cancelled(
    process: Traced,
) -> None:
    process.guard(Policy.none(), mode="enforce")

    async def endless() -> None:
        with process.agent():
            while True:
                with suppress(RunAborted):
                    process.turn()
                with process.tool():
                    pass
                await asyncio.sleep(0)

    inner = guarded_run("inner")

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async with guarded_run("outer", max_llm_calls=2), inner:
                await asyncio.gather(endless(), asyncio.sleep(60))
        assert raised.value.run_id == "outer"
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        assert report_of(inner).stopped_with == "outer"
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    asyncio.run(main())


def test_model_calls_that_the_gate_does_not_know_have_the_outer_s_task_cancelled(
    process: Traced,
) -> None:
    process.guard(Policy.none(), mode="enforce")
    outer, turns = guarded_run("outer", max_llm_calls=2), list[int]()

    async def main() -> None:
        with pytest.raises(RunAborted):
            async with outer, guarded_run("inner"):
                while True:
                    turns.append(1)
                    with process.chat():
                        await asyncio.sleep(0)

    asyncio.run(main())
    assert len(turns) == 4, "refused at the third, which ran; cancelled in the fourth"
    assert report_of(outer).model_calls == 4


def test_a_hook_that_stops_nothing_has_stopped_neither(process: Traced) -> None:
    asked: list[str] = []

    def hook(request: AbortRequest) -> None:
        asked.append(request.run_id)

    process.guard(Policy.none(), abort_hooks=[hook], abort=("gate",))
    with guarded_run("outer", max_llm_calls=1) as outer, guarded_run("inner") as inner:
        process.work(3)  # by a client that the gate does not know

    assert asked == ["outer"]
    assert (report_of(outer).rule, report_of(outer).status) == ("llm_call_budget", "running")
    assert (report_of(inner).stopped_with, report_of(inner).status) == (None, "running")
    assert report_of(inner).model_calls == report_of(outer).model_calls == 3


def test_both_cancelled_at_once_is_the_outer_s_stop(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce", abort=("cancel",))

    async def endless() -> None:
        with process.agent():
            while True:
                process.work(1)
                await asyncio.sleep(0)

    inner = guarded_run("inner", max_llm_calls=2)

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async with guarded_run("outer", max_llm_calls=2), inner:
                await endless()
        assert raised.value.run_id == "outer"
        assert report_of(inner).rule == "llm_call_budget"

    asyncio.run(main())


# ------------------------------------------------------------------------- requests in parallel


def test_places_of_inner_runs_are_held_in_the_outer_too(process: Traced) -> None:
    """Eight inner runs ask at once: five requests leave, exactly."""
    guard = process.guard(Policy.none(), mode="enforce")
    at_once, left = threading.Barrier(8), threading.Barrier(5)
    refused: list[RunAborted] = []

    def ask(number: int) -> None:
        with guarded_run(f"inner {number}"):
            at_once.wait(10)
            allowed = guard.admit()
            assert allowed is not None
            left.wait(10)
            allowed.over(failed=False)

    def work(number: int) -> None:
        try:
            ask(number)
        except RunAborted as error:
            refused.append(error)

    with guarded_run("outer", max_llm_calls=5) as outer, ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, work, n) for n in range(8)]
        for job in jobs:
            job.result()

    assert len(refused) == 3
    assert {error.report.stopped_with for error in refused} == {"outer"}
    assert report_of(outer).model_calls == 5
    assert process.total("loopguard.violations") == 1


def test_a_request_that_becomes_a_step_gives_up_its_places(process: Traced) -> None:
    guard = process.guard(Policy.none(), mode="enforce")

    with guarded_run("outer") as outer, guarded_run("inner") as inner:
        allowed = guard.admit()
        assert allowed is not None
        assert [run.ahead for run in open_runs(process).values()] == [1, 1]
        with process.chat():
            assert [run.ahead for run in open_runs(process).values()] == [0, 0]
        allowed.over(failed=False)
        failing = guard.admit()
        assert failing is not None
        failing.over(failed=True)
        assert [run.ahead for run in open_runs(process).values()] == [0, 0]

    assert report_of(inner).model_calls == report_of(outer).model_calls == 1


# --------------------------------------------------------------------- the order in which they end


def test_what_goes_on_after_the_outer_block_is_held_against_the_inner_alone(
    process: Traced,
) -> None:
    process.guard(Policy.none(), mode="enforce")
    outer, inner = guarded_run("outer", max_llm_calls=2), guarded_run("inner")

    with outer:
        inside = contextvars.copy_context()  # as a task has, or a thread that was given it
        inside.run(inner.__enter__)
        inside.run(process.turn)
    inside.run(process.turn, 3)
    inside.run(inner.__exit__, None, None, None)

    assert (report_of(outer).model_calls, report_of(inner).model_calls) == (1, 4)
    assert report_of(outer).rule is None


def test_a_stop_of_the_outer_run_does_not_outlive_it(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")
    goes_on, is_over = threading.Event(), threading.Event()

    def work() -> RunReport | None:
        with guarded_run("inner") as inner:
            process.turn()
            goes_on.set()
            assert is_over.wait(20)
            with suppress(ValueError), guarded_run("mistaken") as mistaken:
                process.turn()
                raise ValueError("the application's own")
            assert report_of(mistaken).status != "aborted"
            process.turn()
        return inner.report

    with ThreadPoolExecutor(1) as pool:
        with guarded_run("outer", max_tool_calls=1) as outer:
            ended = pool.submit(contextvars.copy_context().run, work)
            assert goes_on.wait(20)
            with process.tool():
                pass
            with pytest.raises(RunAborted):
                process.request_model()
        is_over.set()
        report = ended.result(20)

    assert (report_of(outer).status, report_of(outer).rule) == ("aborted", "tool_call_budget")
    assert report is not None
    assert (report.status, report.stopped_with, report.model_calls) == ("running", None, 3)


def test_what_comes_out_after_the_inner_block_counts_for_the_outer(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_total_tokens=40), mode="enforce")

    def streamed() -> Any:
        with guarded_run():
            return process.tracer.start_span("chat m", attributes={"gen_ai.operation.name": "chat"})

    with guarded_run("outer") as outer:
        for _ in range(3):
            span = streamed()
            span.set_attribute("gen_ai.usage.input_tokens", 15)
            span.end()
        assert open_runs(process)["outer"].guard.stats().open_steps == 0
        with pytest.raises(RunAborted):
            process.request_model()

    assert (report_of(outer).input_tokens, report_of(outer).rule) == (45, "token_budget")


def test_a_call_that_runs_a_block_is_no_call_of_the_inner_run(process: Traced) -> None:
    process.guard(Policy.none())
    outer, inner = guarded_run("outer"), guarded_run("inner")
    boss, research = process.agent("boss"), process.tool("research")
    with outer, boss, research, inner, process.agent("scout"), process.tool():
        pass

    assert (report_of(outer).tool_calls, report_of(inner).tool_calls) == (1, 1)


def test_what_the_inner_run_alone_refused_is_not_held_against_the_outer(process: Traced) -> None:
    process.guard(Policy.none(), mode="enforce")
    with guarded_run("outer", max_tool_calls=1) as outer:
        with guarded_run("inner", max_llm_calls=1):
            with process.chat():
                pass
            with process.chat():  # its client is none that the gate knows
                for _ in range(2):
                    with process.tool():
                        pass
        assert not open_runs(process)["outer"].escaped

    assert (report_of(outer).rule, report_of(outer).steps_after_trip) == ("tool_call_budget", 0)


def test_what_goes_on_after_the_inner_block_belongs_to_the_outer(process: Traced) -> None:
    process.guard(Policy.none())

    with guarded_run("outer") as outer:
        with guarded_run("inner") as inner:
            process.turn()
            inside = contextvars.copy_context()
        inside.run(process.turn, 2)

    assert (report_of(inner).model_calls, report_of(outer).model_calls) == (1, 3)
    assert process.total("loopguard.runs") == 2


def test_an_outer_run_in_which_nothing_else_happens_is_there_from_the_inner_s_start(
    process: Traced,
) -> None:
    process.guard(Policy.none())

    with guarded_run("outer") as outer, guarded_run("inner"):
        assert open_runs(process) == {}
        with process.tool():
            assert list(open_runs(process)) == ["outer", "inner"]
            assert process.total("loopguard.run.active") == 2

    assert report_of(outer).tool_calls == 1
    assert process.total("loopguard.run.active") == 0


def test_blocks_that_are_opened_inside_each_other_for_ever_are_let_go_of(process: Traced) -> None:
    """A job that starts the next one, in a block of its own, before it ends."""
    process.guard(Policy.none())
    depths: list[int] = []

    def depth(held: Slot | Run | None) -> int:
        return 0 if held is None else 1 + depth(held.outer)

    async def job(left: int) -> None:
        async with guarded_run():
            with process.tool():
                depths.append(depth(list(open_runs(process).values())[-1]))
            depths.append(depth(CURRENT.get()))
            if left:
                jobs.append(asyncio.get_running_loop().create_task(job(left - 1)))
                await asyncio.sleep(0)

    jobs: list[asyncio.Task[None]] = []

    async def main() -> None:
        await job(30)
        while jobs:
            await jobs.pop(0)

    asyncio.run(main())
    assert len(depths) == 62
    assert max(depths) <= 3


def test_so_are_blocks_that_overlap_with_the_one_after_the_next(process: Traced) -> None:
    process.guard(Policy.none())

    def depth(held: Slot | Run | None) -> int:
        return 0 if held is None else 1 + depth(held.outer)

    blocks: list[tuple[contextvars.Context, guarded_run]] = []
    inside = contextvars.copy_context()
    for _ in range(30):
        inside, block = inside.copy(), guarded_run()
        inside.run(block.__enter__)
        inside.run(lambda: process.tracer.start_span("execute_tool t").end())
        blocks.append((inside, block))
        if len(blocks) > 2:
            left, oldest = blocks.pop(0)
            left.run(oldest.__exit__, None, None, None)
        assert depth(inside[CURRENT]) <= 4
        assert max(depth(run) for run in open_runs(process).values()) <= 4
    for context_of, block in reversed(blocks):
        context_of.run(block.__exit__, None, None, None)


def test_a_run_that_baggage_names_has_no_run_inside_it(process: Traced) -> None:
    process.guard(Policy.none())
    token = context.attach(baggage.set_baggage(names.RUN_ID, "named"))
    try:
        with guarded_run("block") as run:
            process.turn()
        assert open_runs(process) == {}
        with process.tool():
            pass
        assert list(open_runs(process)) == ["named"]
    finally:
        context.detach(token)

    assert report_of(run).tool_calls == 1


# ------------------------------------------------------------------------------ limits of a block


LIMITS: list[tuple[Mapping[str, Any], Mapping[str, Any], str | None]] = [
    ({"max_llm_calls": 2}, {}, "llm_call_budget"),
    ({"max_llm_calls": 2}, {"max_llm_calls": 9}, None),
    ({"max_llm_calls": 2}, {"max_llm_calls": None}, None),
    ({"max_llm_calls": 9}, {"max_llm_calls": 2}, "llm_call_budget"),
    ({}, {"max_steps": 3}, "step_budget"),
    ({"max_steps": 3}, {"max_llm_calls": 9}, "step_budget"),
]


@pytest.mark.parametrize(("policy", "own", "rule"), LIMITS)
def test_limits_of_a_block_take_the_place_of_the_policy_s(
    process: Traced, policy: Any, own: Any, rule: str | None
) -> None:
    process.guard(Policy.none().with_limits(**policy))

    with guarded_run("one", **own) as run:
        process.turn(3)
    with guarded_run("next") as following:
        process.turn(1)

    assert report_of(run).rule == rule
    assert report_of(following).rule is None


def test_a_block_s_own_time_is_up_while_it_hangs(process: Traced) -> None:
    """No other run of this guard has a limit on time."""
    process.guard(Policy.none(), mode="enforce")

    async def main() -> None:
        with pytest.raises(RunAborted) as raised:
            async with guarded_run(max_duration_s=0.1):
                with process.agent():
                    process.turn()
                    await asyncio.sleep(60)
        assert raised.value.report.rule == "time_budget"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_stepz": 5}, "max_stepz: there is no such option here; did you mean 'max_steps'"),
        ({"max_steps": "5"}, "max_steps: expected"),
        ({"max_duration_s": -1}, "max_duration_s: expected"),
    ],
)
def test_a_mistake_in_a_limit_fails_where_the_block_is_made(limits: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        guarded_run("r", **limits)


def test_a_block_with_limits_has_its_totals_to_itself_in_a_conversation(process: Traced) -> None:
    process.guard(Policy(scope="conversation", rules={}, max_tool_calls=3))
    conversation = {"gen_ai.conversation.id": "c"}
    reports: list[RunReport] = []
    for limits in ({}, {"max_tool_calls": 2}, {}):
        with (
            process.tracer.start_as_current_span("turn", attributes=conversation),
            guarded_run(**limits) as run,  # type: ignore[arg-type]
        ):
            for _ in range(2):
                with process.tool():
                    pass
        reports.append(report_of(run))

    assert [report.rule for report in reports] == [None, None, "tool_call_budget"]


@pytest.mark.parametrize("inside", ["block", "agent"])
def test_answers_of_calls_without_a_span_are_read_in_the_inner_run(
    process: Traced, inside: str
) -> None:
    """What a call came to stands in the next model call's input, whatever is around the run."""
    rules = {"rules": {"repeated_result": {"warn": 2, "abort": 3}}}
    process.guard(Policy.from_mapping(rules, base=Policy.none()), mode="enforce")
    said: list[Any] = [{"role": "user", "parts": [{"type": "text", "content": "go"}]}]
    requests = 0

    def ask(number: int) -> None:
        call: Any = {"type": "tool_call", "id": f"call-{number}", "name": "s", "arguments": {}}
        answer = {"type": "tool_call_response", "id": f"call-{number}", "response": "same"}
        known = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(said),
        }
        turn: Any = {"role": "assistant", "parts": [call], "finish_reason": "tool_call"}
        with process.tracer.start_as_current_span("chat m", attributes=known) as span:
            process.request_model()
            span.set_attribute("gen_ai.output.messages", json.dumps([turn]))
        said.extend([turn, {"role": "tool", "parts": [answer]}])

    around = process.agent("boss") if inside == "agent" else nullcontext()
    with guarded_run("outer"), around, pytest.raises(RunAborted), guarded_run("inner"):
        for number in range(9):
            ask(number)
            requests += 1

    assert requests == 3

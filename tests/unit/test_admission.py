"""May this model request leave? Claims, places, and what becomes of them."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, guarded_run
from otel_loopguard.admission import Admission
from otel_loopguard.places import REQUESTS
from otel_loopguard.runs import Run
from tests._tracing import Traced


def limit(calls: int) -> Policy:
    return Policy.none().with_limits(max_llm_calls=calls)


@contextmanager
def request(guard: LoopGuardSpanProcessor) -> Generator[Admission]:
    """Make a model request; what the block raises is its failure."""
    allowed = guard.admit()
    assert allowed is not None
    failed = True
    try:
        yield allowed
        failed = False
    finally:
        allowed.over(failed=failed)


def make(guard: LoopGuardSpanProcessor, times: int = 1) -> None:
    for _ in range(times):
        with request(guard):
            pass


def run_in(guard: LoopGuardSpanProcessor) -> Run:
    run = guard._tracker.runs.in_context()  # pyright: ignore[reportPrivateUsage]
    assert run is not None
    return run


# ---------------------------------------------------------------------- claims of open steps


def test_a_request_and_its_retries_claim_the_step_around_them(process: Traced) -> None:
    guard = process.guard(limit(2), mode="enforce")
    with process.agent():
        for _ in range(2):
            with process.chat():
                make(guard, 3)
        run = run_in(guard)

        assert (run.ahead, run.report().model_calls) == (0, 2)


def test_a_request_claims_an_open_step_that_no_span_leads_to(process: Traced) -> None:
    """An instrumentation may start spans that it never makes current."""
    guard = process.guard(limit(2), mode="enforce")
    with process.agent():
        spans = [process.tracer.start_span("chat m") for _ in range(2)]
        make(guard, 2)
        for span in spans:
            span.end()
        assert run_in(guard).report().model_calls == 2
        with pytest.raises(RunAborted), request(guard):
            pass


def test_a_failed_request_gives_its_claim_back_for_the_retry(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with process.agent():
        span = process.tracer.start_span("chat m")
        for _ in range(3):
            with pytest.raises(ConnectionError), request(guard):
                raise ConnectionError
        make(guard)
        span.end()

        assert (run_in(guard).ahead, run_in(guard).report().model_calls) == (0, 1)


def test_a_claimed_step_is_not_claimed_by_another_request(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with process.agent():
        span = process.tracer.start_span("chat m")
        with request(guard), pytest.raises(RunAborted), request(guard):
            pass
        span.end()


def test_a_step_of_another_run_is_not_claimed(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")

    def other() -> None:
        with process.agent("other"):
            make(guard)
            assert run_in(guard).ahead == 1

    with process.agent("one"), process.chat(), guarded_run():
        make(guard)
        assert run_in(guard).ahead == 1
    with process.agent("one"):
        first = process.tracer.start_span("chat m")
        contextvars.Context().run(other)
        assert run_in(guard).ahead == 0
        first.end()


# ------------------------------------------------------------------------------------- places


def test_a_request_without_a_span_holds_a_place(process: Traced) -> None:
    guard = process.guard(limit(3), mode="enforce")
    with process.agent():
        make(guard, 3)
        with pytest.raises(RunAborted) as raised, request(guard):
            pass

    report = raised.value.report
    assert report.rule == "llm_call_budget"
    assert [(each.count, each.threshold, each.phase) for each in report.violations] == [
        (4, 3, "pre")
    ]


def test_a_block_without_any_span_is_enough(process: Traced) -> None:
    guard = process.guard(limit(3), mode="enforce")
    left: list[int] = []

    with pytest.raises(RunAborted) as raised, guarded_run("bare") as run:
        while True:
            with request(guard):
                left.append(1)

    assert len(left) == 3
    assert raised.value.report.rule == "llm_call_budget"
    assert run.report is not None
    assert run.report.status == "aborted"
    assert process.total("loopguard.run.active") == 0
    assert process.counts("loopguard.runs") == [
        (
            {
                "gen_ai.agent.name": "",
                "loopguard.run.status": "aborted",
                "loopguard.tripped": True,
            },
            1,
        )
    ]


def test_a_request_that_fails_without_a_step_gives_its_place_back(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with process.agent():
        for _ in range(5):
            with pytest.raises(ConnectionError), request(guard):
                raise ConnectionError
        make(guard)
        assert run_in(guard).ahead == 1


def test_a_step_that_starts_inside_its_request_takes_the_place_over(process: Traced) -> None:
    """The gate may sit above the instrumentation."""
    guard = process.guard(limit(3), mode="enforce")
    with process.agent():
        for _ in range(3):
            with request(guard), process.chat():
                pass
        run = run_in(guard)
        assert (run.ahead, run.report().model_calls) == (0, 3)
        with pytest.raises(RunAborted), request(guard):
            pass


def test_a_step_that_shows_only_at_its_end_takes_the_place_over(process: Traced) -> None:
    guard = process.guard(limit(3), mode="enforce")
    with process.agent():
        for _ in range(3):
            with process.tracer.start_as_current_span("call") as span:
                make(guard)
                assert run_in(guard).ahead == 1
                span.set_attribute("gen_ai.operation.name", "chat")
            assert run_in(guard).ahead == 0
        with pytest.raises(RunAborted), request(guard):
            pass
        assert run_in(guard).report().model_calls == 3


def test_a_step_that_is_written_down_afterwards_takes_the_place_over(process: Traced) -> None:
    guard = process.guard(limit(3), mode="enforce")
    with process.agent():
        for _ in range(3):
            started_ns = time.time_ns()
            make(guard)
            process.tracer.start_span("chat m", start_time=started_ns).end()
        assert (run_in(guard).ahead, run_in(guard).report().model_calls) == (0, 3)


def test_requests_of_which_nobody_writes_count_beside_those_of_which_somebody_does(
    process: Traced,
) -> None:
    """A tool that asks a model by itself, in an agent whose own model calls have spans."""
    guard = process.guard(limit(5), mode="enforce")
    left: list[str] = []

    def agent() -> None:
        with process.agent():
            while True:
                with process.chat(), request(guard):
                    left.append("seen")
                with process.tool(), request(guard):
                    left.append("unseen")

    with pytest.raises(RunAborted):
        agent()
    assert left == ["seen", "unseen", "seen", "unseen", "seen"]


def test_a_failure_gives_back_its_own_place_and_nobody_else_s(process: Traced) -> None:
    guard = process.guard(limit(2), mode="enforce")
    with process.agent():
        one = contextvars.copy_context()
        other = contextvars.copy_context()
        first = one.run(guard.admit)
        second = other.run(guard.admit)
        assert first is not None
        assert second is not None
        other.run(process.tracer.start_span, "chat m").end()  # the second has become a step
        other.run(second.over, failed=True)
        run = run_in(guard)
        assert (run.ahead, run.report().model_calls) == (1, 1), "the first is still on its way"
        with pytest.raises(RunAborted), request(guard):
            pass


def test_a_step_that_starts_meanwhile_leaves_another_request_s_place_alone(
    process: Traced,
) -> None:
    """A tool that asks a model by itself, beside a model call of the agent that has a span."""
    guard = process.guard(limit(2), mode="enforce")
    with process.agent():
        tool = contextvars.copy_context()
        on_its_way = tool.run(guard.admit)
        assert on_its_way is not None
        with process.chat(), request(guard):
            pass
        assert run_in(guard).ahead == 1
        with pytest.raises(RunAborted), request(guard):
            pass
        tool.run(on_its_way.over, failed=False)


def test_a_step_that_starts_counts_on_top_of_the_requests_of_which_nobody_writes(
    process: Traced,
) -> None:
    guard = process.guard(limit(2), mode="enforce")
    with process.agent():
        make(guard, 2)
        with process.chat():
            assert run_in(guard).trip is not None
            with pytest.raises(RunAborted), request(guard):
                pass


def test_places_do_not_pile_up(process: Traced) -> None:
    guard = process.guard(Policy.none(), mode="enforce")
    before = REQUESTS.get()
    with process.agent():
        make(guard, 1_000)
        run = run_in(guard)
        assert (run.places.ahead, run.places.unseen) == (1_000, 1_000)
        assert REQUESTS.get() == before


def test_steps_on_their_way_count_for_the_step_budget_too(process: Traced) -> None:
    guard = process.guard(Policy.none().with_limits(max_steps=3), mode="enforce")
    with process.agent():
        make(guard, 2)
        with process.tool():
            pass
        with pytest.raises(RunAborted), request(guard):
            pass


# ----------------------------------------------------------------------------------- refusals


def test_a_refused_call_is_not_counted(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with pytest.raises(RunAborted), guarded_run() as run, process.agent():
        for _ in range(2):
            with process.chat(), request(guard):
                pass

    assert run.report is not None
    assert run.report.model_calls == 1


def test_a_refused_call_whose_span_is_not_current_is_not_counted(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with guarded_run() as run, process.agent():
        for _ in range(2):
            span = process.tracer.start_span("chat m")
            if run_in(guard).trip is None:
                make(guard)
            else:
                with pytest.raises(RunAborted), request(guard):
                    pass
            span.end()
        assert not run_in(guard).escaped

    assert run.report is not None
    assert run.report.model_calls == 1


def test_a_refused_call_that_shows_only_at_its_end_is_not_counted(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")

    def call() -> None:
        with process.tracer.start_as_current_span("call") as span:
            try:
                with process.tracer.start_as_current_span("POST"):
                    make(guard)
            finally:
                span.set_attribute("gen_ai.operation.name", "chat")

    with pytest.raises(RunAborted), guarded_run() as run, process.agent():
        call()
        call()
    assert run.report is not None
    assert run.report.model_calls == 1


def test_a_late_tool_whose_own_request_was_refused_is_counted(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")

    with guarded_run() as run, process.agent():
        make(guard)
        with process.tracer.start_as_current_span("work") as span:
            with pytest.raises(RunAborted), request(guard):
                pass
            span.set_attribute("gen_ai.operation.name", "execute_tool")
    assert run.report is not None
    assert run.report.tool_calls == 1


def test_every_request_of_a_tripped_run_is_refused(process: Traced) -> None:
    guard = process.guard(Policy.none().with_limits(max_tool_calls=1), mode="enforce")
    with process.agent():
        with process.chat():
            make(guard)
        for _ in range(2):
            with process.tool():
                pass
        for _ in range(5):
            with pytest.raises(RunAborted) as raised, process.chat(), request(guard):
                pass
            assert raised.value.report.rule == "tool_call_budget"
        assert run_in(guard).report().model_calls == 1
        assert run_in(guard).refused_requests == 5


def test_requests_of_no_run_and_of_other_runs_pass(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    make(guard, 5)
    with process.agent():
        make(guard)
        with pytest.raises(RunAborted), request(guard):
            pass
    make(guard, 5)
    with process.agent():
        make(guard)
    with process.tracer.start_as_current_span("web request"):
        make(guard, 5)


def test_the_explicit_run_goes_before_the_span(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with process.agent():
        make(guard)
        with guarded_run():
            make(guard)


def test_an_agent_s_context_goes_before_a_bare_root(process: Traced) -> None:
    guard = process.guard(limit(2), mode="enforce")
    with process.tracer.start_as_current_span("web request"):
        with process.chat():
            make(guard)
        bare = run_in(guard)
        agent = process.tracer.start_span("invoke_agent scout")
        make(guard)
        assert bare.ahead == 0
        assert run_in(guard).ahead == 1
        agent.end()


def test_a_fault_of_ours_lets_the_request_pass(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = process.guard(limit(1), mode="enforce")

    def broken(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError

    with process.agent():
        make(guard)
        monkeypatch.setattr(run_in(guard).guard, "preview", broken)
        assert guard.admit() is None
    assert process.counts("loopguard.errors") == [({"error.type": "ZeroDivisionError"}, 1)]


def test_a_call_that_a_request_has_made_lets_no_other_request_pass(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with guarded_run():
        another = contextvars.copy_context()
        with request(guard), process.chat(), pytest.raises(RunAborted):
            another.run(make, guard)


@pytest.mark.parametrize("refused_in", ["its span", "another context"])
def test_a_call_that_is_seen_after_the_trip_is_not_taken_for_one_that_is_refused(
    process: Traced, refused_in: str
) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with guarded_run() as run:
        elsewhere = contextvars.copy_context()
        with request(guard):
            with pytest.raises(RunAborted):
                elsewhere.copy().run(make, guard)
            with process.chat(), pytest.raises(RunAborted):
                context = (
                    elsewhere if refused_in == "another context" else contextvars.copy_context()
                )
                context.run(make, guard)
    assert run.report is not None
    assert run.report.model_calls == 1


# ------------------------------------------------------------------------------ at the same time


@pytest.mark.parametrize("spans", ["above the gate", "below the gate", "at the end", "none"])
def test_exactly_as_many_leave_as_are_allowed(process: Traced, spans: str) -> None:
    allowed, threads = 7, 24
    guard = process.guard(limit(allowed), mode="enforce")
    together = threading.Barrier(threads)
    left: list[int] = []
    refused: list[RunAborted] = []

    def call() -> None:
        together.wait()
        try:
            if spans == "above the gate":
                with process.chat(), request(guard):
                    left.append(1)
            elif spans == "below the gate":
                with request(guard), process.chat():
                    left.append(1)
            elif spans == "at the end":
                with process.tracer.start_as_current_span("call") as span:
                    with request(guard):
                        left.append(1)
                    span.set_attribute("gen_ai.operation.name", "chat")
            else:
                with request(guard):
                    left.append(1)
        except RunAborted as error:
            refused.append(error)

    with guarded_run() as run, ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            pool.submit(contextvars.copy_context().run, call)

    assert (len(left), len(refused)) == (allowed, threads - allowed)
    assert run.report is not None
    assert run.report.model_calls == allowed
    assert run.report.status == "aborted"
    assert process.total("loopguard.aborts", abort__hook="gate", abort__result="ok") == 1
    assert process.total("loopguard.violations", action="abort") == 1
    assert process.counts("loopguard.errors") == []

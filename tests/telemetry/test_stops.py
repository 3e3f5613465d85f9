"""What is told of stopping runs: asked, delivered, failed, and what went on after the trip."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import Any

import httpx
import pytest
from opentelemetry import trace

from otel_loopguard import AbortRequest, Policy, RunAborted, RunReport, guarded_run
from otel_loopguard.testing import model_server
from tests._tracing import Traced


def told(process: Traced, hook: str) -> dict[str, float]:
    """Return how often a stop was asked for, and what became of it."""
    asked = process.total("loopguard.abort.requests", abort__hook=hook)
    results = {
        result: process.total("loopguard.aborts", abort__hook=hook, abort__result=result)
        for result in ("ok", "failed", "timeout")
    }
    return {"asked": asked, **results}


def steps_after_trip(process: Traced) -> dict[str, float]:
    return {
        labels.get("gen_ai.agent.name", "-"): value
        for labels, value in process.counts("loopguard.run.steps_after_trip")
    }


def report_of(run: guarded_run) -> RunReport:
    assert run.report is not None
    return run.report


def steps(limit: int) -> Policy:
    return Policy.none().with_limits(max_steps=limit)


# ------------------------------------------------------------------------- asked and delivered


def test_every_stop_is_asked_and_answers(process: Traced) -> None:
    held = threading.Event()

    def good(_request: AbortRequest) -> None:
        """Be delivered."""

    def bad(request: AbortRequest) -> None:
        if request.attempt < 3:
            raise ConnectionError("not yet")

    def slow(_request: AbortRequest) -> None:
        held.wait(20)

    place = f"{test_every_stop_is_asked_and_answers.__name__}.<locals>"
    process.guard(steps(2), abort_hooks=[good, bad, slow], abort=("gate",), hook_timeout_s=0.2)
    assert told(process, f"{place}.good") == {"asked": 0, "ok": 0, "failed": 0, "timeout": 0}
    with process.agent():
        process.work(4)
    held.set()

    assert told(process, f"{place}.good") == {"asked": 1, "ok": 1, "failed": 0, "timeout": 0}
    assert told(process, f"{place}.bad") == {"asked": 3, "ok": 1, "failed": 2, "timeout": 0}
    assert told(process, f"{place}.slow") == {"asked": 1, "ok": 0, "failed": 0, "timeout": 1}
    assert told(process, "gate") == {"asked": 1, "ok": 0, "failed": 0, "timeout": 0}


def test_what_is_still_at_work_has_been_asked(process: Traced) -> None:
    """A hook that ends the process never says how that went."""
    seen: list[float] = []

    def look(_request: AbortRequest) -> None:
        seen.append(process.total("loopguard.abort.requests"))

    process.guard(steps(1), abort_hooks=[look, look], abort=(), hook_timeout_s=20)
    with process.agent():
        process.work(1)

    assert seen == [1, 2], "each when it is called, not before"


def test_a_stop_that_is_not_reached_is_not_asked(process: Traced) -> None:
    process.guard(steps(3), mode="enforce")
    with process.agent():
        process.work(1)

    assert process.total("loopguard.abort.requests") == 0


def test_built_in_stops_are_asked_once(process: Traced) -> None:
    guard = process.guard(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
    with process.agent():
        process.work(1)
        for _ in range(3):
            with pytest.raises(RunAborted):
                guard.admit()

    assert told(process, "gate") == {"asked": 1, "ok": 1, "failed": 0, "timeout": 0}
    assert told(process, "cancel") == {"asked": 0, "ok": 0, "failed": 0, "timeout": 0}


# ------------------------------------------------------------------------- steps after the trip


def test_what_starts_after_the_trip_and_runs_is_counted_while_it_does(process: Traced) -> None:
    process.guard(steps(3))
    assert steps_after_trip(process) == {"-": 0}
    with guarded_run() as run, process.agent():
        process.work(1)
        assert steps_after_trip(process) == {"-": 0, "scout": 0}
        process.work(1)
        assert steps_after_trip(process) == {"-": 0, "scout": 0}, "the step that tripped it"
        process.work(2)
        assert steps_after_trip(process) == {"-": 0, "scout": 4}, "the run need not end"

    assert report_of(run).steps_after_trip == 4
    (agent,) = [span for span in process.spans if span.name == "invoke_agent scout"]
    assert (agent.attributes or {})["loopguard.run.steps_after_trip"] == 4


def test_what_had_started_by_then_is_not(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_output_tokens=1))
    with guarded_run() as run, process.agent(), process.tool():
        with process.chat():
            pass
        with process.tool("inner"):
            pass

    assert report_of(run).rule == "token_budget"
    assert report_of(run).steps == 3
    assert report_of(run).steps_after_trip == 1


def test_what_the_gate_keeps_from_happening_is_not(process: Traced) -> None:
    """Real requests on loopback: the model has answered as often as the report says."""
    process.guard(Policy.none().with_limits(max_llm_calls=2), mode="enforce")
    with model_server("endless") as server, httpx.Client() as client:

        def ask() -> None:
            with process.chat():
                answer = client.post(
                    f"{server.url}/chat/completions",
                    json={"model": "m", "messages": [{"role": "user", "content": "x"}]},
                )
                assert answer.status_code == 200

        with pytest.raises(RunAborted) as raised, guarded_run() as run, process.agent():
            for _ in range(2):
                ask()
            for _ in range(3):
                with pytest.raises(RunAborted):
                    ask()
            with process.tool():
                pass
            ask()
        answered = server.count()

    assert answered == report_of(run).model_calls == 2
    assert report_of(run).steps_after_trip == 1, "the tool"
    assert raised.value.report.steps_after_trip == 1
    assert steps_after_trip(process)["scout"] == 1


def test_nor_is_a_call_that_shows_late_and_whose_request_is_made_outside_its_span(
    process: Traced,
) -> None:
    """Streams of LlamaIndex: current is a span around the call's, and that shows itself at its end.

    There the cancellation of a task that ends by itself made the caller wait for ever.
    """
    process.guard(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
    shown = {"openinference.span.kind": "LLM"}
    with model_server("endless") as server, httpx.Client() as client:

        def ask() -> None:
            whole = process.tracer.start_span("chat_stream")
            with trace.use_span(whole):
                call = process.tracer.start_span("chat_stream")
            try:
                client.post(
                    f"{server.url}/chat/completions",
                    json={"model": "m", "messages": [{"role": "user", "content": "x"}]},
                )
            finally:
                for span in (call, whole):
                    span.set_attributes(shown)
                    span.end()

        with pytest.raises(RunAborted), guarded_run() as run, process.agent():
            for expected in (nullcontext(), *[pytest.raises(RunAborted)] * 3):
                with expected, process.tracer.start_as_current_span("step"):
                    ask()
            with process.tracer.start_as_current_span("step"):
                process.tracer.start_span("?", attributes=shown).end()
            ask()
        answered = server.count()

    assert answered == 1
    assert report_of(run).steps_after_trip == 1, "the last call, that asked nobody"


def test_the_next_run_below_the_same_span_loses_no_call_to_that(process: Traced) -> None:
    """As LlamaIndex's do, a model call shows at its end what it is."""
    process.guard(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
    shown = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7}
    with model_server("endless") as server, httpx.Client() as client:

        def ask() -> None:
            with process.tracer.start_as_current_span("call") as span:
                client.post(
                    f"{server.url}/chat/completions",
                    json={"model": "m", "messages": [{"role": "user", "content": "x"}]},
                )
                span.set_attributes(shown)

        with process.tracer.start_as_current_span("web request"):
            with pytest.raises(RunAborted), guarded_run():
                ask()
                ask()
            with guarded_run() as other:
                ask()

    assert report_of(other).input_tokens == 7
    assert report_of(other).trace == ("llm:",)


def test_model_calls_that_escape_the_gate_are(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_llm_calls=1), mode="enforce", abort=("gate",))
    with guarded_run() as run, process.agent():
        for _ in range(4):
            with process.chat():
                pass

    assert report_of(run).model_calls == 4
    assert report_of(run).steps_after_trip == 2, "the second one tripped the run by itself"
    assert steps_after_trip(process)["scout"] == 2


@pytest.mark.parametrize("starts", ["before", "after"])
def test_a_span_that_shows_at_its_end_what_it_is_counts_by_its_start(
    process: Traced, starts: str
) -> None:
    asked: list[int] = []

    def deaf(request: AbortRequest) -> None:
        asked.append(request.attempt)
        raise ConnectionError

    process.guard(steps(1), abort_hooks=[deaf], abort=())
    shown = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "late"}
    with guarded_run() as run, process.agent():
        late = process.tracer.start_span("?") if starts == "before" else None
        process.work(1)
        assert asked == [1]
        late = late or process.tracer.start_span("?")
        late.set_attributes(shown)
        late.end()

    is_after = starts == "after"
    assert report_of(run).steps == 3
    assert report_of(run).steps_after_trip == is_after
    assert steps_after_trip(process)["scout"] == is_after
    assert asked == [1, 2] if is_after else [1], "a step has started: hooks are asked again"


def test_sub_agents_are_no_steps(process: Traced) -> None:
    process.guard(steps(1))
    with guarded_run() as run, process.agent():
        process.work(1)
        with process.agent("inner"):
            pass

    assert report_of(run).steps_after_trip == 0


def test_calls_of_many_threads_are_counted_each(process: Traced) -> None:
    process.guard(steps(1))

    def work() -> None:
        with process.below(span):
            process.work(20)

    with guarded_run() as run, process.agent() as span:
        process.work(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert report_of(run).steps_after_trip == steps_after_trip(process)["scout"] == 160


# ------------------------------------------------------------------------- time after the trip


def test_the_time_from_trip_to_end_is_recorded_for_runs_that_trip(process: Traced) -> None:
    process.guard(steps(1))
    with process.agent("healthy"), process.chat(asks=False):
        pass
    with guarded_run() as run, process.agent():
        process.work(1)
        time.sleep(0.05)

    (point,) = process.points("loopguard.run.duration_after_trip")
    assert dict(point.attributes) == {"gen_ai.agent.name": "scout"}
    assert point.count == 1
    assert point.sum == report_of(run).after_trip_s
    assert 0.05 <= report_of(run).after_trip_s <= report_of(run).duration_s


def test_a_run_without_a_trip_has_nothing_after_it(process: Traced) -> None:
    process.guard(steps(9))
    with guarded_run() as run, process.agent():
        process.work(1)

    assert (report_of(run).steps_after_trip, report_of(run).after_trip_s) == (0, 0.0)


def test_what_a_hook_is_told_is_of_the_trip(process: Traced) -> None:
    requests: list[Any] = []
    process.guard(steps(1), abort_hooks=[requests.append], abort=(), hook_timeout_s=7)
    with process.agent():
        process.work(2)

    (request,) = requests
    assert request.report.steps_after_trip == 0
    assert 0 <= request.report.after_trip_s < 5
    assert len(request.id) == 32
    assert request.timeout_s == 7

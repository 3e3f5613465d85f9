"""Spans as they really come: nested oddly, never ended, without their parents, sharing a root."""

from __future__ import annotations

import asyncio
import gc
from contextlib import nullcontext

import httpx
import pytest
from opentelemetry import trace

from otel_loopguard import AbortRequest, Policy, RunAborted, guarded_run
from tests._tracing import Traced


def limit(calls: int) -> Policy:
    return Policy.none().with_limits(max_llm_calls=calls)


def test_model_calls_of_a_tool_below_a_model_call_are_calls_of_their_own(process: Traced) -> None:
    process.guard(limit(3))
    with process.agent(), process.chat(), process.tool():
        for _ in range(3):
            with process.chat():
                pass

    assert process.total("loopguard.violations", rule="llm_call_budget", action="abort") == 1


def test_a_run_whose_span_is_lost_does_not_take_over_what_comes_after_it(process: Traced) -> None:
    guard = process.guard(limit(2), mode="enforce")
    abandoned = process.tracer.start_span(
        "invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}
    )
    del abandoned
    gc.collect()
    for _ in range(4):
        with process.chat():
            assert guard.admit() is not None

    assert process.total("loopguard.runs", tripped=False) == 1
    assert process.total("loopguard.run.active") == 4, "each may be answered by a later call"


def test_calls_below_a_span_that_was_not_seen_to_start_are_one_run(process: Traced) -> None:
    with process.tracer.start_as_current_span("started before the guard was added"):
        guard = process.guard(limit(2), mode="enforce")
        for _ in range(2):
            with process.chat():
                assert guard.admit() is not None
        with pytest.raises(RunAborted), process.chat():
            guard.admit()


def test_a_healthy_run_does_not_hide_the_trip_on_a_span_that_they_share(process: Traced) -> None:
    process.guard(limit(1))
    with process.tracer.start_as_current_span("GET /"):
        for name, calls in (("runaway", 2), ("healthy", 1)):
            with guarded_run(name):
                for _ in range(calls):
                    with process.chat():
                        pass

    (root,) = [span for span in process.spans if span.name == "GET /"]
    attributes = root.attributes or {}
    assert attributes["loopguard.tripped"] is True
    assert attributes["loopguard.run.id"] == "runaway"


def test_the_event_of_a_refused_request_is_on_the_agent_that_made_it(process: Traced) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with process.tracer.start_as_current_span("GET /"), process.agent():
        allowed = guard.admit()
        assert allowed is not None
        allowed.over(failed=False)
        with pytest.raises(RunAborted):
            guard.admit()

    events = {span.name: [event.name for event in span.events] for span in process.spans}
    assert events == {"invoke_agent scout": ["loopguard.violation"], "GET /": []}


def test_a_step_that_was_let_through_before_the_limit_was_reached_is_still_made(
    process: Traced,
) -> None:
    guard = process.guard(limit(1), mode="enforce")
    with process.agent() as agent:
        beside = trace.set_span_in_context(agent)
        with process.chat():
            refused = process.tracer.start_span(
                "chat m", beside, attributes={"gen_ai.operation.name": "chat"}
            )
            assert guard.admit() is not None
        with trace.use_span(refused, end_on_exit=True), pytest.raises(RunAborted):
            guard.admit()


def test_a_block_is_entered_once_at_a_time() -> None:
    block = guarded_run("r")
    with block, pytest.raises(RuntimeError, match="guarded_run 'r' is entered already"):
        block.__enter__()
    with block:
        pass


def test_an_error_of_a_run_that_only_a_hook_was_to_stop_stays_what_it_is(process: Traced) -> None:
    told: list[AbortRequest] = []
    process.guard(limit(1), abort_hooks=[told.append], abort=())
    with pytest.raises(KeyError), guarded_run() as run:
        for _ in range(2):
            with process.chat():
                pass
        raise KeyError

    assert run.report is not None
    assert run.report.rule == "llm_call_budget"
    assert [request.run_id for request in told] == [run.run_id]


async def ask(transport: httpx.MockTransport, path: str, **headers: str) -> None:
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        await client.post(path, json={}, headers=headers)


@pytest.mark.parametrize(
    ("path", "headers", "leave"),
    [
        ("/v1/chat/completions", {}, 1),
        ("/v1/messages", {"anthropic-version": "2023-06-01"}, 1),
        ("/v1/messages", {}, 2),
        ("/api/chat", {}, 2),
        ("http://127.0.0.1:11434/api/chat", {}, 1),
        ("/v1/search", {}, 2),
    ],
)
def test_which_paths_are_those_of_models(
    process: Traced, path: str, headers: dict[str, str], leave: int
) -> None:
    process.guard(limit(1), mode="enforce")
    seen: list[str] = []
    transport = httpx.MockTransport(lambda r: seen.append(r.url.path) or httpx.Response(200))

    async def twice() -> None:
        with guarded_run():
            for _ in range(2):
                await ask(transport, path, **headers)

    with nullcontext() if leave == 2 else pytest.raises(RunAborted):
        asyncio.run(twice())
    assert len(seen) == leave


def test_a_task_started_inside_a_request_asks_for_itself(process: Traced) -> None:
    process.guard(limit(2), mode="enforce")
    started: list[asyncio.Task[None]] = []
    quiet = httpx.MockTransport(lambda _: httpx.Response(200))

    async def dispatch() -> None:
        for _ in range(5):
            await ask(quiet, "/v1/chat/completions")

    async def first(_: httpx.Request) -> httpx.Response:
        started.append(asyncio.create_task(dispatch()))
        return httpx.Response(200)

    async def run() -> None:
        with guarded_run():
            await ask(httpx.MockTransport(first), "/v1/chat/completions")
            await started[0]

    with pytest.raises(RunAborted) as aborted:
        asyncio.run(run())
    assert aborted.value.report.model_calls == 2

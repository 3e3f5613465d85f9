"""Recorded spans, replayed: runs, what they saved, and more runs than are followed at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otel_loopguard.open_runs import RUNS
from otel_loopguard.policy import Policy
from otel_loopguard.replay import Saved
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.spans import SpanRecord


def span(span_id: int, start: int, end: int | None, parent: int | None, **named: Any) -> SpanRecord:
    attributes = {f"gen_ai.{name.replace('__', '.')}": value for name, value in named.items()}
    return SpanRecord(
        name=str(named["operation__name"]),
        trace_id=1,
        span_id=span_id,
        parent_id=parent,
        attributes=attributes,
        started_ns=start * 10**9,
        ended_ns=None if end is None else end * 10**9,
    )


def agent(span_id: int, start: int, end: int | None, parent: int | None = None) -> SpanRecord:
    return span(span_id, start, end, parent, operation__name="invoke_agent", agent__name="a")


def chat(span_id: int, start: int, end: int | None, parent: int | None = None) -> SpanRecord:
    usage = {"usage__input_tokens": 100, "usage__output_tokens": 10}
    return span(span_id, start, end, parent, operation__name="chat", request__model="m", **usage)


def test_a_run_and_what_stopping_it_would_have_saved():
    spans = [agent(1, 0, 99), *(chat(n, n, n + 1, 1) for n in range(2, 9))]
    [run] = replay_spans(spans, Policy.none().with_limits(max_llm_calls=4), "file")
    assert (run.steps, run.model_calls, run.input_tokens, run.output_tokens) == (7, 7, 700, 70)
    assert [(v.rule, v.step, v.phase) for v in run.violations] == [("llm_call_budget", 5, "pre")]
    assert run.tripped
    assert run.saved == Saved(steps=3, tokens=330)


def test_what_was_under_way_at_the_trip_is_not_saved():
    spans = [agent(1, 0, 99), chat(2, 1, 50, 1), chat(3, 2, 3, 1), chat(4, 4, 5, 1)]
    [run] = replay_spans(spans, Policy.none().with_limits(max_llm_calls=2), "file")
    assert run.saved == Saved(steps=1, tokens=110)


def test_runs_come_in_the_order_of_their_starts():
    spans = [agent(1, 5, 9), agent(2, 1, 20), chat(3, 6, 7, 1), chat(4, 2, 3, 2), chat(5, 4, 5, 2)]
    runs = replay_spans(spans, Policy(), "file")
    assert [run.model_calls for run in runs] == [2, 1]


def test_a_run_whose_root_never_ended_is_reported():
    [run] = replay_spans([agent(1, 0, None), chat(2, 1, 2, 1)], Policy(), "file")
    assert run.model_calls == 1


def test_no_run_is_lost_however_many_go_on_at_once():
    spans = [chat(n, n, None) for n in range(1, RUNS + 100)]
    runs = replay_spans(spans, Policy(), "file")
    assert [run.model_calls for run in runs] == [1] * (RUNS + 99)
    assert len({run.run_id for run in runs}) == len(runs)


# ------------------------------------------------------------------- time in which nothing happens

BASE_S = 1_790_000_000
"""Some time in 2026: sums of such times are rounded."""


def tool(span_id: int, start: int, end: int | None, parent: int, **named: Any) -> SpanRecord:
    return span(
        span_id, start, end, parent, operation__name="execute_tool", tool__name="t", **named
    )


def final(span_id: int, start: int, end: int, parent: int) -> SpanRecord:
    said = '[{"role": "assistant", "parts": [{"type": "text", "content": "42"}]}]'
    return span(
        span_id,
        start,
        end,
        parent,
        operation__name="chat",
        output__messages=said,
        response__finish_reasons=["stop"],
    )


def later(records: list[SpanRecord], seconds: int) -> list[SpanRecord]:
    return [
        msgspec.structs.replace(
            each,
            started_ns=each.started_ns + seconds * 10**9,
            ended_ns=None if each.ended_ns is None else each.ended_ns + seconds * 10**9,
        )
        for each in records
    ]


@pytest.mark.parametrize("base_s", [1, BASE_S])
@pytest.mark.parametrize(
    ("limit", "spans", "expected"),
    [
        pytest.param(
            {"max_duration_s": 60},
            [agent(1, 0, 99), tool(2, 1, 90, 1), chat(3, 91, 92, 1)],
            [("time_budget", 1, "post", 60)],
            id="in the middle of a step",
        ),
        pytest.param(
            {"max_duration_s": 60},
            [agent(1, 0, 99), chat(2, 1, 2, 1), tool(3, 80, 81, 1)],
            [("time_budget", 0, "post", 60)],
            id="between two steps",
        ),
        pytest.param(
            {"max_duration_s": 60},
            [agent(1, 0, None), tool(2, 1, None, 1), agent(5, 70, 71)],
            [("time_budget", 1, "post", 60)],
            id="in a step that never ends, while another run goes on",
        ),
        pytest.param(
            {"max_duration_s": 60},
            [agent(1, 0, 59), chat(2, 1, 2, 1), agent(5, 90, 91)],
            [],
            id="after the run",
        ),
        pytest.param(
            {"max_duration_s": 60},
            [agent(1, 0, 50), chat(2, 1, 2, 1), agent(5, 51, 101), chat(6, 52, 53, 5)],
            [],
            id="each run has a time of its own",
        ),
        pytest.param(
            {"max_idle_s": 30},
            [agent(1, 0, 99), chat(2, 1, 2, 1), tool(3, 40, 41, 1)],
            [("idle_run", 0, "post", 30)],
            id="silence",
        ),
        pytest.param(
            {"max_idle_s": 30},
            [agent(1, 0, 99), *(chat(n, 25 * n - 45, 25 * n - 44, 1) for n in range(2, 6))],
            [],
            id="work",
        ),
        pytest.param(
            {"max_idle_s": 30},
            [
                agent(1, 0, 300),
                tool(2, 1, 200, 1),
                agent(3, 2, 190, 2),
                *(chat(n, 25 * n - 75, 25 * n - 74, 3) for n in range(4, 8)),
                chat(8, 110, 180, 3),
            ],
            [("idle_run", 6, "post", 30)],
            id="a parent waits for its child, until that hangs",
        ),
    ],
)
def test_a_limit_on_time_is_reached_when_it_is(
    base_s: int,
    limit: dict[str, Any],
    spans: list[SpanRecord],
    expected: list[tuple[str, int, str, float]],
):
    runs = replay_spans(later(spans, base_s), Policy.none().with_limits(**limit), "file")
    found = [(v.rule, v.step, v.phase, v.count) for r in runs for v in r.violations]
    assert [each[:3] for each in found] == [each[:3] for each in expected]
    assert [each[3] for each in found] == pytest.approx([each[3] for each in expected], abs=1e-5)


def test_a_run_that_is_finished_is_not_late():
    spans = [agent(1, 1, 200), final(2, 1, 2, 1), agent(5, 90, 91), final(6, 90, 91, 5)]
    none = Policy.none()
    for policy in (none.with_limits(max_duration_s=60), none.with_limits(max_idle_s=60)):
        runs = replay_spans(spans, policy, "file")
        assert {v.action for run in runs for v in run.violations} <= {"warn"}


def test_an_agent_s_time_begins_with_its_own_invocation():
    rules = {"agents": {"b": {"limits": {"max_duration_s": 60}}}}
    spans = [agent(1, 1, 300), chat(2, 1, 2, 1), tool(4, 171, 172, 3)]
    inner = span(3, 100, 200, 1, operation__name="invoke_agent", agent__name="b")
    [run] = replay_spans([*spans, inner], Policy.from_mapping(rules, base=Policy.none()), "file")
    assert [(v.rule, v.count, v.phase) for v in run.violations] == [("time_budget", 60, "post")]


def test_what_starts_after_a_silence_is_saved():
    spans = [agent(1, 1, 99), chat(2, 1, 2, 1), chat(3, 80, 81, 1)]
    [run] = replay_spans(spans, Policy.none().with_limits(max_idle_s=30), "file")
    assert run.tripped
    assert run.saved == Saved(steps=1, tokens=110)


@pytest.mark.parametrize("limit_s", [60.1, 60.2, 60.3, 60.4, 60.7, 61 / 3, 1 / 3])
def test_sums_of_large_times_are_rounded_and_no_limit_is_lost(limit_s: float):
    spans = later([agent(1, 0, 99), tool(2, 1, 98, 1)], BASE_S)
    [run] = replay_spans(spans, Policy.none().with_limits(max_duration_s=limit_s), "file")
    [violation] = run.violations
    assert violation.count == pytest.approx(limit_s, abs=1e-6)


def test_several_runs_are_each_late_in_their_own_time():
    early = [agent(1, 1, 99), chat(2, 2, 3, 1)]
    late = [agent(3, 10, 99), chat(4, 11, 12, 3), chat(5, 80, 81, 3)]
    other = [agent(6, 65, 66)]
    runs = replay_spans(
        [*early, *late, *other], Policy.none().with_limits(max_duration_s=60), "file"
    )
    assert [[(v.count, v.phase) for v in run.violations] for run in runs] == [
        [(60, "post")],
        [(60, "post")],
        [],
    ]

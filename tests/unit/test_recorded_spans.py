"""Recorded spans, replayed: runs, what they saved, and more runs than are followed at a time."""

from __future__ import annotations

from typing import Any

from otel_loopguard.policy import Policy
from otel_loopguard.replay import Saved
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RUNS


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

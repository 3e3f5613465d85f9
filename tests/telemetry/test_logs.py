"""Violations as log events."""
# ruff: noqa: E501 -- snapshots are as wide as what they show

from __future__ import annotations

import inspect
from typing import Any

from inline_snapshot import snapshot
from opentelemetry._logs import Logger

from otel_loopguard import Policy
from tests._tracing import ONE_RULE, Traced

EVENTS_EXIST = "event_name" in inspect.signature(Logger.emit).parameters
"""The oldest API knows log records, but no log-based events."""


def events(process: Traced) -> list[dict[str, Any]]:
    return [
        {
            "name": record.event_name,
            "severity": f"{record.severity_text} {record.severity_number.value}",
            "span": (record.trace_id, record.span_id, int(record.trace_flags)),
            "body": record.body,
            "attributes": dict(record.attributes),
        }
        for record in process.sink.records
    ]


def test_a_violation_is_an_event_in_the_context_of_the_offending_span(process: Traced) -> None:
    process.guard(ONE_RULE)
    with process.agent():
        process.work(5)

    written = events(process)
    assert written == (
        snapshot(
            [
                {
                    "name": "loopguard.violation",
                    "severity": "WARN 13",
                    "span": (1, 7, 1),
                    "body": "repeated_result: tool 'search' by agent 'scout' at step 6: 3 against a threshold of 3 (warning)",
                    "attributes": {
                        "loopguard.rule": "repeated_result",
                        "loopguard.reason": "REPEATED_RESULT_DETECTED",
                        "loopguard.action": "warn",
                        "loopguard.phase": "post",
                        "loopguard.count": 3,
                        "loopguard.threshold": 3,
                        "loopguard.message": "repeated_result: tool 'search' by agent 'scout' at step 6: 3 against a threshold of 3 (warning)",
                        "loopguard.step.number": 6,
                        "loopguard.wasted.steps": 2,
                        "loopguard.wasted.tokens": 30,
                        "loopguard.wasted.cost": 0.0,
                        "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                        "gen_ai.tool.name": "search",
                        "gen_ai.agent.name": "scout",
                        "loopguard.step.trace_id": "00000000000000000000000000000001",
                        "loopguard.step.span_id": "0000000000000007",
                    },
                },
                {
                    "name": "loopguard.violation",
                    "severity": "ERROR 17",
                    "span": (1, 11, 1),
                    "body": "repeated_result: tool 'search' by agent 'scout' at step 10: 5 against a threshold of 5 (stop)",
                    "attributes": {
                        "loopguard.rule": "repeated_result",
                        "loopguard.reason": "REPEATED_RESULT_DETECTED",
                        "loopguard.action": "abort",
                        "loopguard.phase": "post",
                        "loopguard.count": 5,
                        "loopguard.threshold": 5,
                        "loopguard.message": "repeated_result: tool 'search' by agent 'scout' at step 10: 5 against a threshold of 5 (stop)",
                        "loopguard.step.number": 10,
                        "loopguard.wasted.steps": 4,
                        "loopguard.wasted.tokens": 60,
                        "loopguard.wasted.cost": 0.0,
                        "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                        "gen_ai.tool.name": "search",
                        "gen_ai.agent.name": "scout",
                        "loopguard.step.trace_id": "00000000000000000000000000000001",
                        "loopguard.step.span_id": "000000000000000b",
                    },
                },
            ]
        )
        if EVENTS_EXIST
        else []
    )
    on_span = [attributes for _, event, attributes in process.events() if "loopguard" in event]
    assert [each["attributes"] for each in written] == (on_span if EVENTS_EXIST else [])


def test_where_no_span_records_the_event_carries_it(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_duration_s=1e-9))
    with process.tracer.start_as_current_span("call") as span:
        span.set_attribute("gen_ai.operation.name", "chat")

    rules = [each["attributes"]["loopguard.rule"] for each in events(process)]
    assert rules == (["time_budget"] if EVENTS_EXIST else [])


def test_log_events_can_be_switched_off(process: Traced) -> None:
    process.guard(log_events=False)
    with process.agent():
        process.work(5)

    assert events(process) == []
    assert process.total("loopguard.violations", action="abort") == 1
    assert process.counts("loopguard.errors") == []

"""What is read from OpenLLMetry's names: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from tests.unit.written_spans import (
    ARGUMENTS,
    CALL_ID,
    RESULT,
    TRACELOOP_KIND,
    read,
    span,
    traceloop_tool,
)

LANGCHAIN_INPUT = {
    "input_str": "{'q': 1}",
    "metadata": {"langgraph_step": 2},
    "inputs": {"q": 1},
    "kwargs": {"tool_call_id": "c1"},
}
LANGCHAIN_OUTPUT = {"output": {"lc": 1, "kwargs": {"content": "found", "tool_call_id": "c2"}}}


def without(name: str) -> str:
    return json.dumps({key: value for key, value in LANGCHAIN_INPUT.items() if key != name})


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({ARGUMENTS: '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({"traceloop.entity.input": '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({}, "arguments", UNKNOWN),
        ({ARGUMENTS: json.dumps(LANGCHAIN_INPUT)}, "arguments", {"q": 1}),
        ({ARGUMENTS: LANGCHAIN_INPUT}, "arguments", {"q": 1}),
        ({ARGUMENTS: without("inputs")}, "arguments", "{'q': 1}"),
        # A tool's own arguments may have such names.
        ({ARGUMENTS: without("metadata")}, "arguments", without("metadata")),
        ({ARGUMENTS: without("input_str")}, "arguments", without("input_str")),
        ({ARGUMENTS: '{"metadata"'}, "arguments", '{"metadata"'),
        ({ARGUMENTS: json.dumps(LANGCHAIN_INPUT)}, "call_id", "c1"),
        ({ARGUMENTS: without("kwargs")}, "call_id", None),
        ({RESULT: "found"}, "result", "found"),
        ({"traceloop.entity.output": "found"}, "result", "found"),
        ({RESULT: json.dumps(LANGCHAIN_OUTPUT)}, "result", "found"),
        ({RESULT: json.dumps(LANGCHAIN_OUTPUT)}, "call_id", "c2"),
        ({RESULT: json.dumps(LANGCHAIN_OUTPUT), CALL_ID: "c3"}, "call_id", "c3"),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
    ],
)
def test_openllmetry_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(traceloop_tool(attributes)), field) == expected


def test_openllmetry_agent():
    step = read(span("a.agent", {TRACELOOP_KIND: "agent", "gen_ai.agent.name": "a"}))
    assert step.agent == "a"

"""What is read from Haystack's own spans: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_input, read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import read, span

MODEL_CALL = "haystack.agent.step.llm"
TOOL_CALL = "haystack.agent.step.tool"
INPUT = "haystack.agent.step.llm.input"
OUTPUT = "haystack.agent.step.llm.output"
TOOL_OUTPUT = "haystack.agent.step.tool.output"
FAILED = {"haystack.tool.error": True}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("haystack.agent.run", "agent"),
        ("haystack.agent.step", None),
        (MODEL_CALL, "llm"),
        (TOOL_CALL, "tool"),
        ("haystack.pipeline.run", None),
        ("haystack.component.run", None),
    ],
)
def test_kind(name: str, kind: str | None):
    step = read_step(span(name))
    assert (step and step.kind) == kind


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"haystack.tool.name": "search"}, "name", "search"),
        ({}, "name", ""),
        ({"haystack.agent.step.tool.input": '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({}, "arguments", UNKNOWN),
        ({TOOL_OUTPUT: "found"}, "result", "found"),
        ({TOOL_OUTPUT: '{"error": "x"}'}, "result", '{"error": "x"}'),
        ({TOOL_OUTPUT: '{"error": "x"}'}, "error", None),
        ({TOOL_OUTPUT: '{"error": "down"}', **FAILED}, "error", "down"),
        ({TOOL_OUTPUT: '{"error": "down"}', **FAILED}, "result", UNKNOWN),
        ({TOOL_OUTPUT: "down", **FAILED}, "error", "error"),
        (FAILED, "error", "error"),
        ({"haystack.tool.error": False}, "error", None),
    ],
)
def test_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(span(TOOL_CALL, attributes)), field) == expected


def reply(*parts: object, **meta: object) -> dict[str, object]:
    return {
        OUTPUT: json.dumps({"replies": [{"role": "assistant", "meta": meta, "content": parts}]})
    }


CALL = {"tool_call": {"tool_name": "search", "arguments": {"q": 1}, "id": "c1", "extra": None}}
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 2},
}


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({}, "name", ""),
        ({}, "tool_calls", UNKNOWN),
        ({}, "output", UNKNOWN),
        ({OUTPUT: "__REDACTED__"}, "output", UNKNOWN),
        ({OUTPUT: '{"replies": [{'}, "output", UNKNOWN),
        ({OUTPUT: '{"replies": []}'}, "tool_calls", UNKNOWN),
        (reply(model="m"), "name", "m"),
        (reply(model="m"), "model", "m"),
        (reply(finish_reason="stop"), "finish_reasons", ("stop",)),
        (reply(), "finish_reasons", ()),
        (reply(usage=USAGE), "input_tokens", 7),
        (reply(usage=USAGE), "output_tokens", 8),
        (reply(usage=USAGE), "cache_read_tokens", 2),
        (reply(usage={"input_tokens": 7, "prompt_tokens_details": None}), "input_tokens", 7),
        (reply(usage={"output_tokens": 7}), "output_tokens", 7),
        (reply(usage=None), "input_tokens", None),
        (reply({"text": "done"}), "output", "done"),
        (reply({"text": "done"}), "tool_calls", ()),
        (reply({"reasoning": {"reasoning_text": "x"}}, {"text": "done"}), "output", "done"),
        (reply({"image": "x"}), "output", UNKNOWN),
        (reply(CALL), "output", ""),
        (
            reply(CALL),
            "tool_calls",
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
        ),
        (
            {INPUT: '{"messages": [], "tools": [{"data": {"name": "a", "function": "b"}}]}'},
            "offered_tools",
            {"a"},
        ),
        ({INPUT: '{"messages": [], "tools": [{"data": {}}]}'}, "offered_tools", UNKNOWN),
        ({INPUT: '{"messages": []}'}, "offered_tools", UNKNOWN),
        ({INPUT: "{"}, "offered_tools", UNKNOWN),
        ({}, "offered_tools", UNKNOWN),
        (
            {**reply({"text": "x"}), INPUT: '{"messages": [], "tools": []}'},
            "offered_tools",
            frozenset[str](),
        ),
    ],
)
def test_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(span(MODEL_CALL, attributes)), field) == expected


def given(*messages: object) -> SpanRecord:
    return span(MODEL_CALL, {INPUT: json.dumps({"messages": messages})})


def result(call_id: str | None, value: object) -> dict[str, object]:
    origin = {"tool_name": "search", "arguments": None, "id": call_id}
    return {"tool_call_result": {"result": value, "origin": origin, "error": False}}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (given({"role": "user", "content": [{"text": "x"}]}), ModelInput(spoken=True)),
        (given({"role": "user", "content": [{"image": "x"}]}), ModelInput()),
        (given({"role": "system", "content": [{"text": "x"}]}), ModelInput()),
        (
            given(
                {"role": "user", "content": [{"text": "x"}]},
                {"role": "assistant", "content": [CALL]},
                {"role": "tool", "content": [result("c1", "found")]},
                {"role": "tool", "content": [result("c2", None), result(None, "x")]},
            ),
            ModelInput(
                answers=(ToolAnswer(call_id="c1", result="found"), ToolAnswer(call_id="c2"))
            ),
        ),
        (span(MODEL_CALL, {INPUT: "{"}), None),
        (span(MODEL_CALL), None),
        (span(TOOL_CALL, {INPUT: '{"messages": []}'}), None),
    ],
)
def test_what_is_new_in_the_input(record: SpanRecord, expected: ModelInput | None):
    assert read_input(record) == expected

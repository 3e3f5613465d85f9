"""What is read from the spans of Strands Agents: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_input, read_step
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import (
    ARGUMENTS,
    GIVEN,
    MESSAGES,
    OPERATION,
    RESULT,
    answer,
    event,
    hear,
    read,
    span,
)

DETAILS = "gen_ai.client.inference.operation.details"


def strands(
    name: str,
    attributes: Mapping[str, object] | None = None,
    events: Sequence[SpanEventRecord] = (),
    limit: int | None = None,
) -> SpanRecord:
    scope = "strands.telemetry.tracer"
    return span(name, attributes, events=events, limit=limit, scope=scope)


def choice(*blocks: object, finish_reason: str = "tool_use") -> SpanEventRecord:
    return event("gen_ai.choice", message=json.dumps(blocks), finish_reason=finish_reason)


def message(role: str, *blocks: object) -> SpanEventRecord:
    return event(f"gen_ai.{role}.message", content=json.dumps(blocks))


TEXT = {"text": "done"}
USE = {"toolUse": {"toolUseId": "c1", "name": "search", "input": {"q": 1}}}
RESULT_C1 = {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "rain"}]}}
HEARD_C1 = ToolAnswer(call_id="c1", result=[{"text": "rain"}])


@pytest.mark.parametrize(
    ("record", "kind", "name"),
    [
        (strands("execute_tool search"), "tool", "search"),
        (strands("chat"), "llm", ""),
        (strands("chat", {"gen_ai.request.model": "m"}), "llm", "m"),
        (strands("invoke_agent helper"), "agent", "helper"),
        (strands("invoke_agent helper", {"gen_ai.agent.name": "helper"}), "agent", "helper"),
        (strands("invoke_swarm"), "agent", "invoke_swarm"),
        (strands("x", {OPERATION: "invoke_graph"}), "agent", "x"),
    ],
)
def test_kind_and_name(record: SpanRecord, kind: str, name: str):
    step = read(record)
    assert (step.kind, step.name) == (kind, name)


@pytest.mark.parametrize(
    "record",
    [
        span("chat"),
        span("invoke_swarm"),
        strands("execute_event_loop_cycle"),
        strands("x", {OPERATION: "execute_event_loop_cycle"}),
        strands("memory.search", {OPERATION: "memory.search"}),
    ],
)
def test_nobodys_step(record: SpanRecord):
    assert read_step(record) is None


ASKED = event("gen_ai.tool.message", role="tool", content='{"q": 1}', id="c1")
CAME = event("gen_ai.choice", message='[{"text": "rain"}]', id="c1")


@pytest.mark.parametrize(
    ("attributes", "events", "arguments", "result"),
    [
        ({}, [ASKED, CAME], '{"q": 1}', '[{"text": "rain"}]'),
        ({}, [ASKED], '{"q": 1}', UNKNOWN),
        ({}, [event("gen_ai.tool.message"), event("gen_ai.choice")], UNKNOWN, UNKNOWN),
        ({}, [event("gen_ai.tool.message", content="[REDACTED]")], UNKNOWN, UNKNOWN),
        ({ARGUMENTS: '{"q": 2}', RESULT: "[]"}, [ASKED, CAME], '{"q": 2}', "[]"),
        ({ARGUMENTS: '{"q": 2}'}, [event(DETAILS)], '{"q": 2}', UNKNOWN),
        ({ARGUMENTS: "[REDACTED]"}, [], UNKNOWN, UNKNOWN),
    ],
)
def test_tool(
    attributes: Mapping[str, object],
    events: Sequence[SpanEventRecord],
    arguments: object,
    result: object,
):
    step = read(strands("execute_tool search", attributes, events))
    assert (step.arguments, step.result) == (arguments, result)


def test_a_value_in_an_event_that_may_have_been_cut():
    assert read(strands("execute_tool t", {}, [ASKED], limit=8)).arguments is UNKNOWN
    assert read(strands("execute_tool t", {}, [ASKED], limit=9)).arguments == '{"q": 1}'
    assert read(strands("chat", {}, [choice(TEXT)], limit=5)).output is UNKNOWN


@pytest.mark.parametrize(
    ("events", "tool_calls", "output", "finish_reasons"),
    [
        (
            [choice(USE)],
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
            "",
            ("tool_use",),
        ),
        ([choice(TEXT, finish_reason="end_turn")], (), "done", ("end_turn",)),
        ([choice({"reasoningContent": {}}, TEXT)], (), "done", ("tool_use",)),
        ([choice({"image": {}}, TEXT)], (), UNKNOWN, ("tool_use",)),
        ([message("user", TEXT), choice(TEXT)], (), "done", ("tool_use",)),
        ([choice({"toolUse": {}})], (ToolCall(name=""),), "", ("tool_use",)),
        # as the conventions have it now
        (
            [event(DETAILS, **{MESSAGES: answer({"type": "text", "content": "a"})})],
            (),
            "a",
            ("stop",),
        ),
        # not captured, or not as Strands has it
        ([event("gen_ai.choice", message="[REDACTED]")], UNKNOWN, UNKNOWN, ()),
        ([event("gen_ai.choice", message="[3]")], UNKNOWN, "[3]", ()),
        ([event(DETAILS)], UNKNOWN, UNKNOWN, ()),
        ([], UNKNOWN, UNKNOWN, ()),
    ],
)
def test_answer_of_a_model(
    events: Sequence[SpanEventRecord], tool_calls: object, output: object, finish_reasons: object
):
    step = read(strands("chat", {}, events))
    assert (step.tool_calls, step.output) == (tool_calls, output)
    assert step.finish_reasons == finish_reasons


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([message("user", TEXT)], ModelInput(spoken=True)),
        # That somebody spoke is known, whatever it was.
        ([event("gen_ai.user.message", content="[REDACTED]")], ModelInput(spoken=True)),
        ([message("system", TEXT), message("assistant", USE)], ModelInput()),
        (
            [message("user", TEXT), message("assistant", USE), message("tool", RESULT_C1)],
            ModelInput(answers=(HEARD_C1,)),
        ),
        (
            [message("assistant", USE), message("tool", RESULT_C1, TEXT)],
            ModelInput(answers=(HEARD_C1,), spoken=True),
        ),
        (
            [event(DETAILS), event(DETAILS, **{GIVEN: '[{"role": "user", "content": "a"}]'})],
            ModelInput(spoken=True),
        ),
    ],
)
def test_what_is_new_in_the_input(events: Sequence[SpanEventRecord], expected: ModelInput):
    assert hear(strands("chat", {}, events)) == expected


@pytest.mark.parametrize(
    "record",
    [
        strands("chat"),
        strands("chat", {}, [event("gen_ai.choice", message="[]")]),
        strands("invoke_agent a", {}, [message("user", TEXT)]),
        strands("execute_event_loop_cycle", {}, [message("user", TEXT)]),
    ],
)
def test_an_input_that_is_not_shown(record: SpanRecord):
    assert read_input(record) is None


def test_usage_of_an_agent_goes_over_all_its_invocations_and_is_not_read():
    usage = {"gen_ai.usage.input_tokens": 7}
    assert read(strands("invoke_agent a", usage)).input_tokens is None
    assert read(strands("chat", usage)).input_tokens == 7

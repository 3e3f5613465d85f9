"""What is read from the spans of Google's ADK: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import google_adk, read_input, read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import ARGUMENTS, CALL_ID, OPERATION, RESULT, hear, read, span

SCOPE = "gcp.vertex.agent"
OLD_ARGUMENTS = "gcp.vertex.agent.tool_call_args"
OLD_RESULT = "gcp.vertex.agent.tool_response"
REQUEST = "gcp.vertex.agent.llm_request"
RESPONSE = "gcp.vertex.agent.llm_response"
EVENT_ID = "gcp.vertex.agent.event_id"


def adk(name: str, attributes: Mapping[str, object] | None = None) -> SpanRecord:
    return span(name, attributes, scope=SCOPE)


def tool(attributes: Mapping[str, object]) -> SpanRecord:
    return adk("execute_tool search", {OPERATION: "execute_tool", **attributes})


def response(*parts: Mapping[str, object]) -> str:
    return json.dumps({"content": {"parts": parts, "role": "model"}, "finish_reason": "STOP"})


def request(*contents: Mapping[str, object], tools: object = None) -> str:
    return json.dumps({"model": "g", "config": {"tools": tools}, "contents": contents})


def said(role: str, *parts: Mapping[str, object]) -> Mapping[str, object]:
    return {"role": role, "parts": parts}


def call_llm(attributes: Mapping[str, object]) -> SpanRecord:
    return adk("call_llm", {RESPONSE: "{}", **attributes})


CALL = {"function_call": {"id": "c1", "args": {"q": 1}, "name": "search"}}
ANSWER = {"function_response": {"id": "c1", "name": "search", "response": {"result": "rain"}}}


@pytest.mark.parametrize(
    ("record", "kind", "name"),
    [
        (adk("invocation"), "agent", "invocation"),
        (adk("invoke_workflow app", {"gen_ai.workflow.name": "app"}), "agent", "app"),
        (adk("invoke_agent helper"), "agent", "helper"),
        (adk("generate_content gemini"), "llm", "gemini"),
        (call_llm({"gen_ai.request.model": "gemini"}), "llm", "gemini"),
        (adk("execute_tool search"), "tool", "search"),
    ],
)
def test_kind_and_name(record: SpanRecord, kind: str, name: str):
    step = read(record)
    assert (step.kind, step.name) == (kind, name)
    assert google_adk.read(record) is not None


@pytest.mark.parametrize(
    "record",
    [
        span("invocation"),
        span("call_llm", {RESPONSE: "{}"}),
        # It starts with nothing, and ends with nothing where no request was sent.
        adk("call_llm"),
        adk("execute_tool (merged)"),
        adk(
            "execute_tool (merged)",
            {OPERATION: "execute_tool", "gen_ai.tool.name": "(merged tools)"},
        ),
        adk("invoke_node n", {OPERATION: "invoke_node"}),
        adk("send_data"),
    ],
)
def test_nobodys_step(record: SpanRecord):
    assert read_step(record) is None


@pytest.mark.parametrize(
    ("attributes", "arguments", "result"),
    [
        ({OLD_ARGUMENTS: '{"q": 1}', OLD_RESULT: '{"result": 2}'}, '{"q": 1}', '{"result": 2}'),
        # A tool without parameters, and one that answers with nothing
        ({OLD_ARGUMENTS: "{}", OLD_RESULT: '{"result": 2}'}, "{}", '{"result": 2}'),
        ({OLD_ARGUMENTS: '{"q": 1}', OLD_RESULT: "{}"}, '{"q": 1}', "{}"),
        # Content was not to be captured
        ({OLD_ARGUMENTS: "{}", OLD_RESULT: "{}"}, UNKNOWN, UNKNOWN),
        # The tool raised
        ({OLD_ARGUMENTS: "{}", OLD_RESULT: '{"result": "<not specified>"}'}, "{}", UNKNOWN),
        ({OLD_ARGUMENTS: '{"q": 1}'}, '{"q": 1}', UNKNOWN),
        # The second schema
        ({ARGUMENTS: '{"q": 1}', RESULT: '{"result": 2}'}, '{"q": 1}', '{"result": 2}'),
        ({}, UNKNOWN, UNKNOWN),
    ],
)
def test_tool(attributes: Mapping[str, object], arguments: object, result: object):
    step = read(tool(attributes))
    assert (step.arguments, step.result) == (arguments, result)


def streamed(*calls: Mapping[str, object]) -> SpanRecord:
    *parts, last = calls
    messages = [{"role": "assistant", "parts": [part], "finish_reason": ""} for part in parts]
    messages.append({"role": "assistant", "parts": [last], "finish_reason": "stop"})
    return adk("generate_content gemini", {"gen_ai.output.messages": json.dumps(messages)})


def part(
    call_id: str | None, name: str = "search", arguments: object = None
) -> Mapping[str, object]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


STREAMED: list[tuple[SpanRecord, list[tuple[str | None, object]]]] = [
    (streamed(part("c1"), part("c1"), part("c1", arguments={"q": 1})), [("c1", {"q": 1})]),
    # The end came with the last part, so the whole is not shown
    (streamed(part("c1"), part("c1", ""), part("c1", "")), [("c1", UNKNOWN)]),
    (
        streamed(part("c1"), part("c2"), part("c1", arguments={}), part("c2", arguments={})),
        [("c1", {}), ("c2", {})],
    ),
    # No parts: a model may ask twice for the same, and ids may be missing or be given twice
    (streamed(part(None), part(None)), [(None, UNKNOWN)] * 2),
    (
        streamed(part("search_0", arguments={"q": 1}), part("search_0", arguments={"q": 2})),
        [("search_0", {"q": 1}), ("search_0", {"q": 2})],
    ),
]
"""A model call that was streamed, and the tool calls that it asked for."""


@pytest.mark.parametrize(("record", "calls"), STREAMED)
def test_a_streamed_call_is_one(record: SpanRecord, calls: list[tuple[str | None, object]]):
    assert read(record).tool_calls == tuple(
        ToolCall(name="search", arguments=arguments, call_id=call_id)
        for call_id, arguments in calls
    )


def test_a_tool_that_raised_has_no_call_id():
    assert read(tool({CALL_ID: "<not specified>"})).call_id is None
    assert read(tool({CALL_ID: "c1"})).call_id == "c1"


@pytest.mark.parametrize(
    ("shown", "tool_calls", "output"),
    [
        (response(CALL), (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),), ""),
        (response({"function_call": {"name": "t", "args": None}}), (ToolCall(name="t"),), ""),
        (response({"text": "done"}), (), "done"),
        (response({"text": "hm", "thought": True}, {"text": "done"}), (), "done"),
        (response({"inline_data": {}}), (), UNKNOWN),
        (response(), (), ""),
        ('{"content": {"role": "model"}}', (), ""),
        # Not captured, or not as the API has it
        ("{}", UNKNOWN, UNKNOWN),
        ("<not serializable>", UNKNOWN, UNKNOWN),
        ('{"content": {"parts": 3}}', UNKNOWN, UNKNOWN),
    ],
)
def test_answer_of_a_model(shown: str, tool_calls: object, output: object):
    step = read(call_llm({RESPONSE: shown}))
    assert (step.tool_calls, step.output) == (tool_calls, output)


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ([{"function_declarations": [{"name": "a"}, {"name": "b"}]}], {"a", "b"}),
        ([{"function_declarations": [{"name": "a"}]}, {"google_search": {"x": 1}}], UNKNOWN),
        ([{"function_declarations": [{"description": "d"}]}], UNKNOWN),
        ([], set[str]()),
        (None, set[str]()),
        (3, UNKNOWN),
    ],
)
def test_offered_tools(tools: object, expected: object):
    assert read(call_llm({REQUEST: request(tools=tools)})).offered_tools == expected
    assert read(call_llm({REQUEST: "{}"})).offered_tools is UNKNOWN
    assert read(call_llm({})).offered_tools is UNKNOWN


@pytest.mark.parametrize(
    ("contents", "answers", "spoken"),
    [
        ([said("user", {"text": "weather?"})], (), True),
        ([said("user", {"text": "weather?"}), said("model", CALL)], (), False),
        (
            [said("user", {"text": "weather?"}), said("model", CALL), said("user", ANSWER)],
            (ToolAnswer(call_id="c1", result={"result": "rain"}),),
            False,
        ),
        ([said("user", {"function_response": {"name": "search"}})], (), False),
        ([said("user", {"function_response": {"id": "c1"}})], (ToolAnswer(call_id="c1"),), False),
        ([{"role": "user"}], (), False),
        ([], (), False),
    ],
)
def test_what_is_new_in_the_input(
    contents: list[Mapping[str, object]], answers: tuple[ToolAnswer, ...], *, spoken: bool
):
    heard = hear(call_llm({REQUEST: request(*contents)}))
    assert heard == ModelInput(answers=answers, spoken=spoken)


@pytest.mark.parametrize(
    "record",
    [
        call_llm({REQUEST: "{}"}),
        call_llm({}),
        adk("execute_tool t", {REQUEST: request()}),
        span("call_llm", {REQUEST: request()}),
    ],
)
def test_an_input_that_is_not_shown(record: SpanRecord):
    assert read_input(record) is None


def test_two_spans_of_one_answer_show_it_alike():
    around = call_llm({EVENT_ID: "e1", "gen_ai.usage.input_tokens": 7})
    inside = adk("generate_content g", {EVENT_ID: "e1", "gen_ai.usage.input_tokens": 7})
    assert read(around).response_id == read(inside).response_id == "e1"
    assert read(around).input_tokens == 7
    named = adk("generate_content g", {EVENT_ID: "e1", "gen_ai.response.id": "r1"})
    assert read(named).response_id == "r1"

"""What is read from OpenTelemetry's GenAI names: one fact a row."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import _offered, read_input
from otel_loopguard.dialects._values import parsed
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import (
    ARGUMENTS,
    CALL_ID,
    DEFINITIONS,
    GIVEN,
    MESSAGES,
    REASONS,
    RESULT,
    answer,
    chat,
    event,
    genai_llm,
    genai_tool,
    hear,
    read,
    span,
    tool_message,
)


class Count(enum.IntEnum):
    """A number that is not quite one."""

    SEVEN = 7


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({ARGUMENTS: '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({ARGUMENTS: {"q": 1}}, "arguments", {"q": 1}),
        ({ARGUMENTS: ""}, "arguments", ""),
        ({ARGUMENTS: None}, "arguments", UNKNOWN),
        ({}, "arguments", UNKNOWN),
        ({ARGUMENTS: "__REDACTED__"}, "arguments", UNKNOWN),
        ({"tool_arguments": "{}"}, "arguments", "{}"),
        ({"loopguard.arguments.hash": "0fA"}, "arguments", "hash:gvq"),
        ({ARGUMENTS: "{}", "loopguard.arguments.hash": "0fA"}, "arguments", "{}"),
        ({RESULT: "found"}, "result", "found"),
        ({"tool_response": "found"}, "result", "found"),
        ({"gen_ai.prompt": '{"input": "x"}'}, "arguments", '{"input": "x"}'),
        ({"gen_ai.completion": tool_message("found")}, "result", "found"),
        ({"gen_ai.completion": tool_message("found")}, "call_id", "c1"),
        ({RESULT: "[REDACTED]"}, "result", UNKNOWN),
        ({"anthropic.tool_result.content": "[]"}, "result", "[]"),
        (
            {"anthropic.tool_result.content": "[]", "anthropic.content.truncated": True},
            "result",
            UNKNOWN,
        ),
        ({ARGUMENTS: "<REDACTED>"}, "arguments", UNKNOWN),
        ({"loopguard.result.hash": "12"}, "result", "hash:hi"),
        ({}, "result", UNKNOWN),
        ({CALL_ID: "c1"}, "call_id", "c1"),
        ({CALL_ID: "<not specified>"}, "call_id", None),
        ({CALL_ID: 7}, "call_id", None),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({}, "agent", ""),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        ({}, "agent_id", None),
        ({}, "error", None),
        ({"error.type": "Timeout"}, "error", "Timeout"),
    ],
)
def test_genai_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(genai_tool(attributes)), field) == expected


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"}, "name", "m"),
        ({"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"}, "model", "m-1"),
        ({"gen_ai.request.model": "m"}, "model", "m"),
        ({"gen_ai.provider.name": "p", "gen_ai.system": "s"}, "provider", "p"),
        ({"gen_ai.system": "s"}, "provider", "s"),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        ({REASONS: ("tool_calls",)}, "finish_reasons", ("tool_calls",)),
        ({REASONS: ["stop", "", 3]}, "finish_reasons", ("stop",)),
        ({REASONS: '["tool_calls"]'}, "finish_reasons", ("tool_calls",)),
        ({REASONS: "stop"}, "finish_reasons", ("stop",)),
        ({REASONS: "[stop"}, "finish_reasons", ("[stop",)),
        ({REASONS: ""}, "finish_reasons", ()),
        ({REASONS: 3}, "finish_reasons", ()),
        ({"gen_ai.response.finish_reason": "length"}, "finish_reasons", ("length",)),
        ({"anthropic.message.stop_reason": "end_turn"}, "finish_reasons", ("end_turn",)),
        ({MESSAGES: answer(finish_reason="stop")}, "finish_reasons", ("stop",)),
        ({MESSAGES: answer(), REASONS: ("length",)}, "finish_reasons", ("length",)),
        ({"gen_ai.usage.input_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 0}, "input_tokens", 0),
        ({"gen_ai.usage.input_tokens": "7"}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 7.0}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": Count.SEVEN}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 7.5}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": -7}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": True}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": "many"}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": "²"}, "input_tokens", None),
        ({"gen_ai.usage.input_tokens": "9" * 5000}, "input_tokens", None),
        ({"gen_ai.usage.prompt_tokens": 7}, "input_tokens", 7),
        ({"gen_ai.aggregated_usage.input_tokens": 7}, "input_tokens", None),
        ({"gen_ai.response.id": "r1"}, "response_id", "r1"),
        ({"gen_ai.response.id": 7}, "response_id", ""),
        ({}, "response_id", ""),
        ({"gen_ai.usage.output_tokens": 7}, "output_tokens", 7),
        ({"gen_ai.usage.completion_tokens": 7}, "output_tokens", 7),
        ({"gen_ai.usage.cache_read.input_tokens": 7}, "cache_read_tokens", 7),
        ({"gen_ai.usage.cache_read_input_tokens": 7}, "cache_read_tokens", 7),
        ({"gen_ai.usage.cache_write.input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.cache_creation.input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.cache_write_input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.cache_creation_input_tokens": 7}, "cache_write_tokens", 7),
        ({"gen_ai.usage.reasoning.output_tokens": 7}, "reasoning_tokens", 7),
        ({"gen_ai.usage.reasoning_tokens": 7}, "reasoning_tokens", 7),
        ({"gen_ai.usage.details.reasoning_tokens": 7}, "reasoning_tokens", 7),
        ({"operation.cost": 0.25}, "cost_usd", 0.25),
        ({"operation.cost": "0.25"}, "cost_usd", 0.25),
        ({"operation.cost": 1}, "cost_usd", 1.0),
        ({"operation.cost": 0}, "cost_usd", 0.0),
        ({"operation.cost": True}, "cost_usd", None),
        ({"operation.cost": "dear"}, "cost_usd", None),
        ({"operation.cost": float("nan")}, "cost_usd", None),
        ({"operation.cost": -1}, "cost_usd", None),
        ({"operation.cost": 10**400}, "cost_usd", None),
    ],
)
def test_genai_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(genai_llm(attributes)), field) == expected


TEXT = {"type": "text", "content": "done"}
CHAT_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"q": 1}'},
}
CALLED = ToolCall(name="search", arguments='{"q": 1}', call_id="c1")
UNNAMED = ToolCall(name="t", call_id="c1")
CALL = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": 1}}


@pytest.mark.parametrize(
    ("messages", "tool_calls", "output"),
    [
        (answer(TEXT), (), "done"),
        (answer(TEXT, TEXT), (), "done\ndone"),
        (answer(), (), ""),
        (answer(CALL), (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),), ""),
        (answer({"type": "tool_call", "name": "search"}), (ToolCall(name="search"),), ""),
        (answer(TEXT, CALL), (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),), "done"),
        # Content that was not captured is not an empty text.
        (answer({"type": "text"}), (), UNKNOWN),
        (answer({"type": "text", "content": 3}), (), UNKNOWN),
        (answer({"type": "reasoning", "content": "hm"}, TEXT), (), "done"),
        # What is not text cannot be compared.
        (answer({"type": "blob", "content": "0"}, TEXT), (), UNKNOWN),
        # The v2 package for OpenAI Agents writes calls as text, and no finish reason.
        (answer(TEXT, finish_reason=None), UNKNOWN, "done"),
        (
            answer(CALL, finish_reason=None),
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
            "",
        ),
        # The provider has run a tool itself.
        (answer(CALL, {"type": "tool_call_response", "id": "c1"}, TEXT), (), "done"),
        (
            answer(CALL, {"type": "tool_call_response", "id": "c2"}),
            (ToolCall(name="search", arguments={"q": 1}, call_id="c1"),),
            "",
        ),
        # Messages as in OpenAI's Chat API
        (chat("done"), UNKNOWN, "done"),
        (chat("done", finish_reason="stop"), (), "done"),
        (chat([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), UNKNOWN, "a\nb"),
        (chat([{"type": "image_url"}]), UNKNOWN, UNKNOWN),
        (chat(None, CHAT_CALL), (CALLED,), ""),
        (chat("wait", CHAT_CALL), (CALLED,), "wait"),
        (chat("", {"id": "c1", "function": {"name": "t"}}), (UNNAMED,), ""),
        ([{"content": "done"}, {"finish_reason": "stop"}], (), UNKNOWN),
        # Not captured, or not as the convention has it
        (None, UNKNOWN, UNKNOWN),
        ("[]", UNKNOWN, UNKNOWN),
        ("not JSON", UNKNOWN, UNKNOWN),
        ("__REDACTED__", UNKNOWN, UNKNOWN),
        ('[{"role": "assistant"}]', UNKNOWN, UNKNOWN),
        ('[{"role": "assistant", "content": 3}]', UNKNOWN, UNKNOWN),
        ('[{"parts": 3}]', UNKNOWN, UNKNOWN),
        (3, UNKNOWN, UNKNOWN),
        # The structure itself, as newer SDKs allow
        (({"parts": (TEXT,), "finish_reason": "stop"},), (), "done"),
    ],
)
def test_genai_answer(messages: object, tool_calls: object, output: object):
    step = read(genai_llm({MESSAGES: messages}))
    assert (step.tool_calls, step.output) == (tool_calls, output)


COMPLETION = "gen_ai.completion.0"


@pytest.mark.parametrize(
    ("attributes", "tool_calls", "output", "finish_reasons"),
    [
        ({"gen_ai.completion": answer(TEXT)}, (), "done", ("stop",)),
        ({MESSAGES: answer(TEXT), "gen_ai.completion": answer()}, (), "done", ("stop",)),
        (
            {f"{COMPLETION}.role": "assistant", f"{COMPLETION}.content": "done"},
            (),
            "done",
            (),
        ),
        (
            {f"{COMPLETION}.content": "done", "gen_ai.completion.1.content": "."},
            (),
            "done\n.",
            (),
        ),
        (
            {
                f"{COMPLETION}.finish_reason": "tool_calls",
                f"{COMPLETION}.role": "assistant",
                f"{COMPLETION}.tool_calls.0.id": "c1",
                f"{COMPLETION}.tool_calls.0.name": "search",
                f"{COMPLETION}.tool_calls.0.arguments": '{"q": 1}',
                f"{COMPLETION}.tool_calls.1.name": "t",
            },
            (CALLED, ToolCall(name="t")),
            "",
            ("tool_calls",),
        ),
        ({f"{COMPLETION}.finish_reason": "stop"}, UNKNOWN, UNKNOWN, ("stop",)),
        ({"gen_ai.completion.1.role": "assistant"}, UNKNOWN, UNKNOWN, ()),
    ],
)
def test_older_names_of_the_answer(
    attributes: Mapping[str, object], tool_calls: object, output: object, finish_reasons: object
):
    step = read(genai_llm(attributes))
    assert (step.tool_calls, step.output, step.finish_reasons) == (
        tool_calls,
        output,
        finish_reasons,
    )


BODY = '{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}'


@pytest.mark.parametrize(
    ("events", "output", "finish_reasons"),
    [
        ([event("gen_ai.choice", **{"gen_ai.event.content": BODY})], "done", ("stop",)),
        (
            [event("gen_ai.choice", message='{"content": "done"}', finish_reason="stop")],
            "done",
            ("stop",),
        ),
        ([event("gen_ai.choice", content="done", finish_reason="stop")], "done", ("stop",)),
        ([event("gen_ai.choice", message="done", finish_reason="stop")], "done", ("stop",)),
        ([event("gen_ai.choice", message="[REDACTED]")], UNKNOWN, ()),
        ([event("gen_ai.choice", finish_reason="stop")], UNKNOWN, ()),
        ([event("gen_ai.content.completion", **{"gen_ai.completion": chat("done")})], "done", ()),
        (
            [event("gen_ai.client.inference.operation.details", **{MESSAGES: answer(TEXT)})],
            "done",
            ("stop",),
        ),
        (
            [event("gen_ai.client.inference.operation.details", **{GIVEN: answer(TEXT)})],
            UNKNOWN,
            (),
        ),
        ([event("exception")], UNKNOWN, ()),
    ],
)
def test_an_answer_in_span_events(
    events: list[SpanEventRecord], output: object, finish_reasons: object
):
    step = read(span("chat m", events=events))
    assert (step.output, step.finish_reasons) == (output, finish_reasons)


def test_attributes_go_before_events():
    events = [event("gen_ai.choice", content="other", finish_reason="stop")]
    assert read(span("chat m", {MESSAGES: answer(TEXT)}, events=events)).output == "done"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2}, (7, 2)),
        ({"gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 2}, (7, 2)),
        (
            {
                "gen_ai.aggregated_usage.input_tokens": 7,
                "gen_ai.aggregated_usage.output_tokens": 2,
            },
            (7, 2),
        ),
        ({"gen_ai.aggregated_usage.input_tokens": 7, "gen_ai.usage.input_tokens": 8}, (8, None)),
        ({}, (None, None)),
    ],
)
def test_what_an_agent_has_used(attributes: Mapping[str, object], expected: object):
    step = read(span("invoke_agent a", attributes))
    assert (step.input_tokens, step.output_tokens) == expected


def test_all_that_an_agent_has_used():
    step = read(
        span(
            "invoke_agent a",
            {
                "gen_ai.aggregated_usage.cache_read.input_tokens": 1,
                "gen_ai.aggregated_usage.cache_write.input_tokens": 2,
                "gen_ai.aggregated_usage.details.reasoning_tokens": 3,
                "operation.cost": 0.5,
            },
        )
    )
    assert (step.cache_read_tokens, step.cache_write_tokens, step.reasoning_tokens) == (1, 2, 3)
    assert step.cost_usd == 0.5


USER = {"role": "user", "parts": [{"type": "text", "content": "weather?"}]}
ASKED = {"role": "assistant", "parts": [CALL]}
ANSWERED = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}],
}
ANSWER_C1 = ToolAnswer(call_id="c1", result="rain")


@pytest.mark.parametrize(
    ("messages", "answers", "spoken"),
    [
        ([USER], (), True),
        ([USER, ASKED], (), False),
        ([USER, ASKED, ANSWERED], (ANSWER_C1,), False),
        ([USER, ASKED, ANSWERED, USER], (ANSWER_C1,), True),
        ([USER, ASKED, ANSWERED, {"role": "assistant", "parts": [TEXT]}, USER], (), True),
        ([USER, {"role": "model", "parts": [TEXT]}], (), False),
        ([{"role": "system", "parts": [TEXT]}], (), False),
        # Anthropic and Strands answer in the name of the user
        ([ASKED, {**ANSWERED, "role": "user"}], (ANSWER_C1,), False),
        # Pydantic AI
        (
            [
                {
                    "role": "user",
                    "parts": [
                        {"type": "tool_call_response", "id": "c1", "name": "t", "result": ["rain"]}
                    ],
                }
            ],
            (ToolAnswer(call_id="c1", result=["rain"]),),
            False,
        ),
        # without content
        (
            [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1"}]}],
            (ToolAnswer(call_id="c1"),),
            False,
        ),
        ([{"role": "user", "parts": [{"type": "text"}]}], (), True),
        ([{"role": "tool", "parts": [{"type": "tool_call_response", "response": "r"}]}], (), False),
        ([{"role": "tool", "parts": [CALL]}], (), False),
        # as in OpenAI's Chat API
        ([{"role": "user", "content": "weather?"}], (), True),
        ([{"role": "user", "content": ""}], (), False),
        ([{"role": "user", "content": [{"type": "text", "text": "weather?"}]}], (), True),
        ([{"role": "tool", "tool_call_id": "c1", "content": "rain"}], (ANSWER_C1,), False),
        ([{"role": "tool", "id": "c1", "content": "rain"}], (ANSWER_C1,), False),
        ([{"role": "tool", "tool_call_id": "c1"}], (ToolAnswer(call_id="c1"),), False),
        ([{"role": "tool", "content": "rain"}], (), False),
        (
            [{"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]}],
            (ANSWER_C1,),
            False,
        ),
        # as in Anthropic's Messages API
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}],
                }
            ],
            (ANSWER_C1,),
            False,
        ),
        ([], (), False),
    ],
)
def test_what_is_new_in_the_input(
    messages: list[object], answers: tuple[ToolAnswer, ...], *, spoken: bool
):
    expected = ModelInput(answers=answers, spoken=spoken)
    assert hear(genai_llm({GIVEN: json.dumps(messages)})) == expected
    assert hear(genai_llm({GIVEN: messages})) == expected
    assert hear(genai_llm({"gen_ai.prompt": json.dumps(messages)})) == expected


@pytest.mark.parametrize(
    "record",
    [
        genai_llm({}),
        genai_llm({GIVEN: "not JSON"}),
        genai_llm({GIVEN: '[{"role": "user", "parts": 3}]'}),
        genai_llm({GIVEN: "__REDACTED__"}),
        genai_llm({GIVEN: "[" + " " * 9 + "]"}, limit=11),
        genai_llm({GIVEN: ({"role": "user", "content": "12345"},)}, limit=5),
        genai_llm({GIVEN: "{}"}),
        genai_llm({GIVEN: {"role": "user"}}),
        genai_llm({GIVEN: 3}),
        genai_tool({GIVEN: "[]"}),
        span("invoke_agent a", {GIVEN: "[]"}),
        span("other", {GIVEN: "[]"}),
        span("chat m", events=[event("gen_ai.choice", content="done")]),
    ],
)
def test_an_input_that_is_not_shown(record: SpanRecord):
    assert read_input(record) is None


def test_the_answer_that_a_model_call_goes_on_from():
    previous = {"gen_ai.request.previous_response.id": "r1"}
    assert hear(genai_llm(previous)) == ModelInput(previous_response_id="r1")
    heard = hear(genai_llm({**previous, GIVEN: json.dumps([ANSWERED])}))
    assert heard == ModelInput(answers=(ANSWER_C1,), previous_response_id="r1")


def test_an_input_that_is_flattened():
    attributes = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "weather?",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.name": "search",
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": "rain",
    }
    assert hear(genai_llm(attributes)) == ModelInput(answers=(ANSWER_C1,))


def test_an_input_in_span_events():
    events = [
        event("gen_ai.system.message", content="You help."),
        event("gen_ai.user.message", content="weather?"),
        event("gen_ai.assistant.message", **{"gen_ai.event.content": '{"tool_calls": []}'}),
        event("gen_ai.tool.message", **{"gen_ai.event.content": '{"id": "c1", "content": "rain"}'}),
        event("gen_ai.choice", content="done"),
    ]
    assert hear(span("chat m", events=events)) == ModelInput(answers=(ANSWER_C1,))
    whole = event("gen_ai.content.prompt", **{"gen_ai.prompt": json.dumps([USER])})
    assert hear(span("chat m", events=[whole])).spoken


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        ('[{"type": "function", "name": "a"}, {"name": "b"}]', {"a", "b"}),
        ('[{"type": "function", "function": {"name": "a"}}]', {"a"}),
        (({"name": "a"},), {"a"}),
        ("[]", set[str]()),
        # A hosted tool or a whole server of tools: what it offers is not known.
        ('[{"name": "a"}, {"type": "mcp"}]', UNKNOWN),
        ('[{"name": "a"}', UNKNOWN),
        ("__REDACTED__", UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_genai_offered_tools(definitions: object, expected: object):
    assert read(genai_llm({DEFINITIONS: definitions})).offered_tools == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a", "a", "a"], 1),
        (["a", "b", "a", "b"], 2),
        ([*"abcdefghi", "a"], 10),
        (["a" * 70_000] * 2, 2),
    ],
    ids=["one", "two agents", "too many agents", "too long"],
)
def test_definitions_that_repeat_are_read_once(
    monkeypatch: pytest.MonkeyPatch, texts: list[str], expected: int
):
    read_now: list[object] = []

    def noted(shown: object, decoder: Any) -> Any:
        read_now.append(shown)
        return parsed(shown, decoder)

    monkeypatch.setattr(_offered, "_latest", ())
    monkeypatch.setattr(_offered, "parsed", noted)
    for name in texts:
        definitions = json.dumps([{"name": name}])
        assert read(genai_llm({DEFINITIONS: definitions})).offered_tools == {name}

    assert len(read_now) == expected

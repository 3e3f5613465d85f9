"""Scripts and wire formats of the scripted model: pure, so tables are enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.testing import openai_chat, openai_responses
from otel_loopguard.testing.samples import sample_arguments
from otel_loopguard.testing.scripts import (
    FINAL_ANSWER,
    NO_TOOLS,
    SCRIPTS,
    OfferedTool,
    ScriptedCall,
    Turn,
    find_script,
    script_named,
)
from otel_loopguard.testing.wire import (
    Mention,
    Reply,
    RequestError,
    ServerSentEvent,
    WireFormat,
    history_fault,
    usage_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = OfferedTool(name="search", parameters=TEXT)
LOOKUP = OfferedTool(name="lookup")
CALL_SEARCH = Turn(calls=(ScriptedCall(name="search", arguments={"query": "alpha"}),))
CALL_LOOKUP = Turn(calls=(ScriptedCall(name="lookup", arguments={}),))


@pytest.mark.parametrize(
    ("script", "tools", "results", "expected"),
    [
        ("endless", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("endless", [SEARCH, LOOKUP], 1, CALL_SEARCH),
        ("endless", [SEARCH, LOOKUP], 10_000, CALL_SEARCH),
        ("endless", [LOOKUP, SEARCH], 0, CALL_LOOKUP),
        ("endless", [], 0, NO_TOOLS),
        ("finish3", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("finish3", [SEARCH, LOOKUP], 1, CALL_LOOKUP),
        ("finish3", [SEARCH, LOOKUP], 2, FINAL_ANSWER),
        ("finish3", [SEARCH, LOOKUP], 3, FINAL_ANSWER),
        ("finish3", [SEARCH], 1, CALL_SEARCH),
        ("finish3", [], 0, NO_TOOLS),
    ],
)
def test_a_script_sees_only_tools_and_the_number_of_results(
    script: str, tools: Sequence[OfferedTool], results: int, expected: Turn
) -> None:
    assert script_named(script)(tools, results) == expected


def test_a_script_that_does_not_exist_is_named_with_those_that_do() -> None:
    assert find_script("gpt-4o") is None
    with pytest.raises(ValueError, match=r"'gpt-4o' does not exist.*'endless', 'finish3'"):
        script_named("gpt-4o")
    assert set(SCRIPTS) == {"endless", "finish3"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        ({"properties": {"a": {"type": "integer"}, "b": {"type": "number"}}}, {"a": 1, "b": 1}),
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "alpha"}),
        ({"properties": {"a": {"type": "boolean"}}}, {"a": True}),
        ({"properties": {"a": {"type": "array"}}}, {"a": []}),
        ({"properties": {"a": {"type": "null"}}}, {"a": None}),
        ({"properties": {"a": {"type": ["integer", "null"]}}}, {"a": 1}),
        ({"properties": {"a": {"type": "object", "properties": {"b": {}}}}}, {"a": {"b": "alpha"}}),
        ({"properties": {"a": {"enum": ["north", "south"]}}}, {"a": "north"}),
        ({"properties": {"a": {"const": 7}}}, {"a": 7}),
        ({"properties": {"a": {"default": "d", "examples": ["e"]}}}, {"a": "d"}),
        ({"properties": {"a": {"type": "string", "examples": ["e", "f"]}}}, {"a": "e"}),
        ({"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}, {"a": 1}),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/Place"}},
                "$defs": {"Place": {"type": "object", "properties": {"city": {}}}},
            },
            {"a": {"city": "alpha"}},
        ),
    ],
)
def test_sample_arguments_are_valid_and_always_the_same(
    schema: dict[str, object], expected: object
) -> None:
    assert sample_arguments(schema) == expected
    assert sample_arguments(schema) == sample_arguments(schema)


def test_a_schema_that_requires_itself_ends() -> None:
    schema: dict[str, object] = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert "None" in str(sample_arguments(schema))


@pytest.mark.parametrize(
    ("results", "expected"),
    [(0, (100, 0, 20, 120)), (1, (130, 64, 20, 150)), (5, (250, 64, 20, 270))],
)
def test_usage_grows_with_the_history(results: int, expected: tuple[int, ...]) -> None:
    usage = usage_of(results)
    tokens = (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.total_tokens)
    assert tokens == expected


@pytest.mark.parametrize(
    ("history", "named"),
    [
        ("", None),
        ("+a -a", None),
        ("+a +b -b -a", None),
        ("+a -a +b -b", None),
        ("+a", "'a'"),
        ("+a +b -a", "'b'"),
        ("-a", "'a'"),
        ("-a +a", "'a'"),
        ("+a -a -a", "'a'"),
    ],
)
def test_every_call_is_answered_once_by_its_id(history: str, named: str | None) -> None:
    mentions = [
        Mention(kind="call" if entry[0] == "+" else "result", call_id=entry[1:])
        for entry in history.split()
    ]
    fault = history_fault(mentions)
    assert fault is None if named is None else named in str(fault)


def test_an_event_is_written_as_the_event_stream_format_says() -> None:
    assert ServerSentEvent(data="{}").encode() == b"data: {}\n\n"
    assert ServerSentEvent(data="{}", name="x").encode() == b"event: x\ndata: {}\n\n"


def reply_of(turn: Turn, *, stream_usage: bool = True) -> Reply:
    return Reply(
        turn=turn,
        model="m",
        usage=usage_of(1),
        ident="7",
        created_s=1_700_000_000,
        stream_usage=stream_usage,
    )


BOTH = Turn(calls=(*CALL_SEARCH.calls, *CALL_LOOKUP.calls))


def test_chat_writes_parallel_calls() -> None:
    body = openai_chat.write_reply(reply_of(BOTH))
    assert body["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_7_0",
                        "type": "function",
                        "function": {"name": "search", "arguments": '{"query":"alpha"}'},
                    },
                    {
                        "id": "call_7_1",
                        "type": "function",
                        "function": {"name": "lookup", "arguments": "{}"},
                    },
                ],
            },
            "finish_reason": "tool_calls",
            "logprobs": None,
        }
    ]
    assert body["usage"] == {
        "prompt_tokens": 130,
        "completion_tokens": 20,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def test_chat_writes_a_text() -> None:
    (choice,) = json.loads(json.dumps(openai_chat.write_reply(reply_of(FINAL_ANSWER))["choices"]))
    assert choice["finish_reason"] == "stop"
    assert choice["message"] == {"role": "assistant", "content": "The final answer is 42."}


def test_responses_writes_parallel_calls() -> None:
    body = openai_responses.write_reply(reply_of(BOTH))
    call = {"type": "function_call", "status": "completed"}
    assert body["status"] == "completed"
    assert body["output"] == [
        {
            **call,
            "id": "fc_7_0",
            "call_id": "call_7_0",
            "name": "search",
            "arguments": '{"query":"alpha"}',
        },
        {**call, "id": "fc_7_1", "call_id": "call_7_1", "name": "lookup", "arguments": "{}"},
    ]
    assert body["usage"] == {
        "input_tokens": 130,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 150,
    }


def test_responses_writes_a_text() -> None:
    (item,) = json.loads(json.dumps(openai_responses.write_reply(reply_of(FINAL_ANSWER))["output"]))
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert [part["text"] for part in item["content"]] == ["The final answer is 42."]


def test_chat_streams_what_it_writes() -> None:
    chunks = [event.data for event in openai_chat.stream_reply(reply_of(BOTH))]
    assert chunks.pop() == "[DONE]"
    decoded = [json.loads(chunk) for chunk in chunks]
    assert decoded.pop()["usage"]["total_tokens"] == 150
    assert [chunk["choices"][0]["finish_reason"] for chunk in decoded][-1] == "tool_calls"
    arguments = {0: "", 1: ""}
    ids: dict[int, str] = {}
    for chunk in decoded:
        for call in chunk["choices"][0]["delta"].get("tool_calls", ()):
            arguments[call["index"]] += call["function"]["arguments"]
            ids.setdefault(call["index"], call.get("id"))
    assert ids == {0: "call_7_0", 1: "call_7_1"}
    assert arguments == {0: '{"query":"alpha"}', 1: "{}"}


def test_chat_streams_a_text_and_usage_only_where_asked() -> None:
    reply = reply_of(FINAL_ANSWER, stream_usage=False)
    decoded = [json.loads(event.data) for event in list(openai_chat.stream_reply(reply))[:-1]]
    assert all("usage" not in chunk for chunk in decoded)
    parts = [chunk["choices"][0]["delta"].get("content", "") for chunk in decoded]
    assert "".join(parts) == "The final answer is 42."
    assert len([part for part in parts if part]) == 2


def test_responses_streams_what_it_writes() -> None:
    reply = reply_of(BOTH)
    events = [json.loads(event.data) for event in openai_responses.stream_reply(reply)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"] == json.loads(json.dumps(openai_responses.write_reply(reply)))
    arguments = {"fc_7_0": "", "fc_7_1": ""}
    for event in events:
        if event["type"] == "response.function_call_arguments.delta":
            arguments[event["item_id"]] += event["delta"]
    assert arguments == {"fc_7_0": '{"query":"alpha"}', "fc_7_1": "{}"}


def test_responses_streams_a_text_and_names_its_events() -> None:
    events = list(openai_responses.stream_reply(reply_of(FINAL_ANSWER)))
    assert [event.name for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [json.loads(event.data).get("delta", "") for event in events]
    assert "".join(deltas) == "The final answer is 42."


def test_chat_reads_tools_and_history() -> None:
    body = {
        "model": "endless",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "search", "parameters": TEXT}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
    }
    request = openai_chat.read_request(json.dumps(body).encode())
    assert (request.model, request.stream, request.stream_usage) == ("endless", True, True)
    assert request.tools == (SEARCH,)
    assert request.tool_results == 2
    assert [(each.kind, each.call_id) for each in request.history] == [
        ("call", "a"),
        ("call", "b"),
        ("result", "b"),
        ("result", "a"),
    ]


def test_responses_reads_tools_and_history() -> None:
    body = {
        "model": "endless",
        "tools": [
            {"type": "web_search"},
            {"type": "function", "name": "search", "parameters": TEXT},
        ],
        "input": [
            {"role": "user", "content": "hello"},
            {"type": "function_call", "call_id": "a", "name": "search", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
        ],
    }
    request = openai_responses.read_request(json.dumps(body).encode())
    assert (request.model, request.stream, request.tools) == ("endless", False, (SEARCH,))
    assert [(each.kind, each.call_id) for each in request.history] == [
        ("call", "a"),
        ("result", "a"),
    ]
    plain = openai_responses.read_request(b'{"model": "m", "input": "hello"}')
    assert plain.tool_results == 0


@pytest.mark.parametrize(
    "wire_format", [openai_chat.OPENAI_CHAT, openai_responses.OPENAI_RESPONSES]
)
@pytest.mark.parametrize(
    ("body", "said"),
    [(b"{", "truncated"), (b'{"messages": []}', "model"), (b'{"model": 1}', r"\$\.model")],
)
def test_a_body_that_is_no_request_is_refused_with_the_place(
    wire_format: WireFormat, body: bytes, said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        wire_format.read(body)


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_responses_refuses_history_that_it_would_have_to_keep(field: str) -> None:
    body = json.dumps({"model": "m", "input": "hello", field: "resp_1"}).encode()
    with pytest.raises(RequestError, match="keeps no history"):
        openai_responses.read_request(body)

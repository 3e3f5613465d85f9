"""Wire formats of the scripted model: pure, so tables are enough."""

from __future__ import annotations

import json

import pytest

from otel_loopguard.testing import openai_chat, openai_responses
from otel_loopguard.testing.scripts import FINAL_ANSWER, OfferedTool, ScriptedCall, Turn
from otel_loopguard.testing.wire import (
    Mention,
    Reply,
    RequestError,
    ServerSentEvent,
    WireFormat,
    encode_json,
    history_fault,
    usage_of,
)

TEXT = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = OfferedTool(name="search", parameters=TEXT)
CALL_SEARCH = Turn(calls=(ScriptedCall(name="search", arguments={"query": "alpha"}),))
CALL_LOOKUP = Turn(calls=(ScriptedCall(name="lookup", arguments={}),))


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


@pytest.mark.parametrize(
    ("turn", "reason", "status", "incomplete"),
    [
        (Turn(text="a"), "stop", "completed", None),
        (CALL_LOOKUP, "tool_calls", "completed", None),
        (Turn(text="a", calls=CALL_LOOKUP.calls), "tool_calls", "completed", None),
        (Turn(), "stop", "completed", None),
        (Turn(finish_reason="length"), "length", "incomplete", "max_output_tokens"),
        (Turn(finish_reason="content_filter"), "content_filter", "incomplete", "content_filter"),
        (Turn(text="a", finish_reason="tool_calls"), "tool_calls", "completed", None),
    ],
)
def test_each_api_says_why_the_model_stopped(
    turn: Turn, reason: str, status: str, incomplete: str | None
) -> None:
    chat = json.loads(json.dumps(openai_chat.write_reply(reply_of(turn))["choices"]))
    assert chat[0]["finish_reason"] == reason
    response = openai_responses.write_reply(reply_of(turn))
    assert response["status"] == status
    assert response["incomplete_details"] == (incomplete and {"reason": incomplete})
    last = [*openai_responses.stream_reply(reply_of(turn))][-1]
    assert last.name == f"response.{status}"


def test_a_turn_may_have_a_text_and_calls() -> None:
    turn = Turn(text="so", calls=BOTH.calls)
    (choice,) = json.loads(json.dumps(openai_chat.write_reply(reply_of(turn))["choices"]))
    assert choice["message"]["content"] == "so"
    assert len(choice["message"]["tool_calls"]) == 2
    output = json.loads(json.dumps(openai_responses.write_reply(reply_of(turn))["output"]))
    assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
    chunks = [json.loads(each.data) for each in [*openai_chat.stream_reply(reply_of(turn))][:-1]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "so"
    events = [json.loads(each.data) for each in openai_responses.stream_reply(reply_of(turn))]
    added = [each for each in events if each["type"] == "response.output_item.added"]
    assert [each["item"]["type"] for each in added] == ["message", "function_call", "function_call"]
    assert [each["output_index"] for each in added] == [0, 1, 2]


def test_a_turn_may_have_neither() -> None:
    (choice,) = json.loads(json.dumps(openai_chat.write_reply(reply_of(Turn()))["choices"]))
    assert choice["message"] == {"role": "assistant", "content": ""}
    assert openai_responses.write_reply(reply_of(Turn()))["output"] == []


def test_arguments_that_are_no_json_are_passed_on_as_they_are() -> None:
    call = ScriptedCall(name="search", arguments={"a": 1}, text='{"a"')
    turn = Turn(calls=(call,), finish_reason="length")
    assert '"arguments":"{\\"a\\""' in encode_json(openai_chat.write_reply(reply_of(turn)))
    (item,) = json.loads(json.dumps(openai_responses.write_reply(reply_of(turn))["output"]))
    assert (item["arguments"], item["status"]) == ('{"a"', "incomplete")


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", "scripted_model_refusal"),
        (401, "invalid_request_error", "invalid_api_key"),
        (429, "requests", "rate_limit_exceeded"),
        (418, "invalid_request_error", None),
        (502, "server_error", None),
    ],
)
def test_an_error_has_the_body_of_the_provider(status: int, kind: str, code: str | None) -> None:
    body = {"message": "no", "type": kind, "param": None, "code": code}
    assert openai_chat.OPENAI_CHAT.error(status, "no") == {"error": body}
    assert openai_responses.OPENAI_RESPONSES.error(status, "no") == {"error": body}


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
    request = openai_chat.read_request(json.dumps(body).encode(), {})
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
    request = openai_responses.read_request(json.dumps(body).encode(), {})
    assert (request.model, request.stream, request.tools) == ("endless", False, (SEARCH,))
    assert [(each.kind, each.call_id) for each in request.history] == [
        ("call", "a"),
        ("result", "a"),
    ]
    plain = openai_responses.read_request(b'{"model": "m", "input": "hello"}', {})
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
        wire_format.read(body, {})


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_responses_refuses_history_that_it_would_have_to_keep(field: str) -> None:
    body = json.dumps({"model": "m", "input": "hello", field: "resp_1"}).encode()
    with pytest.raises(RequestError, match="keeps no history"):
        openai_responses.read_request(body, {})

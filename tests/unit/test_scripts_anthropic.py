"""Anthropic's wire format of the scripted model: pure, so tables are enough."""

from __future__ import annotations

import json

import pytest

from otel_loopguard.testing.anthropic_messages import (
    ANTHROPIC_MESSAGES,
    read_request,
    stream_reply,
    write_reply,
)
from otel_loopguard.testing.scripts import FINAL_ANSWER, OfferedTool, ScriptedCall, Turn
from otel_loopguard.testing.wire import Reply, RequestError, usage_of

CALLS = (
    ScriptedCall(name="search", arguments={"query": "alpha"}),
    ScriptedCall(name="lookup", arguments={}),
)


def reply_of(turn: Turn) -> Reply:
    return Reply(turn=turn, model="m", usage=usage_of(1), ident="7", created_s=1_700_000_000)


def events_of(turn: Turn) -> list[dict[str, object]]:
    events = list(stream_reply(reply_of(turn)))
    decoded = [json.loads(event.data) for event in events]
    assert [event.name for event in events] == [each["type"] for each in decoded]
    return decoded


def test_parallel_calls() -> None:
    body = write_reply(reply_of(Turn(calls=CALLS)))
    assert body["content"] == [
        {"type": "tool_use", "id": "toolu_7_0", "name": "search", "input": {"query": "alpha"}},
        {"type": "tool_use", "id": "toolu_7_1", "name": "lookup", "input": {}},
    ]
    assert (body["type"], body["role"], body["stop_reason"]) == ("message", "assistant", "tool_use")


def test_a_text() -> None:
    body = write_reply(reply_of(FINAL_ANSWER))
    assert body["content"] == [{"type": "text", "text": "The final answer is 42."}]
    assert body["stop_reason"] == "end_turn"


def test_input_tokens_leave_the_cached_ones_out() -> None:
    assert write_reply(reply_of(FINAL_ANSWER))["usage"] == {
        "input_tokens": 66,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 64,
        "output_tokens": 20,
        "service_tier": "standard",
    }


def test_a_stream_of_parallel_calls() -> None:
    events = events_of(Turn(calls=CALLS))
    arguments = {0: "", 1: ""}
    for event in events:
        if event["type"] == "content_block_delta":
            delta = json.loads(json.dumps(event["delta"]))
            assert delta["type"] == "input_json_delta"
            arguments[int(str(event["index"]))] += delta["partial_json"]
    assert arguments == {0: '{"query":"alpha"}', 1: "{}"}
    opened = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert opened == [
        {"type": "tool_use", "id": "toolu_7_0", "name": "search", "input": {}},
        {"type": "tool_use", "id": "toolu_7_1", "name": "lookup", "input": {}},
    ]


def test_a_stream_of_a_text() -> None:
    events = events_of(FINAL_ANSWER)
    assert [event["type"] for event in events] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    deltas = json.loads(json.dumps([event.get("delta") for event in events]))
    assert deltas[3]["text"] + deltas[4]["text"] == "The final answer is 42."
    assert deltas[6] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[6]["usage"] == {"output_tokens": 20}


def test_a_request_is_read() -> None:
    body = {
        "model": "endless",
        "max_tokens": 100,
        "stream": True,
        "tools": [
            {"name": "search", "input_schema": {"type": "object"}},
            {"type": "web_search_20260209", "name": "web_search"},
        ],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "toolu_1"}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
        ],
    }
    request = read_request(json.dumps(body).encode(), {})
    assert (request.model, request.stream, request.tool_results) == ("endless", True, 1)
    assert request.tools == (OfferedTool(name="search", parameters={"type": "object"}),)
    assert [(each.kind, each.call_id) for each in request.history] == [
        ("call", "toolu_1"),
        ("result", "toolu_1"),
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "truncated"),
        (b'{"model": "m", "messages": []}', "max_tokens"),
        (b'{"model": 1}', r"\$\.model"),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_the_place(body: bytes, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        ANTHROPIC_MESSAGES.read(body, {})


def test_a_refusal_has_the_shape_of_the_providers() -> None:
    assert ANTHROPIC_MESSAGES.error(400, "no") == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "no"},
        "request_id": None,
    }


@pytest.mark.parametrize(
    ("turn", "reason", "blocks"),
    [
        (Turn(text="so", calls=CALLS), "tool_use", ["text", "tool_use", "tool_use"]),
        (Turn(), "end_turn", []),
        (Turn(text="so", finish_reason="length"), "max_tokens", ["text"]),
        (Turn(finish_reason="content_filter"), "refusal", []),
    ],
)
def test_a_turn_of_any_kind(turn: Turn, reason: str, blocks: list[str]) -> None:
    body = json.loads(json.dumps(write_reply(reply_of(turn))))
    assert (body["stop_reason"], [block["type"] for block in body["content"]]) == (reason, blocks)
    events = json.loads(json.dumps(events_of(turn)))
    begun = [each["content_block"]["type"] for each in events if "content_block" in each]
    assert begun == blocks
    assert events[-2]["delta"]["stop_reason"] == reason


def test_what_is_cut_is_streamed_as_it_is_and_what_is_no_json_is_not() -> None:
    call = ScriptedCall(name="search", arguments={"a": 1}, text='{"b"')
    assert partial_json(Turn(calls=(call,), finish_reason="length")) == '{"b"'
    assert partial_json(Turn(calls=(call,))) == '{"a":1}'


def partial_json(turn: Turn) -> str:
    events = json.loads(json.dumps(events_of(turn)))
    return "".join(each["delta"].get("partial_json", "") for each in events if "delta" in each)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "authentication_error"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_body_of_the_provider(status: int, kind: str) -> None:
    error = {"type": kind, "message": "no"}
    expected = {"type": "error", "error": error, "request_id": None}
    assert ANTHROPIC_MESSAGES.error(status, "no") == expected

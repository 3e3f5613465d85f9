"""Gemini's wire format of the scripted model: pure, so tables are enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.testing.gemini import GEMINI, stream_reply, write_reply
from otel_loopguard.testing.scripts import FINAL_ANSWER, OfferedTool, ScriptedCall, Turn
from otel_loopguard.testing.wire import Reply, RequestError, history_fault, usage_of

if TYPE_CHECKING:
    from collections.abc import Mapping

AT_ONCE = {"model": "finish3", "method": "generateContent"}
STREAMED = {"model": "parallel:3", "method": "streamGenerateContent", "alt": "sse"}
CALLS = (
    ScriptedCall(name="search", arguments={"query": "alpha"}),
    ScriptedCall(name="lookup", arguments={}),
)
CALLS_WRITTEN: list[dict[str, object]] = [
    {
        "functionCall": {"id": "call_7_0", "name": "search", "args": {"query": "alpha"}},
        "thoughtSignature": "Y2FsbF83XzA=",
    },
    {
        "functionCall": {"id": "call_7_1", "name": "lookup", "args": {}},
        "thoughtSignature": "Y2FsbF83XzE=",
    },
]


def reply_of(turn: Turn, *, results: int = 1) -> Reply:
    return Reply(turn=turn, model="m", usage=usage_of(results), ident="7", created_s=1_700_000_000)


def test_parallel_calls() -> None:
    assert write_reply(reply_of(Turn(calls=CALLS))) == {
        "candidates": [
            {
                "content": {"parts": CALLS_WRITTEN, "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 130,
            "candidatesTokenCount": 20,
            "totalTokenCount": 150,
            "cachedContentTokenCount": 64,
        },
        "modelVersion": "m",
        "responseId": "7",
    }


def test_a_text_whose_request_cached_nothing() -> None:
    body = json.loads(json.dumps(write_reply(reply_of(FINAL_ANSWER, results=0))))
    assert body["candidates"][0]["content"]["parts"] == [{"text": "The final answer is 42."}]
    assert body["usageMetadata"] == {
        "promptTokenCount": 100,
        "candidatesTokenCount": 20,
        "totalTokenCount": 120,
    }


@pytest.mark.parametrize(
    ("turn", "parts"),
    [
        (Turn(calls=CALLS), CALLS_WRITTEN),
        (FINAL_ANSWER, [{"text": "The final a"}, {"text": "nswer is 42."}]),
    ],
    ids=["calls", "text"],
)
def test_a_stream_ends_once_and_has_a_part_an_event(
    turn: Turn, parts: list[dict[str, object]]
) -> None:
    events = list(stream_reply(reply_of(turn)))
    assert {event.name for event in events} == {None}
    candidates = [json.loads(event.data)["candidates"][0] for event in events]
    assert [each["content"]["parts"] for each in candidates] == [[part] for part in parts]
    assert [each.get("finishReason") for each in candidates] == [None, "STOP"]


CUT = ScriptedCall(name="search", text='{"que')
NO_JSON = ScriptedCall(name="lookup", text='{"odd": one}')
ENDINGS: dict[str, tuple[Turn, dict[str, object]]] = {
    "cut text": (
        Turn(text="The", finish_reason="length"),
        {"content": {"parts": [{"text": "The"}], "role": "model"}, "finishReason": "MAX_TOKENS"},
    ),
    "cut call before another": (
        Turn(calls=(CUT, CALLS[1]), finish_reason="length"),
        {"content": {"parts": CALLS_WRITTEN[1:], "role": "model"}, "finishReason": "MAX_TOKENS"},
    ),
    "cut call": (
        Turn(calls=(CUT,), finish_reason="length"),
        {"content": {"role": "model"}, "finishReason": "MAX_TOKENS"},
    ),
    "empty": (
        Turn(finish_reason="stop"),
        {"content": {"role": "model"}, "finishReason": "STOP"},
    ),
    "filtered": (
        Turn(finish_reason="content_filter"),
        {
            "finishReason": "SAFETY",
            "safetyRatings": [
                {
                    "category": "HARM_CATEGORY_DANGEROUS_CONTENT",
                    "probability": "HIGH",
                    "blocked": True,
                }
            ],
        },
    ),
    "no JSON": (
        Turn(calls=(CALLS[0], NO_JSON)),
        {"content": {"parts": CALLS_WRITTEN, "role": "model"}, "finishReason": "STOP"},
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_a_turn_ended(name: str) -> None:
    turn, candidate = ENDINGS[name]
    (written,) = json.loads(json.dumps(write_reply(reply_of(turn))["candidates"]))
    assert written == {**candidate, "index": 0}
    *_, last = [json.loads(event.data) for event in stream_reply(reply_of(turn))]
    assert last["candidates"][0]["finishReason"] == candidate["finishReason"]


def test_a_text_comes_before_the_calls() -> None:
    body = json.loads(json.dumps(write_reply(reply_of(Turn(text="So", calls=CALLS)))))
    assert body["candidates"][0]["content"]["parts"] == [{"text": "So"}, *CALLS_WRITTEN]


@pytest.mark.parametrize(
    ("address", "stream"), [(AT_ONCE, False), (STREAMED, True)], ids=["at once", "streamed"]
)
def test_the_address_says_the_model_and_whether_it_streams(
    address: Mapping[str, str], *, stream: bool
) -> None:
    request = GEMINI.read(b'{"contents": [{"parts": [{"text": "go"}]}]}', address)
    assert (request.model, request.stream, request.tools, request.history) == (
        address["model"],
        stream,
        (),
        (),
    )


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "type": {"type": "array", "items": {"type": "integer"}},
        "place": {"anyOf": [{"type": "number", "enum": ["LEFT"]}, {"type": "null"}]},
    },
    "required": ["query"],
}
GOOGLE_SCHEMA = {
    "type": "OBJECT",
    "properties": {
        "query": {"type": "STRING"},
        "type": {"type": "ARRAY", "items": {"type": "INTEGER"}},
        "place": {"anyOf": [{"type": "NUMBER", "enum": ["LEFT"]}, {"type": "NULL"}]},
    },
    "required": ["query"],
}


@pytest.mark.parametrize(
    ("declared", "parameters"),
    [
        ({"parameters": GOOGLE_SCHEMA}, JSON_SCHEMA),
        ({"parameters": JSON_SCHEMA}, JSON_SCHEMA),
        ({"parametersJsonSchema": JSON_SCHEMA}, JSON_SCHEMA),
        ({"parameters_json_schema": JSON_SCHEMA}, JSON_SCHEMA),
        ({}, {}),
    ],
    ids=["google", "lower case", "json schema", "snake case", "none"],
)
@pytest.mark.parametrize("field", ["functionDeclarations", "function_declarations"])
def test_a_tool_is_read_with_a_json_schema(
    field: str, declared: dict[str, object], parameters: dict[str, object]
) -> None:
    functions: list[dict[str, object]] = [{"name": "search", **declared}, {"name": "lookup"}]
    tools: list[dict[str, object]] = [{"googleSearch": {}}, {field: functions}]
    request = GEMINI.read(json.dumps({"contents": [], "tools": tools}).encode(), AT_ONCE)
    assert request.tools == (
        OfferedTool(name="search", parameters=parameters),
        OfferedTool(name="lookup"),
    )


def part_of(entry: str, *, snake: bool) -> dict[str, object]:
    """Make a part of `+search` (a call), `-search/a` (the result with the id a) and so on."""
    name, _, call_id = entry[1:].partition("/")
    field = "functionCall" if entry[0] == "+" else "functionResponse"
    if snake:
        field = "function_call" if entry[0] == "+" else "function_response"
    content: dict[str, object] = {"args": {}} if entry[0] == "+" else {"response": {"output": "ok"}}
    return {field: {"name": name, **content, **({"id": call_id} if call_id else {})}}


@pytest.mark.parametrize(
    ("history", "named"),
    [
        ("", None),
        ("+search/a +search/b -search/b -search/a", None),
        ("+search -search +search -search", None),
        ("+search +lookup +search -search -search -lookup", None),
        ("+search/a +search/b -search -search", None),
        ("+search +search -search/a -search/b", None),
        ("+search +search/b -search/b -search", None),
        ("+search/a -search/b", "'b' answers no"),
        ("+search/a", r"id 'a'"),
        ("+search +search -search", r"'search \(call 2, without an id\)'"),
        ("+search -lookup", r"'lookup \(without an id\)' answers no"),
        ("+search -search -search", r"'search \(without an id\)' answers no"),
        ("-search +search", r"'search \(without an id\)' answers no"),
    ],
)
@pytest.mark.parametrize("snake", [False, True], ids=["camel", "snake"])
def test_calls_are_answered_by_id_or_else_by_name_and_order(
    history: str, named: str | None, *, snake: bool
) -> None:
    contents = [{"parts": [part_of(entry, snake=snake)]} for entry in history.split()]
    request = GEMINI.read(json.dumps({"contents": contents}).encode(), AT_ONCE)
    fault = history_fault(request.history)
    if named is None:
        assert fault is None
        assert request.tool_results == history.count("-")
    else:
        with pytest.raises(RequestError, match=named):
            raise RequestError(fault)


@pytest.mark.parametrize(
    ("signature", "known"),
    [
        ({"thoughtSignature": "Y2FsbF83XzA="}, "call_7_0"),
        ({"thought_signature": "Y2FsbF83XzA="}, "call_7_0"),
        ({"thoughtSignature": "Pz8_"}, "???"),
        ({"thoughtSignature": "Pz8/"}, "???"),
        ({"thoughtSignature": "_w=="}, "search (call 1, without an id)"),
        ({"thoughtSignature": "x"}, "search (call 1, without an id)"),
        ({"thoughtSignature": "é"}, "search (call 1, without an id)"),
        ({}, "search (call 1, without an id)"),
    ],
    ids=["own", "snake case", "url", "standard", "other bytes", "no base64", "no ascii", "none"],
)
def test_a_call_without_an_id_is_known_by_its_signature(
    signature: dict[str, str], known: str
) -> None:
    """Else two runs whose clients send no ids would look as if they had made the same calls."""
    parts = [{**part_of("+search", snake=False), **signature}, part_of("-search", snake=False)]
    request = GEMINI.read(json.dumps({"contents": [{"parts": parts}]}).encode(), AT_ONCE)
    assert [each.call_id for each in request.history] == [known, known]


@pytest.mark.parametrize(
    ("address", "body", "said"),
    [
        (AT_ONCE, b"{", "truncated"),
        (AT_ONCE, b"{}", "contents"),
        (AT_ONCE, b'{"contents": 1}', r"\$\.contents"),
        ({**AT_ONCE, "method": "countTokens"}, b'{"contents": []}', "no method 'countTokens'"),
        ({**STREAMED, "alt": "json"}, b'{"contents": []}', "alt=sse"),
        ({"model": "m", "method": "streamGenerateContent"}, b'{"contents": []}', "alt=sse"),
    ],
    ids=["cut", "empty", "wrong type", "method", "other alt", "no alt"],
)
def test_what_is_no_request_is_refused_with_the_place(
    address: Mapping[str, str], body: bytes, said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        GEMINI.read(body, address)


@pytest.mark.parametrize(
    ("status", "named"),
    [
        (400, "INVALID_ARGUMENT"),
        (402, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
    ],
)
def test_an_error_has_the_shape_of_googles(status: int, named: str) -> None:
    assert GEMINI.error(status, "no") == {
        "error": {"code": status, "message": "no", "status": named}
    }

"""What a model request tells: the forms of each API, and bodies that tell nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard import told
from otel_loopguard.told import Told, told_by, untold

CHAT: Any = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
    {"role": "tool", "tool_call_id": "a", "content": "1"},
    {"role": "tool", "tool_call_id": "b", "content": "2"},
    {"role": "assistant", "tool_calls": [{"id": "c"}]},
    {"role": "tool", "tool_call_id": "c", "content": "3"},
]
FORMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "chat": ({"messages": CHAT}, ("c", "b", "a")),
    "chat, spoken since": (
        {
            "messages": [
                *CHAT,
                {"role": "assistant", "content": "so"},
                {"role": "user", "content": "x"},
            ]
        },
        (),
    ),
    "chat, spoken between": (
        {"messages": [*CHAT[:4], {"role": "user", "content": "x"}, *CHAT[4:]]},
        ("c",),
    ),
    "chat, with a system's word": (
        {"messages": [*CHAT, {"role": "developer", "content": "be brief"}]},
        ("c", "b", "a"),
    ),
    "responses": (
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
                {"type": "function_call", "call_id": "a", "id": "fc_1"},
                {"type": "function_call_output", "call_id": "a", "output": "1"},
                {"type": "custom_tool_call", "call_id": "b"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
            ]
        },
        ("b", "a"),
    ),
    "responses, text": ({"input": "go"}, ()),
    "anthropic": (
        {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                        {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                        {"type": "text", "text": "hurry"},
                    ],
                },
            ]
        },
        ("b", "a"),
    ),
    "converse": (
        {
            "messages": [
                {"role": "user", "content": [{"text": "go"}]},
                {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a"}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]},
            ]
        },
        ("a",),
    ),
    "gemini": (
        {
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "search"}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "search"}}]},
            ]
        },
        ("a",),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_ids_of_answered_calls_since_a_person_spoke(form: str) -> None:
    body, expected = FORMS[form]
    read = told_by(body)
    assert read is not None
    assert read.call_ids == expected
    text = json.dumps(body)
    # What stands for the opening is made from the structure that was read.
    assert told_by(text) == told_by(text.encode()) == read


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty text"),
        pytest.param(b"", id="empty bytes"),
        pytest.param("no json", id="no json"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param("[1]", id="a list"),
        pytest.param("5", id="a number"),
        pytest.param(7, id="no body"),
        pytest.param([], id="empty parts"),
        pytest.param(iter([b"{}"]), id="a stream"),
        pytest.param(b"[" * 100_000, id="too deep"),
    ],
)
def test_a_body_that_tells_nothing(body: object) -> None:
    assert told_by(body) is None


@pytest.mark.parametrize(
    "messages",
    [
        None,
        5,
        {},
        [None],
        [[], 5, "x"],
        [{"role": None}],
        [{"tool_call_id": 5}],
        [{"role": "tool", "tool_call_id": ""}],
        [{"content": [None, 5, {"type": "tool_result"}]}],
        [{"content": {"type": "tool_result", "tool_use_id": "a"}}],
        [{"content": [{"toolResult": None}, {"functionResponse": 5}]}],
        [{"type": ["unhashable"]}],
    ],
    ids=repr,
)
def test_messages_that_are_none(messages: object) -> None:
    read = told_by({"messages": messages})
    assert read is not None
    assert read.call_ids == ()


def test_a_body_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"messages": CHAT})
    monkeypatch.setattr(told, "LARGEST", len(text))
    assert told_by(text) is not None
    monkeypatch.setattr(told, "LARGEST", len(text) - 1)
    assert told_by(text) is None


def test_the_latest_ids_of_a_long_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "CALL_IDS", 2)
    read = told_by({"messages": CHAT})
    assert read is not None
    assert read.call_ids == ("c", "b")


def test_an_opening_is_the_model_and_what_a_person_said_last() -> None:
    def opening(body: dict[str, Any]) -> int:
        read = told_by(body)
        assert read is not None
        return read.opening

    first = opening({"model": "m", "messages": CHAT[:1]})
    assert opening({"model": "m", "messages": CHAT}) == first
    assert opening({"model": "n", "messages": CHAT}) != first
    assert opening({"model": "m", "messages": [{"role": "user", "content": "stop"}]}) != first
    assert opening({"model": "m", "messages": CHAT[1:]}) != first
    assert opening({"model": "m", "messages": [*CHAT[1:], *CHAT]}) == first, "wherever it stands"
    assert opening({"model": "m", "input": "go"}) != opening({"model": "m", "input": "stop"})


def test_the_answer_that_a_request_goes_on_from() -> None:
    read = told_by({"previous_response_id": "resp_1", "input": []})
    assert read is not None
    assert read.response_id == "resp_1"
    without = told_by({"previous_response_id": None, "input": []})
    assert without is not None
    assert without.response_id == ""


def test_what_cannot_be_read() -> None:
    assert untold() is None
    assert Told().call_ids == ()

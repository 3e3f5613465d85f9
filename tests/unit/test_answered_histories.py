"""Histories of hand-written loops in which calls were left without an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from otel_loopguard.integrations import anthropic, openai
from otel_loopguard.integrations._history import NOT_MADE

SAID = {"role": "user", "content": "go"}
WHY = "the run was stopped"


def chat_turn(*call_ids: str) -> dict[str, Any]:
    calls = [{"id": each, "type": "function"} for each in call_ids]
    return {"role": "assistant", "tool_calls": calls}


def chat_answer(call_id: str, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def item(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "search"}


def output(call_id: str, text: str = "found") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def uses(*call_ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": each} for each in call_ids]}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "found"}


def failed(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": WHY, "is_error": True}


def told(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [*blocks]}


@pytest.mark.parametrize(
    ("history", "answered"),
    [
        ([], []),
        ([SAID], [SAID]),
        (
            [SAID, chat_turn("a"), chat_answer("a")],
            [SAID, chat_turn("a"), chat_answer("a")],
        ),
        ([SAID, chat_turn("a")], [SAID, chat_turn("a"), chat_answer("a", WHY)]),
        (
            [SAID, chat_turn("a", "b", "c"), chat_answer("b")],
            [
                *(SAID, chat_turn("a", "b", "c"), chat_answer("b")),
                *(chat_answer("a", WHY), chat_answer("c", WHY)),
            ],
        ),
        (
            [SAID, chat_turn("a"), SAID, chat_turn("b"), chat_answer("b")],
            [
                *(SAID, chat_turn("a"), chat_answer("a", WHY)),
                *(SAID, chat_turn("b"), chat_answer("b")),
            ],
        ),
        ([SAID, item("a"), output("a")], [SAID, item("a"), output("a")]),
        (
            [SAID, item("a"), item("b"), output("a")],
            [SAID, item("a"), item("b"), output("a"), output("b", WHY)],
        ),
        ([SAID, item("a"), SAID], [SAID, item("a"), output("a", WHY), SAID]),
        (
            [SAID, item("a"), {"type": "reasoning", "id": "r"}, item("b")],
            [
                *(SAID, item("a"), {"type": "reasoning", "id": "r"}, item("b")),
                *(output("a", WHY), output("b", WHY)),
            ],
        ),
    ],
)
def test_of_the_openai_client(history: list[Any], answered: list[Any]):
    assert openai.answered(history, WHY) == answered
    assert openai.answered(answered, WHY) == answered, "nothing is left to answer"


@pytest.mark.parametrize(
    ("history", "answered"),
    [
        ([], []),
        ([SAID], [SAID]),
        ([SAID, uses("a"), told(result("a"))], [SAID, uses("a"), told(result("a"))]),
        ([SAID, uses("a", "b")], [SAID, uses("a", "b"), told(failed("a"), failed("b"))]),
        (
            [SAID, uses("a", "b"), told(result("b"))],
            [SAID, uses("a", "b"), told(failed("a"), result("b"))],
        ),
        (
            [SAID, uses("a"), SAID],
            [SAID, uses("a"), told(failed("a"), {"type": "text", "text": "go"})],
        ),
        (
            [SAID, uses("a"), uses("b"), told(result("b"))],
            [SAID, uses("a"), told(failed("a")), uses("b"), told(result("b"))],
        ),
    ],
)
def test_of_the_anthropic_client(history: list[Any], answered: list[Any]):
    assert anthropic.answered(history, WHY) == answered
    assert anthropic.answered(answered, WHY) == answered, "nothing is left to answer"


def test_objects_of_the_clients_are_read_as_mappings_are():
    call = SimpleNamespace(type="function_call", call_id="a")
    assert openai.answered([call]) == [call, output("a", NOT_MADE)]
    turn = SimpleNamespace(role="assistant", tool_calls=[SimpleNamespace(id="a")])
    assert openai.answered([turn]) == [turn, chat_answer("a", NOT_MADE)]
    block = SimpleNamespace(type="tool_use", id="a")
    message = SimpleNamespace(role="assistant", content=[block])
    assert anthropic.answered([message], WHY) == [message, told(failed("a"))]

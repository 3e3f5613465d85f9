"""Which names are kept in a sanitised recording."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard.replay.files import read_line
from otel_loopguard.sanitising import RecordedLine, Recording

KEY = b"a key of the tests"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"gen_ai.operation.name": "retrieval"}, id="no-tool"),
        pytest.param({"openinference.span.kind": "TOOL"}, id="openinference"),
        pytest.param({"gen_ai.operation.name": "execute_tool"}, id="gen-ai"),
        pytest.param({"gen_ai.operation.name": "invoke_agent"}, id="agent"),
    ],
)
def test_the_whole_name_of_a_span_is_no_name_that_is_kept(said: dict[str, str]):
    assert "Doe" not in written_of("refund for Jane Doe", said)


def test_a_name_that_an_attribute_or_a_span_gives_is_kept():
    said = {"gen_ai.operation.name": "execute_tool"}
    assert "find_invoice" in written_of("execute_tool find_invoice", said)
    assert "find_invoice" in written_of(
        "find_invoice", {**said, "gen_ai.tool.name": "find_invoice"}
    )
    many = "Cancel the order of Jane Doe"
    assert "Doe" not in written_of("x", {**said, "gen_ai.tool.name": many})


def test_what_a_model_asks_for_is_a_name_if_it_ran():
    asked: list[Any] = [{"name": name, "arguments": {}} for name in ("find_invoice", "cancel_doe")]
    steps: list[Any] = [
        {"type": "llm", "tool_calls": asked},
        {"type": "tool", "name": "find_invoice"},
    ]
    shown = sanitised(json.dumps({"steps": steps}).encode())
    assert ("find_invoice" in shown, "doe" in shown) == (True, False)


def written_of(name: str, said: dict[str, str]) -> str:
    """Return a sanitised line with one span."""
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": name,
        "startTimeUnixNano": "1700000000000000001",
        "endTimeUnixNano": "1700000001000000001",
        "attributes": [{"key": key, "value": {"stringValue": said[key]}} for key in said],
    }
    return sanitised(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode())


def sanitised(line: bytes) -> str:
    content = read_line(line, 1)
    assert content is not None
    recording = Recording()
    recording.lines.append(RecordedLine(number=1, text=line, content=content))
    return b"".join(recording.sanitised(KEY)).decode()

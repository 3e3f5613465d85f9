"""What is read from the spans of the Model Context Protocol: one fact a row."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import read_step
from otel_loopguard.spans import SpanRecord
from tests.unit.written_spans import ARGUMENTS, OPERATION, RESULT, read, span

METHOD = "mcp.method.name"
SERVER = {METHOD: "tools/call", OPERATION: "execute_tool", "gen_ai.tool.name": "search"}


def mcp(name: str, attributes: Mapping[str, object]) -> SpanRecord:
    return span(name, {METHOD: "tools/call", "jsonrpc.request.id": "3", **attributes})


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (mcp("MCP send tools/call search", {}), "search"),
        (mcp("tools/call search files", {}), "search files"),
        (mcp("tools/call search", SERVER), "search"),
        (mcp("tools/call other", SERVER), "search"),
        (mcp("tools/call", {}), "tools/call"),
    ],
)
def test_name(record: SpanRecord, name: str):
    step = read(record)
    assert (step.kind, step.name, step.call_id) == ("tool", name, None)


@pytest.mark.parametrize(
    "record",
    [
        span("initialize", {METHOD: "initialize"}),
        span("MCP send tools/list", {METHOD: "tools/list"}),
        span("notifications/initialized", {METHOD: "notifications/initialized"}),
        span("tools/call search", {METHOD: 3}),
        span("tools/call search"),
    ],
)
def test_nobodys_step(record: SpanRecord):
    assert read_step(record) is None


def test_content_and_error():
    step = read(
        mcp("tools/call search", {ARGUMENTS: "{}", RESULT: "r", "error.type": "tool_error"})
    )
    assert (step.arguments, step.result, step.error) == ("{}", "r", "tool_error")
    bare = read(mcp("tools/call search", {}))
    assert (bare.arguments, bare.result, bare.error) == (UNKNOWN, UNKNOWN, None)

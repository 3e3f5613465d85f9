"""Tool calls as single SDKs write them, redacted: a hash stands for each, and a replay sees loops.

Those of which there are no recordings with content.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests._collector import attributes, span
from tests._redacted import Gateway, first_trip, redacting, replayed

TRACE_IDS = count(0xFACE)
CALLS = 12
BEGAN_NS = time.time_ns()
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
CLAUDE = "com.anthropic.claude_code.tracing"
TOO_LONG = "x" * 61440
"""As long as what Claude Code cuts."""

ANTHROPIC = {"anthropic.tool_result.content": "xxx"}
AG2 = {"gen_ai.tool.call.result": "xxx...[truncated]"}

Call = dict[str, Any]


def langsmith(number: int, query: str, found: object) -> Call:
    told = {
        "gen_ai.tool.call.id": f"c{number}",
        "langsmith.span.kind": "tool",
        "gen_ai.tool.name": "search",
        "gen_ai.prompt": json.dumps({"query": query}),
        "gen_ai.completion": json.dumps({"output": found}),
    }
    return {"name": "search", "attributes": told}


def langchain_by_langsmith(number: int, query: str, found: object) -> Call:
    message = {"content": found, "type": "tool", "tool_call_id": f"c{number}", "id": f"m{number}"}
    return langsmith(number, query, {**message, "status": "success"})


def blocks_by_langsmith(number: int, query: str, found: object) -> Call:
    return langchain_by_langsmith(number, query, [{"type": "text", "text": found}])


def command_by_langsmith(number: int, query: str, found: object) -> Call:
    message = {"content": found, "type": "tool", "tool_call_id": f"c{number}", "id": None}
    return langsmith(number, query, {"update": {"messages": [message]}})


def langsmith_on_genai(number: int, query: str, found: object) -> Call:
    told = {**TOOL, "gen_ai.tool.call.id": f"c{number}", "gen_ai.completion": found}
    told["gen_ai.prompt"] = json.dumps({"query": query})
    return {"name": "execute_tool search", "attributes": told}


def claude(told: Mapping[str, object], output: Mapping[str, object]) -> Call:
    event = {"name": "tool.output", "attributes": attributes(output)}
    return {"name": "claude_code.tool", "attributes": {**TOOL, **told}, "events": [event]}


def claude_tool(number: int, query: str, found: object) -> Call:
    told = {"tool_input": json.dumps({"query": query}), "full_command": "ls"}
    return claude(told, {"content": found, "file_path": f"{number}.txt"})


def claude_command(number: int, query: str, found: object) -> Call:
    return claude({"full_command": query, "tool_use_id": f"c{number}"}, {"output": found})


def anthropic(number: int, query: str, found: object) -> Call:
    told = {
        "gen_ai.tool.call.id": f"c{number}",
        "gen_ai.tool.call.arguments": json.dumps({"query": query}),
        "anthropic.tool_result.content": json.dumps([{"type": "text", "text": found}]),
    }
    return {"name": "execute_tool search", "attributes": {**TOOL, **told}}


def llama_index_by_openllmetry(number: int, query: str, found: object) -> Call:
    output = {"blocks": [{"block_type": "text", "text": found}], "is_error": False}
    told = {
        "traceloop.span.kind": "task",
        "traceloop.entity.name": "BaseWorkflowAgent.task",
        "tool.name": "search",
        "tool.arguments": json.dumps({"query": query}),
        "traceloop.entity.input": json.dumps({"ev": {"tool_id": f"c{number}"}}),
        "traceloop.entity.output": json.dumps({"tool_id": f"c{number}", "tool_output": output}),
    }
    return {"name": "BaseWorkflowAgent.task", "attributes": told}


WRITERS: dict[str, Callable[[int, str, object], Call]] = {
    each.__name__: each
    for each in (
        *(langsmith, langchain_by_langsmith, blocks_by_langsmith, command_by_langsmith),
        *(langsmith_on_genai, claude_tool, claude_command, anthropic, llama_index_by_openllmetry),
    )
}
VARYING = {"nothing": (0, 0), "arguments": (1, 0), "results": (0, 1), "both": (1, 1)}

every_writer = pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with redacting(tmp_path_factory.mktemp("gateway")) as started:
        yield started


class Redacted(NamedTuple):
    """A run as it was sent and as it has come out, and what stands for its calls."""

    sent: bytes
    written: bytes
    arguments: list[str | None]
    results: list[str | None]


def lasting(began: int, ended: int) -> Call:
    """Return the times of a span, from milliseconds of a run."""
    times = {"startTimeUnixNano": began, "endTimeUnixNano": ended}
    return {name: str(BEGAN_NS + at * 1_000_000) for name, at in times.items()}


def through(gateway: Gateway, calls: Sequence[Call]) -> Redacted:
    """Send the run of an agent that makes these calls, one after the other."""
    trace_id, root = next(TRACE_IDS), f"{1:016x}"
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    lasts = lasting(0, 2 * len(calls) + 2)
    run = span(trace_id, name="invoke_agent a", attributes=agent, **lasts)
    scopes: dict[str, list[Call]] = {"x": [run], CLAUDE: []}
    for number, call in enumerate(calls, 2):
        scope = CLAUDE if call["name"].startswith("claude_code.") else "x"
        lasts = lasting(2 * number - 3, 2 * number - 2)
        scopes[scope].append(span(trace_id, number, parentSpanId=root, **call, **lasts))
    parts = [{"scope": {"name": name}, "spans": spans} for name, spans in scopes.items() if spans]
    request = {"resourceSpans": [{"scopeSpans": parts}]}
    gateway.collector.post(request)
    _, *found = gateway.spans(trace_id, sum(map(len, scopes.values())))
    return Redacted(
        json.dumps(request).encode(),
        b"".join(gateway.lines.of(f"{trace_id:032x}")),
        [each["attributes"].get("loopguard.arguments.hash") for each in found],
        [each["attributes"].get("loopguard.result.hash") for each in found],
    )


@every_writer
@pytest.mark.parametrize("varying", VARYING)
def test_a_replay_sees_what_it_saw_before(
    gateway: Gateway, writer: Callable[..., Call], varying: str, tmp_path: Path
):
    """The call's id, which differs each time, is no part of what is hashed."""
    arguments, results = VARYING[varying]
    calls = [
        writer(number, f"weather in city {number * arguments}", f"rain {number * results}")
        for number in range(CALLS)
    ]
    found = through(gateway, calls)
    assert b"weather in city" not in found.written
    assert b"rain" not in found.written
    for hashes, varies in ((found.arguments, arguments), (found.results, results)):
        assert all(hashes)
        assert len({*hashes}) == (CALLS if varies else 1)
    [before], [after] = replayed(found.sent, tmp_path), replayed(found.written, tmp_path)
    assert before.tool_calls == after.tool_calls == CALLS
    assert first_trip(after) == first_trip(before)
    assert (first_trip(after) is None) == bool(arguments or results)


@pytest.mark.parametrize(
    "call",
    [
        claude({}, {"output": TOO_LONG}),
        claude({}, {"content": TOO_LONG}),
        {"name": "t", "attributes": {**TOOL, **ANTHROPIC, "anthropic.content.truncated": True}},
        {"name": "t", "attributes": {**TOOL, **AG2, "ag2.tool.call.result.truncated": True}},
    ],
    ids=["claude output", "claude content", "anthropic", "ag2"],
)
def test_a_result_that_was_cut_has_no_hash(gateway: Gateway, call: Call):
    """Two of them may differ in what is missing."""
    found = through(gateway, [call])
    assert found.results == [None]
    assert b"xxx" not in found.written


@pytest.mark.parametrize(
    "told",
    [
        {**ANTHROPIC, "anthropic.content.truncated": False},
        {**AG2, "ag2.tool.call.result.truncated": False},
    ],
)
def test_a_result_that_was_not_cut_has_one(gateway: Gateway, told: Mapping[str, object]):
    assert all(through(gateway, [{"name": "t", "attributes": {**TOOL, **told}}]).results)


def test_a_result_on_the_span_goes_before_claude_s_event(gateway: Gateway):
    calls = [
        claude({"gen_ai.tool.call.result": "xxx"}, {"output": each}) for each in ("one", "two")
    ]
    assert len({*through(gateway, calls).results}) == 1


def test_only_of_a_tool_s_span_a_prompt_is_arguments(gateway: Gateway):
    told = {"langsmith.span.kind": "llm", "gen_ai.prompt": "xxx", "gen_ai.completion": "xxx"}
    found = through(gateway, [{"name": "chat", "attributes": told}])
    assert (found.arguments, found.results) == ([None], [None])
    assert b"xxx" not in found.written

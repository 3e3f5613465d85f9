"""Redaction in the gateway: no content leaves it, and a replay of its output sees the loops."""

from __future__ import annotations

import hmac
import json
from collections.abc import Generator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests._collector import (
    HASH_KEY,
    Collector,
    attributes,
    eventually,
    mapping,
    running,
    span,
    spans_of,
    to_file,
)
from tests._command import command
from tests._recordings import FOLDERS, Recording, written_scripts

CANARIES = (
    *("weather in paris", "no results for", "value of alpha", "final answer", "you help"),
    *("you are helpful", "backend down", "traceback", "alpha"),
)
"""What people, models and tools said in the recordings, in lower case."""


TRACE_IDS = count(0xC0FFEE)

EQUAL: dict[str, tuple[object, object]] = {
    "the same text": ("Paris", "Paris"),
    "key order": ('{"a": 1, "b": {"c": 2, "d": 3}}', '{"b":{"d":3,"c":2},"a":1}'),
    "spelling of a number": ('{"a": 1}', '{"a": 1.0}'),
    "a structure and its JSON": ({"q": "x", "n": 1}, '{"n": 1, "q": "x"}'),
    "two lines": ('{"q": "x",\n"n": 1}', '{"n": 1,\n"q": "x"}'),
}
DIFFERENT: dict[str, tuple[object, object]] = {
    "text": ("Paris", "paris"),
    "white space in text": ('{"q": "a b"}', '{"q": "a  b"}'),
    "true and 1": ('{"a": true}', '{"a": 1}'),
    "order of a list": ("[1, 2]", "[2, 1]"),
    "ids that a double cannot tell apart": ('{"id":9007199254740993}', '{"id":9007199254740992}'),
    # Both are equal to a guard that sees them: what is hashed as it is written keeps its order.
    "key order beside a long number": (
        '{"a": 1, "id": 9007199254740993}',
        '{"id": 9007199254740993, "a": 1}',
    ),
    "second lines": ("one\ntwo", "one\nthree"),
}
CONTENT = (
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.input.messages"),
    *("gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"),
    *("gen_ai.completion", "gen_ai.task.input", "gen_ai.event.content", "input.value"),
    *("output.value", "traceloop.entity.input", "traceloop.entity.output", "ai.prompt"),
    *("ai.prompt.messages", "ai.response.text", "ai.toolCall.args", "ai.toolCall.result"),
    *("tool_arguments", "tool_response", "final_result", "pydantic_ai.all_messages"),
    *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.tool_response", "full_command"),
    *("tomorrow.content", "gen_ai.tomorrow"),
)
MARKS: dict[str, dict[str, object]] = {
    "gen_ai": {"gen_ai.operation.name": "execute_tool"},
    "openinference": {"openinference.span.kind": "TOOL"},
    "openllmetry": {"traceloop.span.kind": "tool"},
    "vercel": {"ai.operationId": "ai.toolCall"},
    "haystack.agent.step.tool": {},
}
SEEN = {
    *("langchain-genai", "langchain-oi", "langchain-tl", "openai-agents-genai"),
    *("openai-agents-oi", "openai-agents-tl", "pydantic-ai-v5", "crewai-openinference"),
}
"""Folders whose loops are seen by hash as they are seen by value."""


class Gateway(NamedTuple):
    """A gateway that keeps all spans, and the file that it writes."""

    collector: Collector
    file: Path

    def spans(self, trace_id: int, count: int = 1) -> list[dict[str, Any]]:
        """Return the spans of a trace when as many as expected have come, in their order."""
        wanted = f"{trace_id:032x}"

        def found() -> list[dict[str, Any]] | None:
            spans = [each for each in spans_of(self.file) if each["traceId"] == wanted]
            return sorted(spans, key=number) if len(spans) >= count else None

        return eventually(found, f"{count} spans", self.collector.said) or []

    def hashes(self, trace_id: int, *values: object, name: str = "arguments") -> list[str | None]:
        """Send tool calls with these arguments (or results); returns what stands for them."""
        key = f"gen_ai.tool.call.{name}"
        self.collector.send(
            span(trace_id, at, attributes={"gen_ai.operation.name": "execute_tool", key: value})
            for at, value in enumerate(values, 1)
        )
        spans = self.spans(trace_id, len(values))
        assert not [each for each in spans if key in each["attributes"]]
        return [each["attributes"].get(f"loopguard.{name}.hash") for each in spans]


def number(found: dict[str, Any]) -> str:
    return found["spanId"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    overlay = to_file(folder / "spans.jsonl", "traces/agents", "traces/others")
    policies = [{"name": "all", "type": "always_sample"}]
    overlay["processors"] = {"tail_sampling": {"policies": policies}}
    with running(folder, "gateway.yaml", overlay, {"DECISION_WAIT": "1s"}) as collector:
        yield Gateway(collector, folder / "spans.jsonl")


def replayed(lines: bytes, cwd: Path) -> list[dict[str, Any]]:
    result = command("replay", "--json", "--strict", "-", cwd=cwd, stdin=lines)
    assert result.returncode == 0, result.stderr.decode()
    return [json.loads(line) for line in result.stdout.splitlines()]


def through(gateway: Gateway, recording: Recording) -> bytes:
    """Send a recording; returns what of it has come out, as lines of OTLP/JSON."""
    records = recording.ended()
    for line in recording.lines():
        gateway.collector.post(line.decode())
    for trace_id in {record.trace_id for record in records}:
        gateway.spans(trace_id, sum(record.trace_id == trace_id for record in records))
    ids = {f"{record.trace_id:032x}".encode() for record in records}
    lines = gateway.file.read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if any(each in line for each in ids))


@pytest.mark.parametrize(("first", "second"), EQUAL.values(), ids=EQUAL)
def test_equal_arguments_have_one_hash(gateway: Gateway, first: object, second: object):
    found = gateway.hashes(next(TRACE_IDS), first, second)
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize(("first", "second"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_arguments_have_different_hashes(gateway: Gateway, first: object, second: object):
    found = gateway.hashes(next(TRACE_IDS), first, second)
    assert all(found)
    assert found[0] != found[1]


def test_results_are_hashed_likewise(gateway: Gateway):
    found = gateway.hashes(next(TRACE_IDS), "none", "none", "one", name="result")
    assert found[0] == found[1] != found[2]


def test_hidden_values_have_no_hash(gateway: Gateway):
    assert gateway.hashes(next(TRACE_IDS), "__REDACTED__", "[REDACTED]") == [None, None]


def test_a_hash_is_made_with_the_key(gateway: Gateway):
    """Whoever has no key cannot hash a list of likely values and compare."""
    [found] = gateway.hashes(next(TRACE_IDS), "Paris")
    plain = sha256(b"Paris").hexdigest()
    assert found == hmac.new(HASH_KEY.encode(), plain.encode(), "sha256").hexdigest()


def test_content_leaves_in_no_attribute_event_or_status(gateway: Gateway):
    """Names that no instrumentation has today among them: what is not known is removed."""
    secret = "the secret of Jane Doe"
    names = [*CONTENT, *(f"{each}.0.content" for each in ("gen_ai.prompt", "llm.input_messages"))]
    content = {name: f"{secret} {name}" for name in names}
    event = {
        "name": "exception",
        "attributes": attributes(
            {"exception.message": secret, "exception.stacktrace": secret, "exception.type": "E"}
        ),
    }
    message = {"name": "gen_ai.user.message", "attributes": attributes({"content": secret})}
    status = {"code": 2, "message": secret}
    trace_id = next(TRACE_IDS)
    for number, (name, marks) in enumerate(MARKS.items(), 1):
        values = {"attributes": {**content, **marks}, "events": [event, message], "status": status}
        gateway.collector.send([span(trace_id, number, name=name, **values)])
    # Of a span that is no agent's, the names that are known to hold content are removed.
    known = {name: value for name, value in content.items() if "tomorrow" not in name}
    gateway.collector.send(
        [span(trace_id, 99, attributes={**known, "db.name": "x"}, events=[event], status=status)]
    )
    spans = gateway.spans(trace_id, len(MARKS) + 1)
    assert secret.encode() not in gateway.file.read_bytes()
    hashes = {"loopguard.arguments.hash", "loopguard.result.hash"}
    assert {*spans[-1]["attributes"]} == {"db.name", *hashes}
    assert all(each["status"] == {"code": 2} for each in spans)
    assert mapping(spans[0]["events"][0]["attributes"]) == {"exception.type": "E"}


def test_verdicts_leave_whole(gateway: Gateway):
    event = {
        "name": "loopguard.violation",
        "attributes": attributes({"loopguard.rule": "same_tool", "gen_ai.tool.name": "search"}),
    }
    trace_id = next(TRACE_IDS)
    values = {"loopguard.tripped": True, "loopguard.run.id": "r", "http.route": "/ask", "my.own": 1}
    gateway.collector.send([span(trace_id, attributes=values, events=[event])])
    [found] = gateway.spans(trace_id)
    assert found["attributes"] == {**values, "my.own": "1"}
    assert mapping(found["events"][0]["attributes"]) == {
        "loopguard.rule": "same_tool",
        "gen_ai.tool.name": "search",
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_content_of_a_recording_leaves(gateway: Gateway, folder: str):
    """Of what each instrumentation writes with content switched on."""
    for script in {*written_scripts(folder)} & {"endless", "error_tool"}:
        written = through(gateway, Recording(folder, script)).lower()
        assert written
        assert not [each for each in CANARIES if each.encode() in written], script


@pytest.mark.parametrize("folder", sorted(SEEN))
def test_a_replay_sees_the_same_loop_by_hash(gateway: Gateway, folder: str, tmp_path: Path):
    """At the same step, by the same rule; and none where the arguments differ each time."""
    for script in {*written_scripts(folder)} & {"endless", "alternate", "varying", "finish3"}:
        recording = Recording(folder, script)
        before = replayed(b"".join(recording.lines()), tmp_path)
        after = replayed(through(gateway, recording), tmp_path)
        assert [first_trip(run) for run in after] == [first_trip(run) for run in before], script
        kept = ("steps", "model_calls", "tool_calls", "input_tokens", "output_tokens")
        for name in kept:
            assert [run[name] for run in after] == [run[name] for run in before], (script, name)


def first_trip(run: dict[str, Any]) -> tuple[str, int] | None:
    trips = [
        (each["rule"], each["step"]) for each in run["violations"] if each["action"] == "abort"
    ]
    return trips[0] if trips else None

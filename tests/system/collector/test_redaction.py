"""Redaction in the gateway: what is hashed, into what, and what is removed."""

from __future__ import annotations

import hmac
from collections.abc import Generator
from hashlib import sha256
from itertools import count

import pytest

from tests._collector import HASH_KEY, attributes, eventually, mapping, span
from tests._redacted import Gateway, redacting

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


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with redacting(tmp_path_factory.mktemp("gateway")) as started:
        yield started


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


def test_of_logs_only_verdicts_leave(gateway: Gateway):
    """By the event's name, or by the attribute that had it before."""
    verdict = {
        "eventName": "loopguard.violation",
        "attributes": attributes({"loopguard.rule": "a"}),
    }
    older = {"attributes": attributes({"event.name": "loopguard.violation", "loopguard.rule": "b"})}
    message = {"eventName": "gen_ai.user.message", "body": {"stringValue": "Jane Doe"}}
    records = [message, verdict, {"body": {"stringValue": "Jane Doe"}}, older]
    gateway.collector.post(
        {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}, path="/v1/logs"
    )
    written = eventually(
        lambda: gateway.logs.read_text() if gateway.logs.exists() else "",
        "logs",
        gateway.collector.said,
    )
    assert written.count("logRecords") == 1
    assert written.count("loopguard.rule") == 2
    assert "Jane Doe" not in written

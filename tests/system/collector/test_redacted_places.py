"""Redaction in the gateway beside a span's attributes, place by place, and of many SDKs' spans."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests._collector import CONFIGURATIONS, attributes, eventually, mapping, span
from tests._redacted import Gateway, redacting

TRACE_IDS = count(0xBEEF)
SECRET = "the secret of Jane Doe"
KINDS: dict[str, dict[str, object]] = {
    "agent": {"gen_ai.operation.name": "chat"},
    "verdict": {"loopguard.run.id": "r"},
    "ordinary": {"db.name": "x"},
}
"""What a span is to the gateway, by an attribute that stays."""
MESSAGES = {
    "gen_ai.user.message": ("content",),
    "gen_ai.choice": ("message", "tool.result"),
    "gen_ai.client.inference.operation.details": ("gen_ai.input.messages", "gen_ai.tomorrow"),
    "gen_ai.content.prompt": ("gen_ai.prompt",),
    "tool.output": ("output", "content", "bash_command"),
    "anything": ("gen_ai.output.messages", "input.value", "exception.message"),
}
"""Events that hold content, by the attributes in which it stands."""
KEPT_OF_RPC = {
    *("rpc.system", "rpc.service", "rpc.method", "rpc.response.status_code"),
    *("rpc.jsonrpc.version", "rpc.jsonrpc.request_id", "rpc.jsonrpc.error_code"),
}
RPC_CONTENT = (
    *("rpc.jsonrpc.error_message", "rpc.grpc.request.metadata.authorization"),
    *("rpc.connect_rpc.response.metadata.cookie", "jsonrpc.params", "rpc.request.body"),
)
OF_SDKS: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "mlflow": ({"mlflow.spanType": '"TOOL"'}, ("mlflow.spanInputs", "mlflow.spanOutputs")),
    "langfuse": (
        {"langfuse.observation.type": "tool"},
        ("langfuse.observation.input", "langfuse.observation.output", "langfuse.trace.input"),
    ),
    "logfire": ({"logfire.msg_template": "ask {q}"}, ("logfire.msg",)),
    "retrieval": (
        {"db.name": "x"},
        ("gen_ai.retrieval.query.text", "gen_ai.retrieval.documents"),
    ),
    # Where the mark stands on another span: names that are known are removed from any.
    "mlflow without its mark": ({"db.name": "x"}, ("mlflow.spanInputs", "mlflow.spanOutputs")),
    "langfuse without its mark": (
        {"db.name": "x"},
        ("langfuse.trace.output", "langfuse.observation.input", "langfuse.trace.metadata.plan"),
    ),
}
"""Marks that stay, and names with content."""

every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with redacting(tmp_path_factory.mktemp("gateway")) as started:
        yield started


def through(gateway: Gateway, *names: str, **values: Any) -> dict[str, Any]:
    """Send a span with content in these attributes; returns what has come out, without any."""
    content = dict.fromkeys(names, SECRET)
    trace_id = next(TRACE_IDS)
    told = {**values.pop("attributes", {}), **content}
    gateway.collector.send([span(trace_id, attributes=told, **values)])
    [found] = gateway.spans(trace_id)
    assert SECRET not in str(found)
    return found


@every_kind
@pytest.mark.parametrize("event", MESSAGES)
def test_messages_leave_in_no_event(gateway: Gateway, kind: str, event: str):
    told = {**dict.fromkeys(MESSAGES[event], SECRET), "role": "user"}
    events = [{"name": event, "attributes": attributes(told)}]
    found = through(gateway, attributes=KINDS[kind], events=events)
    assert found["attributes"] == KINDS[kind]
    assert mapping(found["events"][0]["attributes"]) == {"role": "user"}


def test_what_is_no_message_stays_in_the_events_of_other_spans(gateway: Gateway):
    events = [{"name": "retry", "attributes": attributes({"content": "7", "attempt": "2"})}]
    found = through(gateway, attributes=KINDS["ordinary"], events=events)
    assert mapping(found["events"][0]["attributes"]) == {"content": "7", "attempt": "2"}


def test_of_a_remote_call_only_what_it_was_leaves(gateway: Gateway):
    told = {"mcp.method.name": "tools/call", "jsonrpc.request.id": "7"}
    kept = dict.fromkeys(KEPT_OF_RPC, "kept")
    found = through(gateway, *RPC_CONTENT, attributes={**told, **kept})
    assert found["attributes"] == {**told, **kept}


@pytest.mark.parametrize("sdk", OF_SDKS)
def test_content_in_names_of_other_sdks_does_not_leave(gateway: Gateway, sdk: str):
    marks, names = OF_SDKS[sdk]
    assert through(gateway, *names, attributes=marks)["attributes"] == marks


@pytest.mark.parametrize("mark", ["mlflow.spanType", "langfuse.observation.type"])
def test_their_spans_are_agents(gateway: Gateway, mark: str):
    found = through(gateway, "tomorrow.content", attributes={mark: "AGENT"})
    assert found["attributes"] == {mark: "AGENT"}


def scoped(gateway: Gateway, name: str, told: Mapping[str, object]) -> bytes:
    """Send a span of a scope with an attribute; returns what has come out."""
    trace_id = next(TRACE_IDS)
    scope = {"name": name, "attributes": attributes({"tomorrow.content": SECRET})}
    sent = [span(trace_id, attributes=told)]
    gateway.collector.post({"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": sent}]}]})
    gateway.spans(trace_id)
    return b"".join(gateway.lines.of(f"{trace_id:032x}"))


def test_a_scope_of_agents_has_no_attributes(gateway: Gateway):
    assert SECRET.encode() not in scoped(gateway, "x", KINDS["agent"])


def test_microsoft_s_spans_are_agents(gateway: Gateway):
    found = scoped(gateway, "agent_framework", {"workflow.name": "w", "tomorrow.content": SECRET})
    assert SECRET.encode() not in found
    assert b"workflow.name" in found


def test_a_prompt_on_the_command_line_leaves_with_no_signal(gateway: Gateway):
    """As a resource's attribute it would be a label of `target_info`, too."""
    command = dict.fromkeys(("process.command_args", "process.command"), f"agent '{SECRET}'")
    private = {"process.command_line": SECRET, "process.environment_variable.KEY": SECRET}
    resource = {
        "attributes": attributes({"service.name": "s", "process.pid": 7, **command, **private})
    }
    trace_id = next(TRACE_IDS)
    point = {"asInt": "1", "startTimeUnixNano": "1", "timeUnixNano": "2"}
    total = {"dataPoints": [point], "aggregationTemporality": 2, "isMonotonic": True}
    parts = {
        "Spans": {"spans": [span(trace_id, attributes=KINDS["agent"])]},
        "Metrics": {"metrics": [{"name": "loopguard.runs", "sum": total}]},
        "Logs": {"logRecords": [{"eventName": "loopguard.violation"}]},
    }
    for name, part in parts.items():
        path = "/v1/traces" if name == "Spans" else f"/v1/{name.lower()}"
        whole = {"resource": resource, f"scope{name}": [part]}
        gateway.collector.post({f"resource{name}": [whole]}, path)
    gateway.spans(trace_id)
    for file in (gateway.file, gateway.metrics, gateway.logs):
        eventually(lambda file=file: "process.pid" in read(file), file.name, gateway.collector.said)
        assert SECRET not in read(file)


def read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def test_names_that_are_known_are_those_of_spans_and_events_alike():
    text = (CONFIGURATIONS / "gateway.yaml").read_text()
    names = re.findall(r'delete_matching_keys\((\w+)\.attributes, "(\^\(gen_ai.*?)"\)', text)
    assert [place for place, _ in names] == ["span", "spanevent"]
    assert names[0][1] == names[1][1]

"""What the agents said and did does not leave the process in anything that the guard writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard import AbortRequest, Policy, RunAborted, guarded_run
from tests._tracing import Traced, traced

SECRET = "hunter2"


def say_much(process: Traced) -> None:
    """Be an agent whose every text holds the secret."""
    with process.agent():
        for _ in range(6):
            with process.chat() as turn:
                message = {"role": "user", "parts": [{"type": "text", "content": SECRET}]}
                turn.set_attribute("gen_ai.input.messages", json.dumps([message]))
                turn.set_attribute("gen_ai.system_instructions", SECRET)
            with process.tool(arguments={SECRET: SECRET}, result={"found": SECRET}) as call:
                call.set_attribute("gen_ai.tool.call.id", f"call-{SECRET}")
        with pytest.raises(RuntimeError), process.tool(arguments=SECRET):
            raise RuntimeError(SECRET)


def written(process: Traced) -> str:
    """Return all that the guard has written, as text."""
    ours: list[Any] = [
        {k: v for k, v in (span.attributes or {}).items() if k.startswith("loopguard.")}
        for span in process.spans
    ]
    ours += [each for each in process.events() if each[1].startswith("loopguard.")]
    ours += [vars(record) for record in process.sink.records]
    data = process.reader.get_metrics_data()
    assert data is not None
    return f"{ours!r}\n{data.to_json()}"


def test_nothing_that_was_said_is_exported(caplog: pytest.LogCaptureFixture) -> None:
    requests: list[AbortRequest] = []
    with traced() as process:
        guard = process.guard(
            Policy(max_tool_calls=5), abort_hooks=[requests.append], mode="enforce"
        )
        say_much(process)
        text = written(process)
        with pytest.raises(RunAborted) as raised, guarded_run():
            say_much(process)
            guard.admit()

    assert "repeated_result" in text
    assert "tool_call_budget" in text
    assert SECRET not in text
    assert SECRET not in str(raised.value) + repr(raised.value.report.trace)
    assert SECRET not in caplog.text
    assert requests
    assert SECRET not in repr([request.violation for request in requests])
    assert SECRET in repr([span.attributes for span in process.spans]), "the agents did say it"

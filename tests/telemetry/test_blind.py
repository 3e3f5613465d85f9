"""What the guard says when it cannot see: an agent without spans, and calls without arguments."""

from __future__ import annotations

import pytest

from otel_loopguard import Policy, guarded_run
from tests._tracing import Traced


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name.startswith("otel_loopguard")]


def test_requests_without_spans_are_told_of(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    guard = process.guard(mode="enforce")
    with guarded_run("order-4711") as run:
        for _ in range(3):
            allowed = guard.admit()
            assert allowed is not None
            allowed.over(failed=False)

    assert run.report is not None
    assert run.report.model_calls == run.report.steps == 3
    (message,) = said(caplog)
    assert message.startswith("3 model requests were made in run order-4711 and no span")


def test_calls_without_arguments_are_told_of_once(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    process.guard()
    with process.agent():
        for _ in range(3):
            with process.tracer.start_as_current_span(
                "execute_tool search", attributes={"gen_ai.operation.name": "execute_tool"}
            ):
                pass

    (message,) = said(caplog)
    assert message.startswith("the arguments of tool calls (first: search) are not on their spans")
    assert "what makes 'agents' write them: not known" in message


@pytest.mark.parametrize(
    ("scope", "switch"),
    [
        (
            "opentelemetry.instrumentation.genai.langchain",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
        ),
        ("com.anthropic.sdk.python", "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content"),
        ("agent_framework", "ENABLE_SENSITIVE_DATA=true"),
    ],
)
def test_the_switch_is_that_of_the_instrumentation_at_hand(
    process: Traced, caplog: pytest.LogCaptureFixture, scope: str, switch: str
) -> None:
    process.guard()
    tracer = process.provider.get_tracer(scope)
    with process.agent(), tracer.start_as_current_span("execute_tool search"):
        pass

    (message,) = said(caplog)
    assert f"what makes {scope!r} write them: {switch};" in message


def test_nothing_is_said_of_an_agent_that_shows_itself(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    process.guard(mode="enforce")
    with guarded_run(), process.agent():
        process.work(2)

    assert said(caplog) == []


def test_what_a_policy_will_not_do_is_told_of_once(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    helper = {"limits": {"max_steps": 9}}
    policy = Policy(agents={"*": helper, "helper": helper})
    assert policy.warnings
    process.guard(policy)
    with process.agent():
        process.work(2)

    assert said(caplog) == [f"policy: {warning}" for warning in policy.warnings]
    assert {record.levelname for record in caplog.records} == {"WARNING"}

"""What is read from the spans of Microsoft's Agent Framework: one fact a row."""

from __future__ import annotations

import enum

import pytest

from otel_loopguard.dialects import read_step
from otel_loopguard.spans import SpanRecord
from tests.unit.written_spans import ARGUMENTS, OPERATION, REASONS, read, span

SCOPE = "agent_framework"


class Told(str, enum.Enum):
    """Values that are text and Enum."""

    CHAT = "chat"
    TOOL = "execute_tool"
    PROVIDER = "openai"


def test_the_run_of_a_workflow_is_an_agent():
    step = read(span("workflow.run", {"workflow.name": "support"}, scope=SCOPE))
    assert (step.kind, step.name) == ("agent", "support")
    assert read(span("workflow.run", scope=SCOPE)).name == "workflow.run"
    assert read(span("workflow.run support", scope=SCOPE)).kind == "agent"


@pytest.mark.parametrize(
    "record",
    [
        span("workflow.run", {"workflow.name": "support"}),
        span("workflow.build", {"workflow.name": "support"}, scope=SCOPE),
        span("executor.process a", scope=SCOPE),
        span("edge_group.process x", scope=SCOPE),
        span("message.send", scope=SCOPE),
    ],
)
def test_nobodys_step(record: SpanRecord):
    assert read_step(record) is None


def test_values_are_enums_that_are_text_and_lists_are_json_text():
    attributes = {OPERATION: Told.CHAT, "gen_ai.provider.name": Told.PROVIDER, REASONS: '["stop"]'}
    step = read(span("chat m", attributes, scope=SCOPE))
    assert (step.kind, step.provider, step.finish_reasons) == ("llm", "openai", ("stop",))
    assert type(step.provider) is str


def test_arguments_are_there_when_a_tool_starts():
    attributes = {OPERATION: Told.TOOL, "gen_ai.tool.name": "t", ARGUMENTS: '{"q": 1}'}
    started = span("execute_tool t", attributes, scope=SCOPE, ended_ns=None)
    assert read(started).arguments == '{"q": 1}'

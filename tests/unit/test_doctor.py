"""What the doctor finds in the recordings of real instrumentations, and what it says to do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from otel_loopguard.doctor import Examination, Finding, Report, Sighting, examine, report_on
from otel_loopguard.spans import SpanRecord
from otel_loopguard.switches import (
    GENAI_CONTENT,
    OPENINFERENCE_CONTENT,
    SWITCHES,
    TRACELOOP_CONTENT,
    switch_of,
)
from tests._recordings import FOLDERS, recordings

VERCEL = "recordInputs: true, recordOutputs: true"
WITHOUT_ARGUMENTS = {
    "anthropic-toolrunner-native-nocontent": "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
    "autogen-native": "openinference-instrumentation-autogen-agentchat",
    "claude-agent-sdk-cli-otel": "OTEL_LOG_TOOL_DETAILS=1",
    "claude-agent-sdk-mcp-native": "",
    "google-adk-native": "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental, "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT",
    "langchain-genai-nocontent": GENAI_CONTENT,
    "langchain-oi-nocontent": OPENINFERENCE_CONTENT,
    "langchain-tl-nocontent": TRACELOOP_CONTENT,
    "mcp-native": "",
    "mcp-openinference": "",
    "msagentframework-native": "ENABLE_SENSITIVE_DATA=true",
    "openai-agents-genai-nocontent": GENAI_CONTENT,
    "openai-agents-oi-nocontent": "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true",
    "openai-agents-tl-nocontent": TRACELOOP_CONTENT,
    "openai-agents-v2-nocontent": "OTEL_INSTRUMENTATION_OPENAI_AGENTS_CAPTURE_CONTENT",
    "pydantic-ai-v5-nocontent": "include_content=True",
    "semantickernel-native": "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE",
    "vercel-ai-v6-nocontent": VERCEL,
    "vercel-ai-v7-nocontent": VERCEL,
}
"""Folders with spans of tool calls that show no arguments, and a part of the remedy."""
WITHOUT_TOOL_CALLS = {
    "mcp1x-openinference": "OpenAIInstrumentor().instrument()",
    "raw-anthropic-native-nocontent": "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
    "raw-openai-chat-genai-nocontent": GENAI_CONTENT,
    "raw-openai-chat-tl-nocontent": TRACELOOP_CONTENT,
    "raw-openai-chat-v2": "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental, "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    "smolagents-genai": "OpenAIInstrumentor().instrument()",
    "smolagents-genai-nocontent": "OpenAIInstrumentor().instrument()",
}
"""Folders in which no tool call is seen at all: plain loops are known from answers only."""
WITHOUT_MODEL_CALLS = {
    "autogen-native": "openinference-instrumentation-autogen-agentchat",
    "claude-agent-sdk-mcp-native": "instrument what asks the model",
    "claude-agent-sdk-openinference": "CLAUDE_CODE_ENABLE_TELEMETRY=1",
    "google-adk-openinference": "leave this package out",
    "llamaindex-genai": "OpenAIInstrumentor().instrument()",
    "mcp-native": "instrument what asks the model",
    "mcp-openinference": "instrument what asks the model",
    "mcp1x-openinference": "OpenAIInstrumentor().instrument()",
    "smolagents-genai": "OpenAIInstrumentor().instrument()",
    "smolagents-genai-nocontent": "OpenAIInstrumentor().instrument()",
}
WITHOUT_ANYTHING = {"raw-openai-responses-v2": "docs/frameworks.md"}
ALONE = {
    "claude-agent-sdk-mcp-native",
    "mcp-native",
    "mcp-openinference",
    "raw-anthropic-native-nocontent",
    "raw-openai-chat-genai-nocontent",
    "raw-openai-chat-tl-nocontent",
    "raw-openai-chat-v2",
}
"""Folders with calls that have nothing around them, and no ids that would hold them together."""
TWICE = {
    "google-adk-legacy",
    "langchain-oi-prov",
    "llamaindex-openinference",
    "openai-agents-oi",
    "openai-agents-oi-chatapi",
    "openai-agents-oi-nocontent",
    "openai-agents-tl",
    "openai-agents-tl-chatapi",
    "openai-agents-tl-nocontent",
    "pydantic-ai-v5-prov",
    "raw-anthropic-genai",
    "raw-anthropic-oi",
}
FULL = {
    "langchain-oi",
    "langchain-oi-prov",
    "openai-agents-oi",
    "openai-agents-oi-chatapi",
    "raw-anthropic-oi",
    "raw-anthropic-oi-nosdkspans",
    "raw-openai-chat-oi",
}
FROM_MESSAGES = {
    "crewai-traceloop",
    "raw-anthropic-genai",
    "raw-anthropic-genai-nosdkspans",
    "raw-anthropic-native",
    "raw-anthropic-oi",
    "raw-anthropic-oi-nosdkspans",
    "raw-anthropic-tl-nosdkspans",
    "raw-openai-chat-genai",
    "raw-openai-chat-oi",
    "raw-openai-chat-tl",
    "raw-openai-responses-genai",
    "raw-openai-responses-tl",
}


@cache
def report(folder: str) -> Report:
    examination = Examination()
    for recording in recordings(folder):
        examination.take(Sighting(record=record) for record in recording.ended())
    return report_on(examination.seen())


def found(folder: str, finding: str) -> Finding | None:
    return next((each for each in report(folder).findings if each.finding == finding), None)


def folders_with(finding: str) -> set[str]:
    return {folder for folder in FOLDERS if found(folder, finding) is not None}


def examined(*records: SpanRecord) -> Report:
    return report_on(examine(Sighting(record=record) for record in records))


def named(report: Report) -> set[str]:
    return {each.finding for each in report.findings if each.severity != "ok"}


def chat(span_id: int, **options: object) -> SpanRecord:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 1}
    return span(span_id, "chat m", attributes | options)


def span(
    span_id: int, name: str, attributes: Mapping[str, object], parent_id: int | None = None
) -> SpanRecord:
    return SpanRecord(
        name=name,
        trace_id=1 if parent_id else span_id,
        span_id=span_id,
        parent_id=parent_id,
        attributes=attributes,
        started_ns=span_id * 1_000_000_000,
        ended_ns=span_id * 1_000_000_000 + 500_000_000,
    )


def test_every_folder_without_content_is_in_a_table() -> None:
    without = {folder for folder in FOLDERS if "nocontent" in folder}

    assert without
    assert without <= set(WITHOUT_ARGUMENTS) | set(WITHOUT_TOOL_CALLS)


@pytest.mark.parametrize(
    ("finding", "table"),
    [
        ("no_arguments", WITHOUT_ARGUMENTS),
        ("no_tool_calls", WITHOUT_TOOL_CALLS),
        ("no_model_calls", WITHOUT_MODEL_CALLS),
        ("no_steps", WITHOUT_ANYTHING),
    ],
)
def test_what_is_missing_is_found_there_and_nowhere_else(
    finding: str, table: dict[str, str]
) -> None:
    assert folders_with(finding) == set(table)
    for folder, remedy in table.items():
        said = found(folder, finding)
        assert said is not None
        assert said.severity == "blind"
        assert said.means
        assert remedy in said.remedy, folder
        assert bool(remedy) == bool(said.remedy), f"{folder}: a switch was made up"


@pytest.mark.parametrize(
    ("finding", "severity", "folders"),
    [
        ("single_calls", "blind", ALONE),
        ("seen_twice", "ok", TWICE),
        ("lost_attributes", "weak", FULL),
        ("calls_from_messages", "ok", FROM_MESSAGES),
        ("cut_values", "weak", set[str]()),
    ],
)
def test_what_else_is_found(finding: str, severity: str, folders: set[str]) -> None:
    assert folders_with(finding) == folders
    assert all((said := found(f, finding)) and said.severity == severity for f in folders)


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_has_content_is_not_called_blind(folder: str) -> None:
    blind = set(WITHOUT_ARGUMENTS) | set(WITHOUT_TOOL_CALLS) | set(WITHOUT_MODEL_CALLS) | ALONE

    assert report(folder).is_blind == (folder in blind or folder in WITHOUT_ANYTHING)


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_span_is_counted_once(folder: str) -> None:
    seen = report(folder).seen
    roles = [
        scope.models.calls
        + scope.tools.calls
        + scope.agents.spans
        + scope.parts
        + scope.other_steps
        + scope.others
        for scope in seen.scopes
    ]

    assert roles == [scope.spans for scope in seen.scopes]
    assert sum(roles) == seen.spans > 0


@pytest.mark.parametrize("folder", FOLDERS)
def test_findings_come_with_the_worst_first(folder: str) -> None:
    order = [("blind", "weak", "ok").index(each.severity) for each in report(folder).findings]

    assert order == sorted(order)
    assert order, "something is said of every recording"


def test_remedies_come_from_somewhere() -> None:
    for switch in SWITCHES:
        assert switch.source
        assert switch.content or switch.models


def test_the_longest_scope_counts() -> None:
    agents = switch_of("openinference.instrumentation.openai_agents")
    others = switch_of("openinference.instrumentation.openai")

    assert agents is not None
    assert others is not None
    assert "OPENAI_AGENTS" in agents.content
    assert "OPENAI_AGENTS" not in others.content
    assert switch_of("gen_ai.mine") is None
    assert switch_of("opentelemetry.instrumentation.httpx") is None


@pytest.mark.parametrize(
    ("folder", "dialect", "by"),
    [
        ("ag2-native", "ag2", "scope and attributes"),
        ("haystack-native", "haystack", "name"),
        ("langchain-genai", "gen_ai", "attributes"),
        ("openai-agents-oi", "openinference", "attributes"),
        ("openai-agents-tl", "openllmetry", "attributes"),
        ("strands-native", "strands", "scope and attributes"),
        ("vercel-ai-v6", "vercel_ai", "attributes"),
    ],
)
def test_by_what_spans_are_recognised(folder: str, dialect: str, by: str) -> None:
    ways = {
        (each.dialect, each.by, each.at_start)
        for scope in report(folder).seen.scopes
        for each in scope.recognised
    }

    assert (dialect, by, None) in ways, "and nothing is known of starts"


def test_a_program_that_asks_one_thing_is_no_agent_without_a_root() -> None:
    one = examined(chat(1, **{"gen_ai.output.messages": "[]"}))
    two = examined(chat(1), chat(2))

    assert "single_calls" not in named(one)
    assert "single_calls" in named(two)


def test_models_that_asked_for_nothing_lack_no_tool_calls() -> None:
    stopped = {"gen_ai.response.finish_reasons": ("stop",)}
    asking = {"gen_ai.response.finish_reasons": ("tool_calls",)}

    assert "no_tool_calls" not in named(examined(chat(1, **stopped)))
    assert "no_tool_calls" in named(examined(chat(1, **asking)))


def test_values_that_were_cut_tell_the_limit() -> None:
    agent = span(1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"})
    tools = [
        span(
            n,
            "execute_tool t",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.call.arguments": '{"q": "' + str(n) * 93,
                "gen_ai.tool.call.result": "short",
            },
            parent_id=1,
        )
        for n in (2, 3)
    ]

    cut = next(f for f in examined(agent, *tools).findings if f.finding == "cut_values")
    assert cut.what == "2 values cut at 100 characters"
    assert "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in cut.remedy
    assert "cut_values" not in named(examined(agent, tools[0])), "one may be broken by itself"


def test_a_span_without_its_parent_is_told_of() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "{}"}

    assert "unseen_root" in named(examined(span(2, "execute_tool t", tool, parent_id=1)))


def test_results_alone_may_be_missing() -> None:
    agent = span(1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"})
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "{}"}
    said = named(examined(agent, span(2, "execute_tool t", tool, parent_id=1)))

    assert "no_results" in said
    assert "no_arguments" not in said


def test_a_span_that_never_ended_is_counted_too() -> None:
    begun = SpanRecord(
        name="invoke_agent a",
        trace_id=1,
        span_id=1,
        started_ns=1,
        attributes={"gen_ai.operation.name": "invoke_agent"},
    )
    (scope,) = examined(begun).seen.scopes

    assert (scope.spans, scope.agents.spans) == (1, 1)


def test_files_that_name_calls_alike_are_kept_apart() -> None:
    asked = '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t"}]}]'
    answered = '[{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c"}]}]'
    first, second = chat(1, **{"gen_ai.output.messages": asked}), chat(2)
    second = chat(2, **{"gen_ai.input.messages": answered, "gen_ai.output.messages": asked})
    apart = Examination()
    for record in (first, second):
        apart.take([Sighting(record=record)])

    assert apart.seen().runs.ids == 2
    assert examine([Sighting(record=first), Sighting(record=second)]).runs.ids == 1

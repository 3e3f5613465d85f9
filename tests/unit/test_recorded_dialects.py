"""What is read from recordings of real frameworks, against what really happened."""

from __future__ import annotations

from collections import Counter

import pytest

from otel_loopguard.canonical import UNKNOWN, fingerprint
from otel_loopguard.dialects import read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step, StepKind, ToolCall
from tests._recordings import Recording, Truth

ALL_SIX = ("alternate", "endless", "error_tool", "finish3", "parallel", "poll")
SCRIPTS = {
    "langchain-genai": ALL_SIX,
    "langchain-genai-nocontent": ALL_SIX,
    "langchain-oi": ("endless", "finish3"),
    "langchain-tl": ("endless", "finish3"),
    "openai-agents-genai": ALL_SIX,
    "openai-agents-genai-nocontent": ALL_SIX,
    "openai-agents-oi": ("endless", "finish3"),
    "openai-agents-tl": ("endless", "finish3"),
    "pydantic-ai-v5": ALL_SIX,
    "pydantic-ai-v5-nocontent": ALL_SIX,
}
RECORDINGS = [(folder, script) for folder, scripts in SCRIPTS.items() for script in scripts]
WITH_CONTENT = [(folder, script) for folder, script in RECORDINGS if "nocontent" not in folder]
FOLDERS_WITH_CONTENT = [folder for folder in SCRIPTS if "nocontent" not in folder]
WITHOUT_CONTENT = [(folder, script) for folder, script in RECORDINGS if "nocontent" in folder]

SPANS_PER_REQUEST = dict.fromkeys(SCRIPTS, 1) | {"openai-agents-oi": 2, "openai-agents-tl": 2}
"""With OpenInference and Traceloop the framework's and the provider's package write one each."""

RECOGNISED_AT_START = {  # model and tool spans of `finish3`: 3 requests, 2 executions
    "langchain-genai": (3, 2),
    "langchain-genai-nocontent": (3, 2),
    "langchain-oi": (0, 0),  # the kind is written at the end
    "langchain-tl": (0, 2),  # nothing is written at the start, and only tools show it in the name
    "openai-agents-genai": (3, 2),
    "openai-agents-genai-nocontent": (3, 2),
    "openai-agents-oi": (6, 2),
    "openai-agents-tl": (3, 2),  # the provider's spans begin empty
    "pydantic-ai-v5": (3, 2),
    "pydantic-ai-v5-nocontent": (3, 2),
}


def ended(folder: str, script: str) -> list[SpanRecord]:
    return Recording(folder, script).ended()


def started(folder: str, script: str) -> list[SpanRecord]:
    return [event.record for event in Recording(folder, script).events() if event.is_start]


def true(folder: str, script: str) -> Truth:
    truth = Recording(folder, script).truth
    assert truth is not None
    return truth


def steps(records: list[SpanRecord], kind: StepKind | None = None) -> list[Step]:
    read = [step for record in records if (step := read_step(record)) is not None]
    return [step for step in read if kind in (None, step.kind)]


def calls(step: Step) -> tuple[ToolCall, ...]:
    assert step.tool_calls is not UNKNOWN
    return step.tool_calls


def distinct(values: list[object]) -> int:
    prints = {fingerprint(value) for value in values}
    assert None not in prints
    return len(prints)


@pytest.mark.parametrize(("folder", "script"), RECORDINGS)
def test_model_steps_are_the_true_model_requests(folder: str, script: str):
    found = steps(ended(folder, script), "llm")
    assert len(found) == true(folder, script).model_requests * SPANS_PER_REQUEST[folder]
    assert {(step.name, step.model, step.provider) for step in found} == {
        ("gpt-5-mini", "gpt-5-mini", "openai")
    }


@pytest.mark.parametrize(("folder", "script"), RECORDINGS)
def test_tool_steps_are_the_true_executions(folder: str, script: str):
    found = steps(ended(folder, script), "tool")
    assert len(found) == true(folder, script).tool_executions
    assert {step.name for step in found} <= {"search", "lookup", "boom", "poll"}


@pytest.mark.parametrize(("folder", "script"), RECORDINGS)
def test_one_agent_is_the_root(folder: str, script: str):
    roots = [record for record in ended(folder, script) if record.parent_id is None]
    assert [step.kind for step in steps(roots)] == ["agent"]


@pytest.mark.parametrize("folder", SCRIPTS)
def test_tokens(folder: str):
    found = steps(ended(folder, "finish3"), "llm")
    spans = SPANS_PER_REQUEST[folder]
    assert [step.input_tokens for step in found[::spans]] == [100, 130, 160]
    assert [step.output_tokens for step in found[::spans]] == [20, 20, 20]
    assert [step.cache_read_tokens or 0 for step in found[::spans]] == [0, 64, 64]
    assert sum(step.input_tokens or 0 for step in found) == 390 * spans


@pytest.mark.parametrize(("folder", "script"), WITH_CONTENT)
def test_arguments_are_equal_where_the_calls_were(folder: str, script: str):
    different = {
        "alternate": 2,
        "endless": 1,
        "error_tool": 1,
        "finish3": 2,
        "parallel": 2,
        "poll": 1,
    }
    found = steps(ended(folder, script), "tool")
    assert distinct([step.arguments for step in found]) == different[script]


@pytest.mark.parametrize(
    ("folder", "script"), [row for row in WITH_CONTENT if row[1] != "error_tool"]
)
def test_results_are_equal_where_the_answers_were(folder: str, script: str):
    different = {"alternate": 2, "endless": 1, "finish3": 2, "parallel": 2, "poll": 8}
    found = steps(ended(folder, script), "tool")
    assert distinct([step.result for step in found]) == different[script]
    assert {step.error for step in found} == {None}


@pytest.mark.parametrize(("folder", "script"), WITHOUT_CONTENT)
def test_what_is_not_captured_is_not_known(folder: str, script: str):
    found = steps(ended(folder, script))
    assert {step.arguments for step in found} == {step.result for step in found} == {UNKNOWN}
    assert {step.output for step in found if step.kind == "llm"} <= {UNKNOWN, ""}


@pytest.mark.parametrize(
    ("folder", "error"),
    [
        ("langchain-genai", "RuntimeError: backend down"),
        ("pydantic-ai-v5", "RuntimeError: backend down"),
        (
            "openai-agents-genai",
            (
                "{'message': 'Error running tool (non-fatal)', 'data': {'tool_name': 'boom',"
                " 'error': 'Tool execution failed. Error details are redacted.'}}"
            ),
        ),
    ],
)
def test_error_of_a_tool_that_raises(folder: str, error: str):
    assert {step.error for step in steps(ended(folder, "error_tool"), "tool")} == {error}


@pytest.mark.parametrize(
    ("folder", "script"), [row for row in RECORDINGS if not row[0].startswith("openai-agents")]
)
def test_call_ids_link_executions_to_requests(folder: str, script: str):
    records = ended(folder, script)
    executed = [step.call_id for step in steps(records, "tool")]
    assert len(set(executed) - {None}) == len(executed)
    if (folder, script) in WITH_CONTENT:
        requested = {call.call_id for step in steps(records, "llm") for call in calls(step)}
        assert set(executed) <= requested


@pytest.mark.parametrize(("folder", "script"), WITH_CONTENT)
def test_what_was_executed_was_requested_and_offered(folder: str, script: str):
    records = ended(folder, script)
    executed = Counter(step.name for step in steps(records, "tool"))
    requested = Counter(call.name for step in steps(records, "llm") for call in calls(step))
    assert executed <= requested
    assert {step.offered_tools for step in steps(records, "llm")} == {
        frozenset({"search", "lookup", "boom", "poll"})
    }


@pytest.mark.parametrize("folder", FOLDERS_WITH_CONTENT)
def test_arguments_of_a_request(folder: str):
    first = steps(ended(folder, "finish3"), "llm")[0]
    assert [(call.name, fingerprint(call.arguments)) for call in calls(first)] == [
        ("search", fingerprint({"query": "weather in paris"}))
    ]
    assert first.output == ""


@pytest.mark.parametrize("folder", FOLDERS_WITH_CONTENT)
def test_last_answer(folder: str):
    last = steps(ended(folder, "finish3"), "llm")[-1]
    assert (last.output, last.tool_calls) == ("The final answer is 42.", ())
    assert last.finish_reasons == ("stop",)


@pytest.mark.parametrize("folder", SCRIPTS)
def test_what_is_recognised_at_the_start(folder: str):
    records = started(folder, "finish3")
    found = len(steps(records, "llm")), len(steps(records, "tool"))
    assert found == RECOGNISED_AT_START[folder]


@pytest.mark.parametrize(("folder", "script"), RECORDINGS)
def test_start_and_end_agree(folder: str, script: str):
    at_end = {step.span: step for step in steps(ended(folder, script))}
    for start in steps(started(folder, script)):
        end = at_end[start.span]
        assert start.kind == end.kind
        assert start.name in {"", end.name}
        assert start.arguments in (UNKNOWN, end.arguments)
        assert start.ended_s is None


def test_pydantic_ai_shows_arguments_at_the_start():
    arguments = [step.arguments for step in steps(started("pydantic-ai-v5", "finish3"), "tool")]
    assert arguments == ['{"query":"weather in paris"}', '{"key":"alpha"}']


def test_pydantic_ai_names_the_agent_its_invocation_and_the_cost():
    found = steps(ended("pydantic-ai-v5", "finish3"))
    assert {step.agent for step in found} == {"assistant"}
    assert len({step.agent_id for step in found} - {None}) == 1
    assert sum(step.cost_usd or 0 for step in found) == pytest.approx(0.0001887)

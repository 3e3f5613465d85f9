"""What is read from OpenInference's names: one fact a row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import openinference as openinference_dialect
from otel_loopguard.dialects import read_step
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, ToolAnswer, ToolCall
from tests.unit.written_spans import (
    ANSWER,
    ARGUMENTS,
    CALL_ID,
    REASONS,
    openinference,
    read,
    span,
    tool_message,
)

COMMAND = json.dumps(
    {"graph": None, "update": {"messages": [{"data": {"content": "added", "tool_call_id": "c1"}}]}}
)
"""A LangGraph tool that changes the graph's state answers inside a command."""

NESTED = '{"output": ' * 400 + tool_message("found") + "}" * 400


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"input.value": '{"q": 1}'}, "arguments", '{"q": 1}'),
        ({"input.value": "paris"}, "arguments", "paris"),
        ({"input.value": "__REDACTED__"}, "arguments", UNKNOWN),
        # It may hold the tool's schema.
        ({ARGUMENTS: '{"type": "object"}'}, "arguments", UNKNOWN),
        ({"output.value": "found"}, "result", "found"),
        ({"output.value": "__REDACTED__"}, "result", UNKNOWN),
        ({"output.value": tool_message("found")}, "result", "found"),
        ({"output.value": tool_message("found")}, "call_id", "c1"),
        ({"output.value": tool_message("found"), "tool_call.id": "c2"}, "call_id", "c2"),
        (
            {"output.value": tool_message("no such file", status="error")},
            "result",
            {"content": "no such file", "status": "error"},
        ),
        ({"output.value": tool_message("__REDACTED__", status="error")}, "result", UNKNOWN),
        ({"output.value": {"data": {"content": "x", "tool_call_id": "c1"}}}, "result", "x"),
        ({"output.value": COMMAND}, "result", "added"),
        ({"output.value": COMMAND}, "call_id", "c1"),
        ({"output.value": '{"tool_call_id": "c1"}'}, "result", '{"tool_call_id": "c1"}'),
        ({"output.value": '["tool_call_id", 2]'}, "result", '["tool_call_id", 2]'),
        ({"output.value": '{"tool_call_id'}, "result", '{"tool_call_id'),
        ({"output.value": NESTED}, "result", NESTED),
        (
            {"tool.id": "c1", "output.value": '{"id": "c1", "response": 1}'},
            "result",
            {"response": 1},
        ),
        ({"tool.id": "c1", "output.value": '{"id": "c11"}'}, "result", '{"id": "c11"}'),
        ({"tool.id": "c1", "output.value": "see c1"}, "result", "see c1"),
        ({"tool.id": "c1"}, "call_id", "c1"),
        ({CALL_ID: "c1"}, "call_id", "c1"),
        ({}, "call_id", None),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
    ],
)
def test_openinference_tool(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(openinference("TOOL", attributes)), field) == expected


REQUEST = f"{ANSWER}.tool_calls.0.tool_call"
FULL = {f"other.{number}": 1 for number in range(127)}
"""With one more, what the SDK keeps on a span."""


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"llm.model_name": "m"}, "model", "m"),
        ({"llm.provider": "p", "llm.system": "s"}, "provider", "p"),
        ({"llm.system": "s"}, "provider", "s"),
        ({"llm.finish_reason": "stop"}, "finish_reasons", ("stop",)),
        ({f"{ANSWER}.finish_reason": "stop"}, "finish_reasons", ("stop",)),
        ({REASONS: ("stop",)}, "finish_reasons", ("stop",)),
        ({}, "finish_reasons", ()),
        ({"llm.token_count.prompt": 7}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": 7}, "input_tokens", 7),
        ({"llm.token_count.completion": 7}, "output_tokens", 7),
        ({"llm.token_count.prompt_details.cache_read": 7}, "cache_read_tokens", 7),
        ({"llm.token_count.prompt_details.cache_write": 7}, "cache_write_tokens", 7),
        ({"llm.token_count.completion_details.reasoning": 7}, "reasoning_tokens", 7),
        ({"llm.cost.total": 0.5, "operation.cost": 0.25}, "cost_usd", 0.5),
        ({"operation.cost": 0.25}, "cost_usd", 0.25),
        ({"gen_ai.agent.name": "a"}, "agent", "a"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        # The answer: nothing is known without a role, everything with one.
        ({}, "tool_calls", UNKNOWN),
        ({}, "output", UNKNOWN),
        ({f"{REQUEST}.function.name": "search"}, "tool_calls", UNKNOWN),
        ({f"{ANSWER}.role": "assistant"}, "tool_calls", ()),
        ({f"{ANSWER}.role": "assistant"}, "output", ""),
        ({f"{ANSWER}.role": "assistant", f"{ANSWER}.content": "done"}, "output", "done"),
        ({f"{ANSWER}.role": "assistant", f"{ANSWER}.content": "__REDACTED__"}, "output", UNKNOWN),
        (
            {
                f"{ANSWER}.role": "assistant",
                f"{REQUEST}.function.name": "search",
                f"{REQUEST}.function.arguments": '{"q": 1}',
                f"{REQUEST}.id": "c1",
                f"{ANSWER}.tool_calls.1.tool_call.function.name": "lookup",
            },
            "tool_calls",
            (ToolCall(name="search", arguments='{"q": 1}', call_id="c1"), ToolCall(name="lookup")),
        ),
        (
            {
                f"{ANSWER}.role": "assistant",
                f"{ANSWER}.contents.0.message_content.type": "text",
                f"{ANSWER}.contents.0.message_content.text": "done",
                f"{ANSWER}.contents.1.message_content.type": "tool_use",
            },
            "output",
            "done",
        ),
        (
            {f"{ANSWER}.role": "assistant", f"{ANSWER}.contents.0.message_content.type": "image"},
            "output",
            UNKNOWN,
        ),
        ({"llm.tools.0.tool.json_schema": '{"name": "a"}'}, "offered_tools", {"a"}),
        ({"llm.tools.0.tool.json_schema": '{"function": {"name": "a"}}'}, "offered_tools", {"a"}),
        (
            {"llm.tools.0.tool.json_schema": '{"type": "object"}', "llm.tools.0.tool.name": "a"},
            "offered_tools",
            {"a"},
        ),
        ({"llm.tools.0.tool.json_schema": "__REDACTED__"}, "offered_tools", UNKNOWN),
        ({"llm.tools.0.tool.json_schema": "{"}, "offered_tools", UNKNOWN),
        ({}, "offered_tools", UNKNOWN),
        # Of what the SDK has dropped, the oldest first, nothing is known.
        ({f"{ANSWER}.role": "assistant", f"{REQUEST}.id": "c1"}, "tool_calls", UNKNOWN),
        (
            {
                f"{ANSWER}.role": "assistant",
                f"{ANSWER}.tool_calls.1.tool_call.function.name": "search",
            },
            "tool_calls",
            UNKNOWN,
        ),
        (
            {
                "llm.output_messages.1.message.role": "assistant",
                "llm.output_messages.1.message.content": "done",
            },
            "output",
            UNKNOWN,
        ),
        ({f"{ANSWER}.role": "assistant", **FULL}, "tool_calls", UNKNOWN),
        ({f"{ANSWER}.role": "assistant", **FULL}, "output", UNKNOWN),
        ({f"{ANSWER}.role": "assistant", f"{ANSWER}.content": "x", **FULL}, "tool_calls", ()),
        ({"llm.tools.1.tool.json_schema": '{"name": "a"}'}, "offered_tools", UNKNOWN),
        # What the provider calls the answer.
        ({"gen_ai.response.id": "r1"}, "response_id", "r1"),
        ({"output.value": '{"id":"chatcmpl-1","choices":[]}'}, "response_id", "chatcmpl-1"),
        (
            {"output.value": '{"id": "resp_1", "output": [{"id": "msg_2"}]}'},
            "response_id",
            "resp_1",
        ),
        ({"output.value": '{"id":"msg_1","content":[]}'}, "response_id", "msg_1"),
        (
            {"output.value": '{"message": {"content": [{"id": "msg_2"}], "id": "resp_1"}}'},
            "response_id",
            "resp_1",
        ),
        ({"output.value": '{"text": "{\\"id\\": \\"resp_1\\"}"}'}, "response_id", ""),
        ({"llm.invocation_parameters": '{"id": "resp_1"}'}, "response_id", "resp_1"),
        ({"output.value": '{"id": "chatcmpl-'}, "response_id", ""),
        ({"output.value": {"id": "chatcmpl-1"}}, "response_id", ""),
        ({}, "response_id", ""),
    ],
)
def test_openinference_llm(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(openinference("LLM", attributes)), field) == expected


def test_a_result_that_contains_itself():
    circle: dict[str, object] = {}
    circle["output"] = circle
    assert read(openinference("TOOL", {"output.value": circle})).result is circle


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"llm.token_count.prompt": 7}, "input_tokens", 7),
        ({"gen_ai.usage.input_tokens": "7"}, "input_tokens", 7),
        ({"llm.token_count.completion": 7}, "output_tokens", 7),
        ({"llm.token_count.prompt_details.cache_read": 7}, "cache_read_tokens", 7),
        ({"llm.token_count.total": 7}, "input_tokens", None),
        ({"llm.model_name": "m"}, "model", "m"),
        ({"llm.provider": "p"}, "provider", "p"),
        ({"gen_ai.agent.call.id": "i1"}, "agent_id", "i1"),
        ({"agent.name": "a"}, "agent", "a"),
    ],
)
def test_openinference_agent(attributes: Mapping[str, object], field: str, expected: object):
    assert getattr(read(openinference("AGENT", attributes)), field) == expected


def test_usage_on_the_root_of_a_run():
    record = span("crew.kickoff", {"openinference.span.kind": "CHAIN", "llm.token_count.prompt": 7})
    root = msgspec.structs.replace(record, parent_id=None)
    assert (read(root).kind, read(root).input_tokens) == ("agent", 7)


PACKAGES = "openinference.instrumentation"


@pytest.mark.parametrize(
    ("name", "scope", "kind"),
    [
        ("assistant", f"{PACKAGES}.langchain", "agent"),
        ("LangGraph", f"{PACKAGES}.langchain", "agent"),
        ("ChatOpenAI", f"{PACKAGES}.langchain", None),
        ("FunctionAgent.run", f"{PACKAGES}.llama_index", "agent"),
        ("OpenAILike.achat", f"{PACKAGES}.llama_index", None),
        ("handle request", "my.app", None),
        ("handle request.run", "", None),
    ],
)
def test_a_root_without_attributes(name: str, scope: str, kind: str | None):
    root, remote = (
        span(name, scope=scope, parent_id=None),
        span(name, scope=scope, parent_is_remote=True),
    )
    for record in (root, remote):
        step = read_step(record)
        assert (step and step.kind) == kind
        assert step is None or step.name == name
    below = read_step(span(name, scope=scope))
    assert (below is not None) == (name == "FunctionAgent.run"), "those are known anywhere"


@pytest.mark.parametrize("attributes", [{}, {"openinference.span.kind": "CHAIN"}])
@pytest.mark.parametrize(
    ("name", "is_agent"),
    [
        ("FunctionAgent.run", True),
        ("AgentWorkflow.run", True),
        ("MyOwnAgent.run", True),
        ("CitationQueryWorkflow.run", False),
        ("BaseWorkflowAgent.run_agent_step", False),
    ],
)
def test_agents_of_llama_index_below_a_span(
    attributes: Mapping[str, object], name: str, *, is_agent: bool
):
    step = read_step(span(name, attributes, scope=f"{PACKAGES}.llama_index"))
    assert (step and step.kind) == ("agent" if is_agent else None)
    assert read_step(span(name, attributes, scope="somebody.else")) is None


@pytest.mark.parametrize(
    ("package", "given", "expected"),
    [
        (
            "smolagents",
            '{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"query": "x"}}',
            {"query": "x"},
        ),
        ("smolagents", '{"args": ["x"], "sanitize_inputs_outputs": true, "kwargs": {}}', ["x"]),
        (
            "smolagents",
            {"args": ["x"], "kwargs": {"n": 1}},
            {"args": ["x"], "kwargs": {"n": 1}},
        ),
        ("smolagents", '{"args": [], "kwargs": null}', {}),
        ("dspy", '{"kwargs": {"query": "x"}}', {"query": "x"}),
        ("llama_index", '{"kwargs": {"query": "x"}}', {"query": "x"}),
        ("dspy", '{"kwargs": {}, "query": "x"}', '{"kwargs": {}, "query": "x"}'),
        ("dspy", '{"kwargs": ', '{"kwargs": '),
        ("dspy", "__REDACTED__", UNKNOWN),
        # Elsewhere a tool may have such an argument of its own.
        ("crewai", '{"kwargs": {"query": "x"}}', '{"kwargs": {"query": "x"}}'),
    ],
)
def test_arguments_of_a_python_call(package: str, given: object, expected: object):
    assert (
        read(openinference("TOOL", {"input.value": given}, package=package)).arguments == expected
    )


def llama_index_output(*blocks: str, **more: object) -> str:
    shown = [{"text": block} for block in blocks]
    return json.dumps(
        {"blocks": shown, "tool_name": "search", "raw_input": {}, "is_error": False, **more}
    )


@pytest.mark.parametrize(
    ("output", "result", "error"),
    [
        (llama_index_output("found"), "found", None),
        (llama_index_output("one", "two"), "one\ntwo", None),
        (llama_index_output("down", is_error=True), "down", "down"),
        ('{"blocks": [{"block_type": "image"}], "raw_output": 7}', 7, None),
        ('{"blocks": [{"text": 7}], "is_error": true}', UNKNOWN, "error"),
        ("found", "found", None),
        ('{"found": 1}', '{"found": 1}', None),
        ("__REDACTED__", UNKNOWN, None),
    ],
)
def test_what_a_tool_of_llama_index_answered(output: str, result: object, error: str | None):
    step = read(openinference("TOOL", {"output.value": output}, package="llama_index"))
    assert (step.result, step.error) == (result, error)


def test_preparing_a_model_call_of_llama_index_is_none():
    name = "OpenAILike._prepare_chat_with_tools"
    assert read_step(openinference("LLM", {}, name=name, package="llama_index")) is None
    assert read(openinference("LLM", {}, name=name)).kind == "llm"
    assert read(openinference("LLM", {}, name="O.achat", package="llama_index")).kind == "llm"


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (
            openinference("TOOL", {"tool.name": "final_answer"}, package="smolagents"),
            "final_answer",
        ),
        (openinference("TOOL", {}, name="finish.__call__", package="dspy"), "finish"),
        (openinference("TOOL", {}, name="submit.acall", package="dspy"), "submit"),
    ],
)
def test_answering_by_a_tool_is_no_execution(record: SpanRecord, name: str):
    step = read(record)
    assert (step.kind, step.name, step.finish_reasons) == ("custom", name, ("stop",))


@pytest.mark.parametrize(
    "record",
    [
        openinference("TOOL", {"tool.name": "final_answer"}, package="crewai"),
        openinference("TOOL", {"tool.name": "finish"}, package="smolagents"),
        openinference("TOOL", {"tool.name": "search"}, package="smolagents"),
    ],
)
def test_other_tools_are_executions(record: SpanRecord):
    assert read(record).kind == "tool"


@pytest.mark.parametrize(
    ("answer", "reasons"),
    [
        ('{"finish_reason": "stop", "content": "done"}', ("stop",)),
        ('{"finish_reason": null}', ()),
        ("__REDACTED__", ()),
        (None, ()),
    ],
)
def test_autogen_says_in_its_answer_why_a_model_stopped(answer: str | None, reasons: object):
    said = {} if answer is None else {"output.value": answer}
    assert read(openinference("LLM", said, package="autogen_agentchat")).finish_reasons == reasons
    # Elsewhere it may be the text of an answer.
    assert read(openinference("LLM", said, package="crewai")).finish_reasons == ()


@pytest.mark.parametrize("package", ["dspy", "smolagents"])
def test_an_answer_without_calls_may_ask_for_tools_in_plain_text(package: str):
    said = {f"{ANSWER}.role": "assistant", f"{ANSWER}.content": "search"}
    asked = {f"{ANSWER}.role": "assistant", f"{REQUEST}.function.name": "search"}
    assert read(openinference("LLM", said, package=package)).tool_calls is UNKNOWN
    assert read(openinference("LLM", asked, package=package)).tool_calls == (
        ToolCall(name="search"),
    )


def test_names_that_a_span_of_crewai_begins_with():
    assert read(openinference("AGENT", {}, name="cook._execute_core")).name == "cook"
    assert read(openinference("TOOL", {}, name="search.run")).name == "search"


def test_an_agent_that_google_adk_marks_as_a_model_call():
    record = span(
        "invoke_agent a",
        {"openinference.span.kind": "LLM", "llm.token_count.prompt": 100, "gen_ai.agent.name": "a"},
        scope="gcp.vertex.agent",
    )
    assert (read(record).kind, read(record).name, read(record).input_tokens) == ("agent", "a", 100)


def message(number: int, role: str, **more: object) -> dict[str, object]:
    prefix = f"llm.input_messages.{number}.message"
    return {f"{prefix}.role": role, **{f"{prefix}.{name}": value for name, value in more.items()}}


def asked(*messages: Mapping[str, object], **more: object) -> SpanRecord:
    together = {name: value for some in messages for name, value in some.items()}
    return openinference("LLM", {**together, **more})


def request(**fields: object) -> SpanRecord:
    return openinference("LLM", {"input.value": json.dumps(fields)})


FOUND = ToolAnswer(call_id="c1", result="found")
LOST = ToolAnswer(call_id="c2", result="lost")
FUNCTION = "llm.input_messages.1.function"
PARTS = "llm.input_messages.0.message.contents.0.message_content"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (asked(message(0, "system", content="x")), ModelInput()),
        (asked(message(0, "user", content="hello")), ModelInput(spoken=True)),
        (asked(message(0, "user", content="")), ModelInput()),
        (asked(message(0, "user")), ModelInput()),
        (
            asked({f"{PARTS}.type": "text", f"{PARTS}.text": "hello"}, message(0, "user")),
            ModelInput(spoken=True),
        ),
        (
            asked(
                message(0, "user", content="hello"),
                message(1, "assistant"),
                message(2, "tool", content="found", tool_call_id="c1"),
                message(3, "tool", content="lost", tool_call_id="c2"),
            ),
            ModelInput(answers=(FOUND, LOST)),
        ),
        (
            asked(
                message(0, "model"),
                message(1, "tool", content="__REDACTED__", tool_call_id="c1"),
                message(2, "tool", tool_call_id="c2"),
                message(3, "tool", content="nobody's"),
                message(4, "user", content="and?"),
            ),
            ModelInput(answers=(ToolAnswer(call_id="c1"), ToolAnswer(call_id="c2")), spoken=True),
        ),
        # smolagents
        (asked(message(0, "user", content="hello"), message(1, "tool-response")), ModelInput()),
        # AutoGen
        (
            asked(
                message(0, "assistant"),
                message(1, "function"),
                {
                    f"{FUNCTION}.0": '{"call_id": "c1", "content": "found"}',
                    f"{FUNCTION}.1": '{"call_id": "c2", "content": "lost"}',
                    f"{FUNCTION}.2": '{"content": "lost"}',
                },
            ),
            ModelInput(answers=(FOUND, LOST)),
        ),
        # The oldest messages may have been dropped, but not those that are new.
        (asked(message(3, "assistant"), message(4, "user", content="x")), ModelInput(spoken=True)),
        (asked(message(4, "user", content="hello")), None),
        (asked({"llm.input_messages.0.message.content": "hello"}), None),
        (asked({f"llm.input_messages.{'9' * 5000}.message.role": "user"}), None),
        (
            asked(
                message(0, "user", content="x"), **{"input.value": '{"previous_response_id":"r1"}'}
            ),
            ModelInput(spoken=True, previous_response_id="r1"),
        ),
        (
            asked(
                message(0, "user", content="x"),
                **{
                    "llm.invocation_parameters": '{"previous_response_id": "r1"}',
                    "input.value": '"{\\"previous_response_id\\": \\"r2\\"}"',
                },
            ),
            ModelInput(spoken=True, previous_response_id="r1"),
        ),
        # At the start OpenAI's and Anthropic's packages have the request only.
        (request(messages=[{"role": "user", "content": "hello"}]), ModelInput(spoken=True)),
        (request(messages=[{"role": "user", "content": " "}]), ModelInput()),
        (
            request(
                messages=[
                    {"role": "user", "content": "hello"},
                    {"role": "assistant", "content": "Let me look."},
                    {"role": "tool", "tool_call_id": "c1", "content": "found"},
                    {
                        "role": "tool",
                        "tool_call_id": "c2",
                        "content": [{"type": "text", "text": "lost"}],
                    },
                    {"role": "tool", "content": "nobody's"},
                ]
            ),
            ModelInput(answers=(FOUND, LOST)),
        ),
        (
            request(
                messages=[
                    {"role": "assistant", "content": "Let me look."},
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "c1", "content": "found"},
                            {
                                "type": "tool_result",
                                "tool_use_id": "c2",
                                "content": [{"type": "text", "text": "lost"}],
                            },
                        ],
                    },
                ]
            ),
            ModelInput(answers=(FOUND, LOST)),
        ),
        (
            request(
                messages=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "c1", "content": "found"},
                            {"type": "text", "text": "and?"},
                        ],
                    },
                ]
            ),
            ModelInput(answers=(FOUND,), spoken=True),
        ),
        (
            request(input="hello", previous_response_id="r1"),
            ModelInput(spoken=True, previous_response_id="r1"),
        ),
        (
            request(
                input=[
                    {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                    {"type": "reasoning", "id": "x"},
                    {"type": "function_call", "call_id": "c1", "name": "search"},
                    {"type": "function_call_output", "call_id": "c1", "output": "found"},
                    {"type": "function_call_output", "call_id": "c2", "output": "lost"},
                ]
            ),
            ModelInput(answers=(FOUND, LOST)),
        ),
        (
            request(
                input=[
                    {"type": "message", "role": "user", "content": "hello"},
                    {"type": "item_reference", "id": "x"},
                    {"role": "developer", "content": "x"},
                ]
            ),
            ModelInput(spoken=True),
        ),
        (
            openinference("LLM", {"input.value": '[{"role": "user", "content": "hello"}]'}),
            ModelInput(spoken=True),
        ),
        (
            openinference(
                "LLM",
                {
                    "input.value": '{"messages": [[{"lc": 1, "kwargs": {"type": "ai"}}, {"lc": 1, '
                    '"kwargs": {"type": "tool", "tool_call_id": "c1", "content": "found"}}]]}'
                },
            ),
            ModelInput(answers=(FOUND,)),
        ),
        (
            request(
                messages=[
                    {"role": "user", "content": "hello"},
                    {"role": "model", "content": "Let me look."},
                    {"role": "tool", "tool_call_id": "c1", "content": ["found"]},
                    {"role": "tool", "tool_call_id": "c2", "content": list[object]()},
                ]
            ),
            ModelInput(
                answers=(
                    ToolAnswer(call_id="c1", result=["found"]),
                    ToolAnswer(call_id="c2", result=list[object]()),
                )
            ),
        ),
        (request(contents=[]), None),
        (request(messages=["hello"]), None),
        (openinference("LLM", {"input.value": "hello"}), None),
        (openinference("LLM", {"input.value": "__REDACTED__"}), None),
        (openinference("LLM", {"input.value": '{"input": "hello"}'}, limit=18), None),
        (openinference("LLM", {}), None),
        # Others tell it better, or nothing does.
        (asked(message(0, "user", content="x"), **{"gen_ai.input.messages": "[]"}), None),
        (openinference("TOOL", {"input.value": '{"input": "hello"}'}), None),
        (openinference("LLM", message(0, "user", content="x"), package="dspy"), None),
    ],
)
def test_what_is_new_in_the_input(record: SpanRecord, expected: ModelInput | None):
    assert openinference_dialect.read_input(record) == expected

"""Hand-written loops over the `openai` client, with the spans of model calls and no others.

Nothing but the client's instrumentation says what happens here: no agent's span, no tool's. What
holds the calls together is the application's own span around them, or a `guarded_run` block.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from inspect import cleandoc

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import Policy, RunAborted, guarded_run
from tests.frameworks._expected import (
    ANSWER,
    HEALTHY,
    aborted,
    ended_runs,
    run_attributes,
    violations,
)
from tests.frameworks._framework import CAP, Framework, Job, Tool, genai_content
from tests.frameworks._workbench import Counts, Workbench

ONLY = Policy.none()
Messages = list[ChatCompletionMessageParam]


class TooManyTurnsError(Exception):
    """What the loops here do in place of a framework's limit."""


@contextmanager
def instrument(provider: TracerProvider, *, content: bool) -> Generator[None]:
    client = OpenAIInstrumentor()
    with genai_content(content=content):
        client.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        client.uninstrument()


def schema(tool: Tool) -> ChatCompletionFunctionToolParam:
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    return {
        "type": "function",
        "function": {
            "name": tool.__name__,
            "description": cleandoc(tool.__doc__ or ""),
            "parameters": parameters,
        },
    }


def carry_out(
    messages: Messages, calls: Sequence[tuple[str, str, str]], tools: Sequence[Tool]
) -> None:
    """Run the tools that a turn asks for; a call is its id, the tool's name and the arguments."""
    by_name = {tool.__name__: tool for tool in tools}
    messages.append(
        {
            "role": "assistant",
            "tool_calls": [
                {"id": i, "type": "function", "function": {"name": name, "arguments": arguments}}
                for i, name, arguments in calls
            ],
        }
    )
    for call_id, name, arguments in calls:
        result = by_name[name](**json.loads(arguments))
        messages.append({"role": "tool", "tool_call_id": call_id, "content": result})


def sync(job: Job) -> str:
    messages: Messages = [{"role": "user", "content": job.prompt}]
    with OpenAI(base_url=job.url, api_key="none") as client:
        for _ in range(CAP):
            completion = client.chat.completions.create(
                model=job.script, messages=messages, tools=[schema(tool) for tool in job.tools]
            )
            turn = completion.choices[0].message
            if not turn.tool_calls:
                return turn.content or ""
            calls = [
                (call.id, call.function.name, call.function.arguments)
                for call in turn.tool_calls
                if call.type == "function"
            ]
            carry_out(messages, calls, job.tools)
    raise TooManyTurnsError


async def asynchronous(job: Job) -> str:
    messages: Messages = [{"role": "user", "content": job.prompt}]
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        for _ in range(CAP):
            completion = await client.chat.completions.create(
                model=job.script, messages=messages, tools=[schema(tool) for tool in job.tools]
            )
            turn = completion.choices[0].message
            if not turn.tool_calls:
                return turn.content or ""
            calls = [
                (call.id, call.function.name, call.function.arguments)
                for call in turn.tool_calls
                if call.type == "function"
            ]
            carry_out(messages, calls, job.tools)
    raise TooManyTurnsError


async def stream(job: Job) -> str:
    messages: Messages = [{"role": "user", "content": job.prompt}]
    async with AsyncOpenAI(base_url=job.url, api_key="none") as client:
        for _ in range(CAP):
            chunks = await client.chat.completions.create(
                model=job.script,
                messages=messages,
                tools=[schema(tool) for tool in job.tools],
                stream=True,
            )
            text = call_id = name = arguments = ""
            async for chunk in chunks:
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    for part in choice.delta.tool_calls or ():
                        call_id += part.id or ""
                        if part.function is not None:
                            name += part.function.name or ""
                            arguments += part.function.arguments or ""
            if not name:
                return text
            carry_out(messages, [(call_id, name, arguments)], job.tools)
    raise TooManyTurnsError


FRAMEWORK = Framework(
    instrument=instrument,
    blocking={"sync": sync},
    awaited={"async": asynchronous, "stream": stream},
    capped=TooManyTurnsError,
    at_cap=(CAP, CAP),
    run_span="handle order",
    agent_span="handle order",
    run_agent="",
    spans_above=1,
)


class TestUnderOneSpan:
    """Loops below a span of the application: the span is the run."""

    @pytest.mark.parametrize("content", [True, False], ids=["content", "no-content"])
    def test_five_model_calls_are_five_requests(
        self, bench: Workbench, mode: str, *, content: bool
    ):
        policy = ONLY.with_limits(max_llm_calls=5)
        with bench.guarded(policy, content=content) as scene, scene.span("handle order"):
            outcome = scene.play(mode)
        assert type(outcome.error) is RunAborted
        report = outcome.error.report
        assert outcome.counts == Counts(requests=5, executions=5)
        assert (report.rule, report.status) == ("llm_call_budget", "aborted")
        assert (report.steps, report.model_calls) == (5, 5)
        assert [each["on"] for each in violations(scene)] == ["handle order"]
        assert run_attributes(scene) == [
            {
                "run.status": "aborted",
                "run.steps": 5,
                "tripped": True,
                "rule": "llm_call_budget",
                "run.steps_after_trip": 0,
            }
        ]
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_steps_are_model_calls(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY.with_limits(max_steps=4)) as scene, scene.span("handle order"):
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "step_budget"
        assert outcome.counts == Counts(requests=4, executions=4)

    def test_healthy_loop(self, bench: Workbench, mode: str):
        with bench.scene() as alone, alone.span("handle order"):
            expected = alone.play(mode, "finish3")
        with bench.guarded(ONLY.with_limits(max_llm_calls=3)) as scene, scene.span("handle order"):
            outcome = scene.play(mode, "finish3")
        assert outcome == expected == (ANSWER, None, HEALTHY)
        assert scene.paths() == alone.paths()
        assert len(scene.paths()) == 4
        assert violations(scene) == []
        assert ended_runs(scene) == {("complete", False): 1}

    def test_healthy_loop_under_the_next_span(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY.with_limits(max_llm_calls=5)) as scene:
            with scene.span("handle order"):
                stopped = scene.play(mode)
            with scene.span("handle order"):
                healthy = scene.play(mode, "finish3")
        assert aborted(stopped).report.model_calls == 5
        assert healthy == (ANSWER, None, HEALTHY)
        assert ended_runs(scene) == {("aborted", True): 1, ("complete", False): 1}


class TestGuardedRun:
    """Loops inside a block, with no span around them."""

    def test_five_model_calls_are_five_requests(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded(ONLY.with_limits(max_llm_calls=5)) as scene:
            outcome = scene.play(mode, around=block)
        assert type(outcome.error) is RunAborted
        assert outcome.counts == Counts(requests=5, executions=5)
        assert block.report is not None
        assert (block.report.rule, block.report.model_calls) == ("llm_call_budget", 5)

    def test_healthy_loop(self, bench: Workbench, mode: str):
        block = guarded_run("order-4711")
        with bench.guarded(ONLY.with_limits(max_llm_calls=3)) as scene:
            outcome = scene.play(mode, "finish3", around=block)
        assert outcome == (ANSWER, None, HEALTHY)
        assert block.report is not None
        assert (block.report.status, block.report.model_calls) == ("complete", 3)


class TestObserve:
    """The loop goes on to its own limit, and the violation is written down."""

    def test_nothing_is_stopped(self, bench: Workbench, mode: str):
        with (
            bench.guarded(ONLY.with_limits(max_llm_calls=5), mode="observe") as scene,
            scene.span("handle order"),
        ):
            outcome = scene.play(mode)
        assert type(outcome.error) is TooManyTurnsError
        assert outcome.counts == FRAMEWORK.at_cap
        assert [each["loopguard.rule"] for each in violations(scene)] == ["llm_call_budget"]
        assert run_attributes(scene) == [
            {
                "run.status": "running",
                "run.steps": 12,
                "tripped": True,
                "rule": "llm_call_budget",
                "run.steps_after_trip": 6,
            }
        ]

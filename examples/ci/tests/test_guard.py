"""The guard of the support agent: it stops what does not end, and lets through what does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import support_agent
from openai import OpenAI

from otel_loopguard.testing import ModelServer, RecordingTool, recording_tool
from otel_loopguard.testing.capture import Capture

QUESTION = "Where do I find the form?"


@pytest.fixture
def client(model_server: ModelServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=model_server.url, api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture
def search() -> RecordingTool:
    return recording_tool(support_agent.search)


@pytest.fixture
def answer(client: OpenAI, search: RecordingTool):
    return lambda: support_agent.answer(client, QUESTION, tools={"search": search})


def test_an_endless_run_is_stopped(
    loopguard: Capture, model_server: ModelServer, answer, search: RecordingTool
):
    loopguard.assert_stops(
        answer,
        rule="repeated_result",
        model_calls=5,
        tool_executions=5,
        model=model_server,
        tools=[search],
    )


def test_the_model_call_after_the_last_one_is_refused(
    loopguard: Capture, model_server: ModelServer, answer, search: RecordingTool
):
    model_server.play("varying")
    loopguard.assert_stops(
        answer,
        rule="llm_call_budget",
        model_calls=6,
        tool_executions=6,
        model=model_server,
        tools=[search],
    )


def test_a_run_may_use_all_that_it_is_given(
    loopguard: Capture, model_server: ModelServer, answer, search: RecordingTool
):
    model_server.play("finish:6")
    loopguard.assert_completes(
        answer, model_calls=6, tool_executions=5, model=model_server, tools=[search]
    )


def test_a_usual_run_is_left_alone(
    loopguard: Capture, model_server: ModelServer, answer, search: RecordingTool
):
    model_server.play("finish3")
    loopguard.assert_completes(
        answer, model_calls=3, tool_executions=2, model=model_server, tools=[search]
    )

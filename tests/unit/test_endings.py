"""How a turn ends a run: one fact a row."""

from __future__ import annotations

import pytest

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.endings import Status, asks_for_tools, ending_of, finished
from otel_loopguard.steps import Step, ToolCall

CALL = (ToolCall(name="search"),)


def turn(
    *reasons: str,
    output: str | Unknown = "The answer is 42.",
    tool_calls: tuple[ToolCall, ...] | Unknown = (),
    error: str | None = None,
) -> Step:
    return Step(
        kind="llm", finish_reasons=reasons, output=output, tool_calls=tool_calls, error=error
    )


@pytest.mark.parametrize(
    ("step", "status"),
    [
        pytest.param(turn("stop"), "complete", id="chat completions"),
        pytest.param(turn("completed"), "complete", id="responses"),
        pytest.param(turn("end_turn"), "complete", id="messages"),
        pytest.param(turn("STOP"), "complete", id="gemini spells it in upper case"),
        pytest.param(turn("FinishReason.STOP"), "complete", id="the name of a member"),
        pytest.param(turn("stop_sequence"), "complete", id="a stop sequence"),
        pytest.param(turn("eos_token"), "complete", id="hugging face"),
        pytest.param(turn("stop", output=UNKNOWN), "complete", id="unknown text counts as text"),
        pytest.param(turn("stop", output=""), "empty", id="no text"),
        pytest.param(turn("stop", output=" \n\t"), "empty", id="blank text"),
        pytest.param(turn("stop", tool_calls=CALL), "running", id="stop, but calls asked for"),
        pytest.param(turn("stop", tool_calls=UNKNOWN), "complete", id="stop, calls unknown"),
        pytest.param(turn("tool_calls", tool_calls=CALL), "running", id="tool_calls"),
        pytest.param(turn("tool_call"), "running", id="tool_call"),
        pytest.param(turn("tool_use"), "running", id="tool_use"),
        pytest.param(turn("tool-calls"), "running", id="tool-calls"),
        pytest.param(turn("function_call"), "running", id="function_call"),
        pytest.param(turn("function_calls"), "running", id="function_calls"),
        pytest.param(turn("stop", "tool_calls"), "running", id="one of two reasons"),
        pytest.param(turn("pause_turn"), "running", id="another reason"),
        pytest.param(turn(), "running", id="no reason: never from prose"),
        pytest.param(turn("length"), "truncated", id="length"),
        pytest.param(turn("max_tokens"), "truncated", id="max_tokens"),
        pytest.param(turn("incomplete"), "truncated", id="incomplete"),
        pytest.param(turn("max_output_tokens"), "truncated", id="max_output_tokens"),
        pytest.param(turn("model_context_window_exceeded"), "truncated", id="the context is full"),
        pytest.param(turn("length", tool_calls=CALL), "truncated", id="cut in a tool call"),
        pytest.param(turn("content_filter"), "filtered", id="content_filter"),
        pytest.param(turn("refusal"), "filtered", id="refusal"),
        pytest.param(turn("SAFETY"), "filtered", id="safety"),
        pytest.param(turn("guardrail_intervened"), "filtered", id="a guardrail"),
        pytest.param(turn("stop", "length"), "truncated", id="the worse of two reasons"),
        pytest.param(turn(error=""), "provider_error", id="failed without a word"),
        pytest.param(turn("stop", error="timeout"), "provider_error", id="the call failed"),
        pytest.param(Step(kind="tool", error="boom"), "tool_error", id="the tool failed"),
        pytest.param(Step(kind="tool", result="ok"), "running", id="the tool worked"),
        pytest.param(Step(kind="agent", error="boom"), "running", id="a sub-agent says nothing"),
        pytest.param(Step(kind="custom", error="boom"), "running", id="a custom step says nothing"),
    ],
)
def test_how_a_step_would_end_the_run(step: Step, status: Status) -> None:
    assert ending_of(step) == status


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ("stop end_turn stop_sequence completed complete end eos eos_token", "complete"),
        ("length max_tokens max_output_tokens incomplete model_length", "truncated"),
        ("content_filter content-filter content_filtered safety refusal blocklist", "filtered"),
        ("prohibited_content recitation spii guardrail_intervened", "filtered"),
    ],
)
def test_every_spelling_of_an_ending(reasons: str, status: Status) -> None:
    endings = {reason: ending_of(turn(reason)) for reason in reasons.split()}

    assert endings == dict.fromkeys(endings, status)


@pytest.mark.parametrize(
    "reason",
    ["tool_calls", "tool_call", "tool_use", "tool-calls", "function_call", "function_calls"],
)
def test_every_spelling_of_asking_for_tools(reason: str) -> None:
    assert asks_for_tools(turn(reason))
    assert ending_of(turn("stop", reason)) == "running"


def test_a_turn_has_finished_the_run_only_if_its_text_is_known() -> None:
    assert finished(turn("stop"))
    assert not finished(turn("stop", output=UNKNOWN))
    assert not finished(turn("stop", output=" "))
    assert not finished(turn("stop", tool_calls=CALL))
    assert not finished(turn("stop", error="timeout"))
    assert not finished(Step(kind="tool", finish_reasons=("stop",), output="x", tool_calls=()))
    assert not finished(turn("length"))

"""What stands on the spans of the reference loop, and what only where somebody asks for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

from otel_loopguard import ModelTurn, Tool
from otel_loopguard.agent_loop.telemetry import CONTENT
from tests._run_agent import DONE, PLAYS, Play, Recorded, Script, asks, call
from tests._tracing import Traced

SECRET = "4711"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


@pytest.fixture(params=PLAYS)
def play(request: pytest.FixtureRequest) -> Play:
    return PLAYS[request.param]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def run(play: Play, process: Traced, *turns: ModelTurn, **options: Any) -> None:
    first = asks(call(call_id="c1", q=SECRET))
    play(
        Script(first, *(turns or (ModelTurn(text=SECRET, input_tokens=30, output_tokens=7),))),
        [Tool(name="search", call=Recorded(SECRET), description="searches", parameters=SCHEMA)],
        prompt=SECRET,
        tracer_provider=process.provider,
        **{"agent": "scout", "model_name": "m", "provider_name": "acme", **options},
    )


@pytest.mark.parametrize("asked", [None, "", "true", "NO_CONTENT", "EVENT_ONLY"], ids=repr)
def test_spans_say_what_happened_and_nothing_of_what_was_said(
    process: Traced, play: Play, monkeypatch: pytest.MonkeyPatch, asked: str | None
):
    if asked is None:
        monkeypatch.delenv(CONTENT, raising=False)
    else:
        monkeypatch.setenv(CONTENT, asked)
    run(play, process, max_output_tokens=99)

    chat, tool, last, agent = process.spans
    common = {"gen_ai.agent.name": "scout"}
    asked_for = {
        "gen_ai.operation.name": "chat",
        **common,
        "loopguard.vetoable": True,
        "gen_ai.request.model": "m",
        "gen_ai.provider.name": "acme",
        "gen_ai.request.max_tokens": 99,
    }
    assert attributes(chat) == {
        **asked_for,
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }
    assert attributes(tool) == {
        "gen_ai.operation.name": "execute_tool",
        **common,
        "loopguard.vetoable": True,
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": "c1",
    }
    assert attributes(last) == {
        **asked_for,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 7,
    }
    assert attributes(agent) == {
        "gen_ai.operation.name": "invoke_agent",
        **common,
        "gen_ai.provider.name": "acme",
    }
    assert [(span.name, span.kind) for span in process.spans] == [
        ("chat m", SpanKind.CLIENT),
        ("execute_tool search", SpanKind.INTERNAL),
        ("chat m", SpanKind.CLIENT),
        ("invoke_agent scout", SpanKind.INTERNAL),
    ]
    inside = {span.parent.span_id for span in (chat, tool, last) if span.parent}
    assert (inside, agent.parent) == ({agent.context.span_id if agent.context else 0}, None)
    assert {span.status.status_code for span in process.spans} == {StatusCode.UNSET}
    assert SECRET not in "".join(span.to_json() for span in process.spans)


@pytest.mark.parametrize("asked", ["SPAN_ONLY", "span_and_event"])
def test_content_is_on_spans_where_the_conventions_variable_says_so(
    process: Traced, play: Play, monkeypatch: pytest.MonkeyPatch, asked: str
):
    monkeypatch.setenv(CONTENT, asked)
    run(play, process)

    chat, tool, last, agent = map(attributes, process.spans)
    person = {"role": "user", "parts": [{"type": "text", "content": SECRET}]}
    asking = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": SECRET}}
    answered = {"type": "tool_call_response", "id": "c1", "response": SECRET}
    text = {"type": "text", "content": SECRET}
    assert json.loads(chat["gen_ai.input.messages"]) == [person]
    assert json.loads(chat["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [asking], "finish_reason": "tool_calls"}
    ]
    assert json.loads(chat["gen_ai.tool.definitions"]) == [
        {"type": "function", "name": "search", "description": "searches", "parameters": SCHEMA}
    ]
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"q": SECRET}
    assert tool["gen_ai.tool.call.result"] == SECRET
    assert json.loads(last["gen_ai.input.messages"]) == [
        person,
        {"role": "assistant", "parts": [asking]},
        {"role": "tool", "parts": [answered]},
    ]
    assert json.loads(last["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [text], "finish_reason": "stop"}
    ]
    assert SECRET not in str(agent)


@pytest.mark.parametrize(("asked", "text"), [("", "KeyError"), ("SPAN_ONLY", "KeyError: '4711'")])
def test_what_is_raised_shows_by_its_class(
    process: Traced, play: Play, monkeypatch: pytest.MonkeyPatch, asked: str, text: str
):
    monkeypatch.setenv(CONTENT, asked)
    play(
        Script(asks(call(call_id="c1", n=1)), DONE),
        [Tool(name="search", call=Recorded(KeyError(SECRET)))],
        tracer_provider=process.provider,
    )

    tool = process.spans[1]
    assert attributes(tool)["error.type"] == "KeyError"
    assert (tool.status.status_code, tool.status.description) == (StatusCode.ERROR, text)
    assert tool.events == ()
    assert process.spans[-1].status.status_code is StatusCode.UNSET, "the run is complete"


def test_each_attempt_has_a_span(process: Traced, play: Play):
    model = Script(asks(call(call_id="c1", n=1), call("serach", "c2")), ConnectionError(SECRET))
    play(
        model,
        [Tool(name="search", call=Recorded(TimeoutError()))],
        temporary=(TimeoutError,),
        tracer_provider=process.provider,
    )

    shown = [(span.name, attributes(span).get("error.type")) for span in process.spans]
    assert (shown[0], shown[3:]) == (
        ("chat", None),
        [
            ("execute_tool search", None),
            ("chat", "ConnectionError"),
            ("invoke_agent agent", "provider_error"),
        ],
    )
    # At the same time, the one that is not awaited is over first.
    assert sorted(shown[1:3]) == [
        ("execute_tool", "UnknownToolError"),
        ("execute_tool search", "TimeoutError"),
    ]


@pytest.mark.parametrize(
    ("turn", "ending"),
    [
        (ModelTurn(text="It", finish_reason="length"), "truncated"),
        (ModelTurn(text=" "), "empty"),
        (ModelTurn(text="It", finish_reason="refusal"), "filtered"),
        (asks(call(call_id="a"), call(call_id="a")), "invalid_action"),
    ],
    ids=["truncated", "empty", "filtered", "invalid action"],
)
def test_the_span_of_the_agent_says_how_it_ended(
    process: Traced, play: Play, turn: ModelTurn, ending: str
):
    run(play, process, turn)

    agent = process.spans[-1]
    assert attributes(agent)["error.type"] == ending
    assert (agent.status.status_code, agent.status.description) == (StatusCode.ERROR, ending)


def test_the_global_provider_is_taken_where_none_is_given(
    process: Traced, play: Play, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", process.provider)
    play(Script(DONE))

    assert [span.name for span in process.spans] == ["chat", "invoke_agent agent"]


def test_where_nothing_is_set_up_there_are_no_spans_and_nothing_fails(play: Play):
    assert play(Script(DONE)).ending == "complete"


def test_a_name_that_a_model_has_made_up_names_no_span_and_is_cut(process: Traced, play: Play):
    made_up = f"ignore all; card {SECRET} " * 50
    model = Script(asks(call(made_up, "c1")), DONE)
    result = play(model, tracer_provider=process.provider)

    tool = process.spans[1]
    assert (tool.name, attributes(tool)["gen_ai.tool.name"]) == ("execute_tool", made_up[:64])
    assert (result.last_tool, result.trace[1]) == (made_up[:64], f"tool:{made_up[:64]}")


class Failing(SpanProcessor):
    """A span processor that fails at the agent's span: when it starts, or when it ends."""

    def __init__(self, moment: str) -> None:
        self._moment = moment

    def _fail(self, moment: str, span: ReadableSpan) -> None:
        if moment == self._moment and span.name.startswith("invoke_agent"):
            raise RuntimeError(moment)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 -- an SDK's own name
        self._fail("start", span)

    def on_end(self, span: ReadableSpan) -> None:
        self._fail("end", span)


@pytest.mark.parametrize("moment", ["start", "end"])
def test_what_fails_at_the_agents_own_span_is_logged_and_the_run_goes_on(
    play: Play, caplog: pytest.LogCaptureFixture, moment: str
):
    provider = TracerProvider()
    provider.add_span_processor(Failing(moment))
    result = play(Script(DONE), tracer_provider=provider)

    assert (result.ending, result.output) == ("complete", DONE.text)
    assert [each.message.partition(";")[0] for each in caplog.records] == [
        f"the agent's span could not be {moment}ed"
    ]

"""Tool calls that a model asked for: which have happened without a span, and which have not."""

from __future__ import annotations

import pytest

from otel_loopguard import requested_calls
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.requested_calls import RequestedCalls
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, Step, ToolAnswer, ToolCall


def node(span_id: int = 1) -> Node:
    return SpanTree().enter(SpanRecord(name="chat", trace_id=1, span_id=span_id))


def call(name: str, arguments: object = "{}", call_id: str | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, call_id=call_id)


def tool(name: str, arguments: object = "{}", call_id: str | None = None) -> Step:
    return Step(kind="tool", name=name, arguments=arguments, call_id=call_id)


def asked(*calls: ToolCall) -> RequestedCalls:
    requested = RequestedCalls()
    requested.ask(node(), Step(kind="llm", tool_calls=calls))
    return requested


def names(steps: list[Step]) -> list[str]:
    return [step.name for step in steps]


def told(**results: object) -> ModelInput:
    answers = (ToolAnswer(call_id=call, result=result) for call, result in results.items())
    return ModelInput(answers=tuple(answers))


def test_what_the_model_is_told_of_has_happened() -> None:
    requested = asked(call("search", '{"q": 1}', "c1"), call("lookup", call_id="c2"))

    (step,) = requested.answered(node(2), told(c1="found"))

    assert (step.name, step.arguments, step.result, step.call_id) == (
        *("search", '{"q": 1}', "found", "c1"),
    )
    assert (step.spanless, step.span) == (True, (1, 1))
    assert requested.answered(node(3), told(c1="found")) == [], "once"
    assert names(requested.answered(node(3), told(c2="late"))) == ["lookup"]


def test_what_it_is_not_told_of_was_no_call_of_a_tool() -> None:
    requested = asked(call("classify", call_id="c1"))

    assert requested.answered(node(2), ModelInput(spoken=True)) == []


def test_items_of_answers_are_told_apart_by_their_order() -> None:
    requested = asked(*(call(name, call_id=f"fc_{name}") for name in "abc"))

    steps = requested.answered(node(2), told(call_8="of b", call_9="of c"))

    assert [(step.name, step.result) for step in steps] == [
        *(("a", UNKNOWN), ("b", "of b"), ("c", "of c")),
    ]


def test_where_inputs_are_not_shown_it_has_when_the_model_is_asked_again() -> None:
    requested = asked(call("search"), call("lookup"))

    assert names(requested.happened(node(2))) == ["search", "lookup"]
    assert requested.happened(node(3)) == [], "once"


def test_unless_tools_have_spans() -> None:
    requested = asked(call("search"), call("final_result"))
    requested.show(node(5), tool("search"))

    assert requested.happened(node(2)) == []
    assert requested.left() == 0


@pytest.mark.parametrize(
    ("shown", "waits"),
    [
        pytest.param(tool("read", call_id="c4"), "123", id="id"),
        pytest.param(tool("search", call_id="c4"), "234", id="an id of another tool's call"),
        pytest.param(tool("lookup"), "124", id="name, without the server's"),
        pytest.param(tool("search", '{"q": 2}'), "134", id="arguments"),
        pytest.param(tool("search", 7), "234", id="name alone"),
        pytest.param(tool("other"), "234", id="any of the agent"),
    ],
)
def test_a_span_shows_the_call_that_is_most_like_it(shown: Step, waits: str) -> None:
    requested = asked(
        call("search", '{"q": 1}', "c1"),
        call("search", '{"q":2}', "c2"),
        call("mcp__srv__lookup", call_id="c3"),
        call("read", call_id="c4"),
    )
    requested.show(node(5), shown)

    left = requested.answered(node(2), told(c1=1, c2=1, c3=1, c4=1))
    assert [step.call_id for step in left] == [f"c{number}" for number in waits]


def test_its_own_agent_s_calls_come_first() -> None:
    requested, other = asked(call("search", call_id="call_1")), node(9)
    other.invoke("other")
    requested.ask(other, Step(kind="llm", tool_calls=(call("search", call_id="call_1"),)))
    requested.show(other, tool("search", call_id="call_1"))

    assert requested.answered(other, told(call_1=1)) == []
    assert names(requested.answered(node(2), told(call_1=1))) == ["search"]


def test_a_span_may_begin_before_the_turn_has_been_told() -> None:
    requested = RequestedCalls()
    requested.show(node(5), tool("search", call_id="c1"), in_turn=True)
    requested.ask(node(), Step(kind="llm", tool_calls=(call("search", call_id="c1"),)))

    assert requested.answered(node(2), told(c1=1)) == []


def test_a_span_of_an_earlier_turn_shows_no_later_call() -> None:
    requested = RequestedCalls()
    requested.show(node(5), tool("search"))
    requested.ask(node(), Step(kind="llm", tool_calls=(call("search", call_id="c1"),)))

    assert names(requested.answered(node(2), told(c1=1))) == ["search"]


def test_another_agent_s_calls_wait_for_its_own_turn() -> None:
    requested, other = asked(call("search")), node(9)
    other.invoke("other")

    assert requested.happened(other) == []
    assert names(requested.happened(node(2))) == ["search"]


def test_the_last_calls_count_where_others_were_made_without_a_span() -> None:
    requested = asked(call("search"))
    assert requested.left() == 0, "it may be the way of answering"
    requested.happened(node(2))
    requested.ask(node(2), Step(kind="llm", tool_calls=(call("search"), call("read"))))

    assert requested.left() == 2


def test_unknown_calls_are_none() -> None:
    requested = RequestedCalls()
    requested.ask(node(), Step(kind="llm"))

    assert not requested


def test_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requested_calls, "WAITING", 2)
    requested = asked(*(call(f"t{n}") for n in range(5)))

    assert names(requested.happened(node(2))) == ["t3", "t4"]

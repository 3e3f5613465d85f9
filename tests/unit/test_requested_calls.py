"""Tool calls that a model asked for: which have happened without a span, and which have not."""

from __future__ import annotations

import pytest

from otel_loopguard import requested_calls
from otel_loopguard.requested_calls import RequestedCalls
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step, ToolCall


def node(span_id: int = 1, parent: int | None = None, name: str = "chat") -> Node:
    tree = SpanTree()
    if parent is not None:
        tree.enter(SpanRecord(name="ask_search", trace_id=1, span_id=parent))
    return tree.enter(SpanRecord(name=name, trace_id=1, span_id=span_id, parent_id=parent))


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


def test_what_no_span_has_shown_has_happened_when_the_model_is_asked_again() -> None:
    requested = asked(call("search", '{"q": 1}', "c1"), call("lookup"))

    steps = requested.happened(node(2))

    assert [(step.name, step.arguments, step.call_id) for step in steps] == [
        ("search", '{"q": 1}', "c1"),
        ("lookup", "{}", None),
    ]
    assert {(step.spanless, step.span) for step in steps} == {(True, (1, 1))}
    assert requested.happened(node(3)) == [], "once"


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        pytest.param(tool("else", call_id="c2"), ["search", "search", "mcp__srv__lookup"], id="id"),
        pytest.param(tool("lookup"), ["search", "search", "read"], id="name, after the server's"),
        pytest.param(
            tool("search", '{"q": 2}'), ["search", "mcp__srv__lookup", "read"], id="equal"
        ),
        pytest.param(tool("search", 7), ["search", "mcp__srv__lookup", "read"], id="name alone"),
        pytest.param(tool("other"), ["search", "mcp__srv__lookup", "read"], id="any of the agent"),
    ],
)
def test_a_span_shows_the_call_that_is_most_like_it(shown: Step, left: list[str]) -> None:
    requested = asked(
        call("search", '{"q": 1}'),
        call("search", '{"q":2}'),
        call("mcp__srv__lookup"),
        call("read", call_id="c2"),
    )
    requested.show(node(5), shown)

    assert names(requested.happened(node(2))) == left


def test_of_equal_names_the_arguments_tell() -> None:
    requested = asked(call("search", '{"q": 1}'), call("search", '{"q": 2}'))
    requested.show(node(5), tool("search", '{"q":2}'))

    assert [step.arguments for step in requested.happened(node(2))] == ['{"q": 1}']


def test_a_span_may_begin_before_the_turn_has_been_told() -> None:
    requested = RequestedCalls()
    requested.show(node(5), tool("search", call_id="c1"), in_turn=True)
    requested.ask(node(), Step(kind="llm", tool_calls=(call("search", call_id="c1"),)))

    assert requested.happened(node(2)) == []


def test_a_span_of_an_earlier_turn_shows_no_later_call() -> None:
    requested = RequestedCalls()
    requested.show(node(5), tool("search"))
    requested.ask(node(), Step(kind="llm", tool_calls=(call("search"),)))

    assert names(requested.happened(node(2))) == ["search"]


def test_another_agent_s_calls_wait_for_its_own_turn() -> None:
    requested, other = asked(call("search")), node(9)
    other.invoke("other")

    assert requested.happened(other) == []
    assert names(requested.happened(node(2))) == ["search"]


def test_an_open_span_above_may_still_be_the_call() -> None:
    requested = asked(call("ask_search"), call("lookup"))

    assert names(requested.happened(node(2, parent=8))) == ["lookup"]
    assert names(requested.happened(node(3))) == ["ask_search"]


def test_the_last_calls_of_an_agent_count_where_tools_have_no_spans() -> None:
    requested = asked(call("search"))
    requested.happened(node(2))
    requested.ask(node(2), Step(kind="llm", tool_calls=(call("search"),)))

    assert names(requested.left(None)) == ["search"]


@pytest.mark.parametrize("over", [False, True])
def test_elsewhere_they_were_its_way_of_answering(*, over: bool) -> None:
    requested = asked(call("final_result"))

    assert (requested.over() if over else requested.left(None)) == []


def test_unknown_calls_are_none() -> None:
    requested = RequestedCalls()
    requested.ask(node(), Step(kind="llm"))

    assert requested.happened(node(2)) == []


def test_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requested_calls, "WAITING", 2)
    requested = asked(*(call(f"t{n}") for n in range(5)))

    assert names(requested.happened(node(2))) == ["t3", "t4"]

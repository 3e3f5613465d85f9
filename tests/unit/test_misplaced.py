"""Spans that hang in the wrong place: which one they belong below."""

from __future__ import annotations

import pytest

from otel_loopguard import LoopGuard, Policy, misplaced
from otel_loopguard.misplaced import Unattached, in_its_place
from otel_loopguard.runs import Run
from otel_loopguard.slots import Slot
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

(SCOPE,) = misplaced.UNATTACHED


def record(span_id: int, parent_id: int | None = None, scope: str = SCOPE) -> SpanRecord:
    return SpanRecord(name="s", trace_id=1, span_id=span_id, parent_id=parent_id, scope=scope)


class Open:
    """Open spans of such a scope."""

    def __init__(self) -> None:
        self.tree, self.spans = SpanTree(), Unattached()

    def start(self, span_id: int, parent_id: int | None = None, scope: str = SCOPE) -> Node:
        given = record(span_id, parent_id, scope)
        node = self.tree.enter(given)
        self.spans.started(node, given)
        return node

    def end(self, node: Node) -> None:
        self.tree.close(node)
        self.spans.ended(node)


def test_the_last_open_span_with_none_below_it_is_the_leaf() -> None:
    spans = Open()
    top = spans.start(1)
    assert spans.spans.leaf(None) is top
    below = spans.start(2, 1)
    assert spans.spans.leaf(None) is below
    spans.end(below)
    assert spans.spans.leaf(None) is top
    spans.end(top)
    assert spans.spans.leaf(None) is None


def test_spans_of_other_scopes_are_made_current_and_are_none() -> None:
    spans = Open()
    spans.start(1, scope="other")

    assert spans.spans.leaf(None) is None


def test_one_that_has_shown_its_call_is_none() -> None:
    spans = Open()
    top = spans.start(1)
    top.below = spans.start(2, scope="other")

    assert spans.spans.leaf(None) is None


def test_if_the_run_is_known_it_is_one_of_that() -> None:
    spans = Open()
    own, other = (Run("r", "agent", LoopGuard(Policy.none()), Slot()) for _ in range(2))
    first, second = spans.start(1), spans.start(2)
    first.run, second.run = own, other

    assert spans.spans.leaf(own) is first
    assert spans.spans.leaf(None) is None, "it may be of either"
    spans.end(second)
    assert spans.spans.leaf(None) is first


def test_a_call_of_somebody_is_not_stopped_with_a_run_that_has_tripped() -> None:
    spans = Open()
    run = Run("r", "agent", LoopGuard(Policy.none(), max_steps=1), Slot())
    only = spans.start(1)
    only.run = run
    for _ in range(2):
        run.trips_by(run.guard.check(Step(kind="llm")))

    assert spans.spans.leaf(None, may_stop=True) is None
    assert spans.spans.leaf(run, may_stop=True) is spans.spans.leaf(None) is only


def test_too_many_push_out_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misplaced, "OPEN", 2)
    spans = Open()
    first, second, third = (spans.start(number) for number in (1, 2, 3))
    spans.end(third)
    spans.end(second)

    assert spans.spans.leaf(None) is None
    spans.end(first)


def test_a_span_never_hangs_below_one_of_its_own() -> None:
    spans = Open()
    top, below = spans.start(1), spans.start(2, 1)
    for parent in (below, top):
        top.hang_below(parent)

    assert [node.span_id for node in below.upwards()] == [2, 1]


@pytest.mark.parametrize(
    ("above", "is_topmost"),
    [
        ((), False),
        (("application",), True),
        (("application", SCOPE), False),
        (("application", SCOPE, "application"), False),
    ],
    ids=["a root", "below another's", "below its own", "below another's below its own"],
)
def test_whether_any_of_its_instrumentation_is_above_a_span(
    above: tuple[str, ...], *, is_topmost: bool
) -> None:
    tree = SpanTree()
    for number, scope in enumerate(above, 1):
        tree.enter(record(number, number - 1 or None, scope))
    given = record(9, len(above) or None)

    assert in_its_place(given, tree.enter(given)).is_topmost is is_topmost


def test_what_is_above_a_span_is_not_known_if_its_parent_was_not_seen() -> None:
    given = record(2, 1)

    assert in_its_place(given, SpanTree().enter(given)) is given

"""Where spans hang, and what is kept of them."""

from __future__ import annotations

import gc
import weakref

import pytest

from otel_loopguard import span_tree
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord


class Live:
    """Stands for a span of the SDK: something that can be referred to weakly."""


def record(span_id: int, parent_id: int | None = None, *, remote: bool = False) -> SpanRecord:
    return SpanRecord(
        name=f"s{span_id}",
        trace_id=1,
        span_id=span_id,
        parent_id=parent_id,
        parent_is_remote=remote,
    )


def chain(tree: SpanTree, *ids: int) -> list[Node]:
    parents = (None, *ids)
    return [tree.enter(record(each, above)) for each, above in zip(ids, parents, strict=False)]


def test_a_span_hangs_below_its_parent() -> None:
    root, middle, leaf = chain(SpanTree(), 1, 2, 3)

    assert list(leaf.upwards()) == [leaf, middle, root]
    assert leaf.local_root() is root


def test_a_remote_parent_is_none() -> None:
    tree = SpanTree()
    tree.enter(record(1))

    assert tree.enter(record(2, 1, remote=True)).parent is None
    assert tree.enter(record(4, 4)).parent is None


def test_a_parent_that_was_not_seen_holds_its_children_together() -> None:
    tree = SpanTree()
    first, second = tree.enter(record(3, 99)), tree.enter(record(4, 99))

    assert first.parent is not None
    assert first.parent is second.parent is tree.get(99)
    assert first.parent.stands_in
    assert not first.parent.is_lost


def test_a_span_may_hang_below_one_that_has_ended() -> None:
    tree = SpanTree()
    (root,) = chain(tree, 1)
    tree.close(root)
    below = tree.enter(record(2, 1))

    assert below.parent is root
    assert below.local_root() is below, "a run's root must be open"


def test_the_local_root_is_the_topmost_open_one() -> None:
    tree = SpanTree()
    top, middle, leaf = chain(tree, 1, 2, 3)
    tree.close(middle)

    assert leaf.local_root() is top
    tree.close(top)
    assert leaf.local_root() is leaf


def test_the_agent_is_inherited() -> None:
    tree = SpanTree()
    (agent,) = chain(tree, 1)
    agent.agent = "scout"

    assert tree.enter(record(2, 1)).agent == "scout"


def test_ended_spans_are_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "ENDED", 3)
    tree = SpanTree()
    nodes = chain(tree, 1, 2, 3, 4)
    for node in nodes:
        tree.close(node)

    assert [tree.get(each) for each in (1, 2, 3, 4)] == [None, *nodes[1:]]
    assert tree.evicted == 0, "an ended span is no loss"


def test_too_many_spans_push_out_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "SPANS", 3)
    tree = SpanTree()
    nodes = chain(tree, 1, 2, 3, 4, 5)

    assert [tree.get(each) for each in (1, 2, 3, 4, 5)] == [None, None, *nodes[2:]]
    assert tree.evicted == 2
    assert list(nodes[4].upwards()) == [nodes[4], nodes[3], nodes[2], nodes[1]], "cut off above"


def test_an_ended_span_that_is_pushed_out_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "SPANS", 3)
    tree = SpanTree()
    for node in chain(tree, 1, 2, 3):
        tree.close(node)
    chain(tree, 4, 5)

    assert tree.get(1) is None
    assert tree.evicted == 0


def test_a_long_lived_root_outlives_its_ended_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "SPANS", 20)
    monkeypatch.setattr(span_tree, "ENDED", 5)
    tree = SpanTree()
    (root,) = chain(tree, 1)
    for each in range(2, 200):
        tree.close(tree.enter(record(each, 1)))

    assert tree.get(1) is root
    assert tree.evicted == 0


def test_a_span_id_that_comes_again_is_another_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "ENDED", 1)
    tree = SpanTree()
    first = tree.enter(record(1))
    tree.close(first)
    second = tree.enter(record(1))
    tree.close(tree.enter(record(2)))

    assert tree.get(1) is second, "forgetting the first must not take the second along"


def test_the_span_itself_is_let_go_at_its_end() -> None:
    tree = SpanTree()
    live = Live()
    node = tree.enter(record(1), live)

    assert node.live is live
    tree.close(node)
    assert node.live is None


def test_a_span_that_nobody_ends_is_not_kept_alive() -> None:
    tree = SpanTree()
    live = Live()
    node, gone = tree.enter(record(1), live), weakref.ref(live)
    del live
    gc.collect()

    assert gone() is None
    assert node.live is None
    assert tree.get(1) is node

"""Which open step a recorded one completes."""

from __future__ import annotations

from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.engine.open_steps import NAMED, NAMELESS, OpenStep, OpenSteps
from otel_loopguard.engine.readings import NOBODY, identify
from otel_loopguard.engine.rule_sets import RuleSets
from otel_loopguard.settings import Limits, Settings
from otel_loopguard.steps import SpanKey, Step

ONE, TWO = SpanKey(1, 1), SpanKey(1, 2)


def tool(name: str = "a", **facts: Any) -> Step:
    return Step(kind="tool", name=name, **facts)


def opened(*steps: Step) -> tuple[OpenSteps, list[OpenStep]]:
    store, kept = OpenSteps(), list[OpenStep]()
    rules = RuleSets(Settings(Limits(), {}))
    for number, step in enumerate(steps, 1):
        owner = rules.of(step.agent)
        kept.append(
            OpenStep(
                kind=step.kind,
                name=step.name,
                agent=step.agent,
                span=step.span,
                call_id=step.call_id,
                number=number,
                identity=identify(step, None, step.agent) if step.kind == "tool" else NOBODY,
                batch=None,
                owner=owner,
                rules=owner.of_kind(step.kind),
                within=(),
            )
        )
        store.add(kept[-1], step.arguments)
    return store, kept


def found(step: Step, *steps: Step) -> int:
    """Return the number of the open step that is found among these, 0 for none."""
    store, _ = opened(*steps)
    one = store.find(step)
    return 0 if one is None else one.number


class Unequal:
    """A value that is not even equal to itself."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError(other)

    __hash__ = None  # type: ignore[assignment]


class Odd:
    """A value whose comparison has no truth, as an array's."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise ValueError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("step", "steps", "number"),
    [
        # The span goes before the call id, the call id before all else.
        (tool(span=TWO), [tool(span=ONE), tool(span=TWO)], 2),
        (tool(span=ONE, call_id="y"), [tool(span=ONE, call_id="x"), tool(call_id="y")], 1),
        (tool(span=TWO, call_id="y"), [tool(call_id="x"), tool(call_id="y")], 2),
        (tool("b", span=ONE), [tool("a", span=ONE)], 1),
        # An id that another tool has, too, says nothing: some servers have one for all calls.
        (tool("b", call_id="x"), [tool("a", call_id="x")], 0),
        (tool("a", call_id="x"), [tool("a", call_id="x"), tool("b", call_id="x")], 1),
        (Step(kind="custom", name="a", call_id="x"), [tool("a", call_id="x")], 0),
        # Without either: the oldest of the same kind, name and arguments.
        (tool(arguments="1"), [tool(arguments="1"), tool(arguments="1")], 1),
        (tool(arguments="2"), [tool(arguments="1"), tool(arguments="2")], 2),
        (tool(arguments="1"), [tool(arguments="1"), tool(arguments="2")], 1),
        (tool(arguments="3"), [tool(arguments="1"), tool(arguments="2")], 0),
        (tool(arguments={"x": 1}), [tool(arguments='{"x": 1}'), tool(arguments="2")], 1),
        (tool("b"), [tool("a")], 0),
        (Step(kind="custom", name="a"), [tool("a")], 0),
        (tool(), [], 0),
        # Unknown arguments fit, but known ones fit better.
        (tool(arguments=UNKNOWN), [tool(arguments="1"), tool(arguments="2")], 1),
        (tool(arguments="2"), [tool(arguments=UNKNOWN), tool(arguments="2")], 2),
        (tool(arguments="1"), [tool(arguments=UNKNOWN)], 1),
        (tool(arguments="1"), [tool(arguments="2"), tool(arguments=UNKNOWN)], 2),
        (tool(arguments="1"), [tool(arguments=UNKNOWN), tool(arguments=UNKNOWN)], 1),
        # What has a span or an id of its own completes nothing that has another.
        (tool(span=TWO), [tool(span=ONE)], 0),
        (tool(call_id="y"), [tool(call_id="x")], 0),
        (tool(span=ONE), [tool(call_id="x")], 1),
        (tool(call_id="y", span=ONE), [tool(), tool(call_id="x", span=TWO)], 1),
        (tool(), [tool(call_id="x")], 1),
        (tool(), [tool(call_id="x"), tool()], 2),
        # Nor does what another agent did, if it is said who did it.
        (tool(agent="y"), [tool(agent="x"), tool(agent="y")], 2),
        (tool(agent="y"), [tool(agent="x")], 0),
        (tool(), [tool(agent="x")], 1),
        # Arguments of steps that are no tool calls: by identity or `==`, as long as they are kept.
        (Step(kind="custom", arguments=[1]), [Step(kind="custom", arguments=[1])], 1),
        (Step(kind="custom", arguments=[2]), [Step(kind="custom", arguments=[1])], 0),
        (
            Step(kind="custom", arguments=[2]),
            [Step(kind="custom", arguments=[1]), Step(kind="custom", arguments=[2])],
            2,
        ),
        (
            Step(kind="custom", arguments=[3]),
            [Step(kind="custom", arguments=[1]), Step(kind="custom", arguments=[2])],
            1,
        ),
    ],
)
def test_which_step_is_found(step: Step, steps: list[Step], number: int):
    assert found(step, *steps) == number


@pytest.mark.parametrize("kind", [Unequal, Hostile, Odd])
def test_what_does_not_even_equal_itself_is_found_by_identity(kind: type[object]):
    value = kind()

    assert found(tool(arguments=value), tool(arguments=value)) == 1


@pytest.mark.parametrize("kind", [Hostile, Odd])
def test_what_cannot_be_compared_is_found_by_its_content(kind: type[object]):
    assert found(tool(arguments=kind()), tool(arguments=kind())) == 1
    assert found(tool(arguments=[kind(), 1]), tool(arguments=[kind(), 2])) == 0


def test_what_cannot_be_read_either_is_a_call_with_unknown_arguments():
    unread = iter([1])

    assert found(tool(arguments=iter([1])), tool(arguments=unread), tool(arguments=UNKNOWN)) == 1
    assert found(tool(arguments=unread), tool(arguments=UNKNOWN), tool(arguments=unread)) == 2


def test_equal_call_ids_are_completed_one_by_one():
    store, (older, newer) = opened(tool(call_id="x"), tool(call_id="x"))

    first = store.find(tool(call_id="x"))
    assert first is newer
    store.remove(newer)
    assert store.find(tool(call_id="x")) is older
    store.remove(older)
    assert store.find(tool(call_id="x")) is None
    assert len(store) == 0


def test_the_older_of_two_equal_call_ids_can_go_first():
    store, (older, newer) = opened(tool(call_id="x", span=ONE), tool(call_id="x", span=TWO))
    store.remove(older)

    assert store.call_ids() == ("x",)
    assert store.find(tool(call_id="x")) is newer
    assert store.find(tool(span=ONE)) is None


def test_a_step_that_was_removed_is_not_found():
    store, (nameless, by_id, by_span) = opened(tool(), tool(call_id="x"), tool(span=ONE))
    for step in (nameless, by_span, by_id):
        store.remove(step)

    assert [store.find(step) for step in (tool(), tool(call_id="x"), tool(span=ONE))] == [None] * 3
    assert store.call_ids() == ()


def test_call_ids_wait_in_the_order_of_their_steps():
    store, (first, *_) = opened(tool(call_id="x"), tool(span=ONE), tool(call_id="y", span=TWO))

    assert store.call_ids() == ("x", "y")
    store.remove(first)
    assert store.call_ids() == ("y",)


def test_the_oldest_named_steps_are_forgotten():
    store, kept = opened(*[tool(call_id=f"{n}", span=SpanKey(1, n)) for n in range(NAMED + 3)])

    assert (len(store), store.evicted) == (NAMED, 3)
    assert store.find(tool(call_id="2", span=SpanKey(1, 2))) is None
    assert store.find(tool(call_id="3")) is kept[3]
    assert store.call_ids()[0] == "3"


def test_the_oldest_nameless_steps_are_forgotten_by_themselves():
    store, kept = opened(
        tool("b", call_id="x"),
        *[tool(arguments=n) for n in range(NAMELESS + 2)],
        tool("b", call_id="y"),
    )

    assert (len(store), store.evicted) == (NAMELESS + 2, 2)
    assert store.find(tool(arguments=1)) is None
    assert store.find(tool(arguments=2)) is kept[3]
    assert store.call_ids() == ("x", "y")


def test_large_arguments_do_not_pile_up():
    class Large:
        alive = 0

        def __init__(self) -> None:
            Large.alive += 1

        def __del__(self) -> None:
            Large.alive -= 1

    store, kept = opened(*[tool(arguments=Large(), call_id=f"{n}") for n in range(5)])
    assert Large.alive == 1
    store.remove(kept[-1])
    assert Large.alive == 0

"""Whatever a tool is called with and answers: no exception, no hang, and equal is equal."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.decisions import Decision
from otel_loopguard.guard import LoopGuard
from otel_loopguard.steps import Step
from tests._examples import examples

Make: TypeAlias = Callable[[int], object]
"""Makes a value anew: equal for equal numbers, and another for another number."""


@dataclasses.dataclass
class Point:
    x: int
    y: object = None


class Model(pydantic.BaseModel):
    x: int
    y: Any = None


class Record(msgspec.Struct):
    x: int
    y: object = None


class Pair(NamedTuple):
    x: int
    y: object = None


class Bristly:
    """A value that cannot be compared, hashed, shown or copied, and has content all the same."""

    def __init__(self, content: object) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        raise RuntimeError(other)

    def __hash__(self) -> int:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError

    def __deepcopy__(self, _: object) -> Bristly:
        raise RuntimeError


class Closed:
    """A value that shows nothing of itself, not even its class."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError


def circular(number: int) -> object:
    inner: dict[str, object] = {"n": number}
    inner["up"] = [inner]
    return inner


def deep(number: int) -> object:
    value: object = number
    for _ in range(2_000):
        value = [value]
    return value


def deep_mapping(number: int) -> object:
    value: object = number
    for _ in range(2_000):
        value = {"in": value}
    return value


LEAVES: dict[str, Make] = {
    "number": lambda n: n,
    "fraction": lambda n: n + 0.5,
    "long number": lambda n: 10**5_000 + n,
    "decimal": lambda n: decimal.Decimal(n) / 7,
    "text": lambda n: f"page {n}",
    "lone surrogate": lambda n: f"\ud800 {n}",
    "control characters": lambda n: f"\x00\x1b[{n}m\u2028",
    "JSON": lambda n: f'{{"a": [1, {n}]}}',
    "broken JSON": lambda n: f'{{"a": [1, {n}',
    "bytes": lambda n: b"\xff\xfe%d" % n,
    "set": lambda n: {"a", "b", n},
    "date": lambda n: dt.date(2026, 1, 1) + dt.timedelta(days=n),
    "NaN": lambda n: [float("nan"), n],
    "infinity": lambda n: {"to": float("inf"), "from": n},
    "dataclass": lambda n: Point(n, [n]),
    "pydantic model": lambda n: Model(x=n, y={"n": n}),
    "struct": lambda n: Record(n, (n,)),
    "named tuple": lambda n: Pair(n, "y"),
    "bristly": Bristly,
    "circular": circular,
    "deep list": deep,
    "deep mapping": deep_mapping,
    "odd keys": lambda n: {None: n, (1, 2): n, 3: n, b"k": n},
    "wide": lambda n: [*range(5_000), n],
}
WRAPS: dict[str, Callable[[object], object]] = {
    "as it is": lambda value: value,
    "in a list": lambda value: [value, "beside"],
    "in a mapping": lambda value: {"q": value, "limit": 10},
    "in a tuple": lambda value: (value,),
    "in a dataclass": lambda value: Point(0, value),
    "in a model": lambda value: Model.model_construct(x=0, y=value),
    "in a bristly object": Bristly,
}
leaves = st.sampled_from(sorted(LEAVES))
wraps = st.lists(st.sampled_from(sorted(WRAPS)), max_size=3)


def made(leaf: str, wrapping: list[str], number: int) -> object:
    value = LEAVES[leaf](number)
    for wrap in wrapping:
        value = WRAPS[wrap](value)
    return value


def play(step_of: Callable[[int], Step], times: int = 5) -> list[Decision]:
    """Check and record so many steps, each made twice anew."""
    guard = LoopGuard(max_repeated_calls=50)
    decisions: list[Decision] = []
    for number in range(times):
        asked = step_of(number)
        guard.preview(asked)
        decisions += guard.check(asked), guard.record(step_of(number))
    assert guard.stats().steps == times
    guard.report()
    return decisions


@pytest.mark.parametrize("leaf", sorted(LEAVES))
def test_five_equal_calls_trip_and_five_others_do_not(leaf: str):
    assert_equality(leaf, [], as_result=False)
    assert_equality(leaf, [], as_result=True)


@examples(60)
@given(leaves, wraps, st.booleans())
def test_they_do_inside_others(leaf: str, wrapping: list[str], as_result: bool):  # noqa: FBT001
    assert_equality(leaf, wrapping, as_result=as_result)


def assert_equality(leaf: str, wrapping: list[str], *, as_result: bool) -> None:
    def step(number: int) -> Step:
        value = made(leaf, wrapping, number)
        if as_result:
            return Step(kind="tool", name="a", arguments={}, result=value)
        return Step(kind="tool", name="a", arguments=value, result="x")

    equal = play(lambda _: step(3))
    assert [d.rule for d in equal[:-1]] == [None] * 9
    assert equal[-1].rule == "repeated_result"
    assert not any(d.violations for d in play(step))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(Closed, id="closed"),
        pytest.param(lambda: [Closed()], id="in a list"),
        pytest.param(lambda: iter([1, 2]), id="an iterator"),
        pytest.param(lambda: {"f": (n for n in range(3))}, id="a generator inside"),
    ],
)
def test_what_cannot_be_read_equals_nothing(make: Callable[[], object]):
    guard = LoopGuard()
    for _ in range(9):
        step = Step(kind="tool", name="a", arguments=make(), result="x")
        assert guard.check(step) == guard.record(step)
    for _ in range(3):
        step = Step(kind="tool", name="a", arguments="x", result=make())
        assert guard.check(step) == guard.record(step)

    assert guard.stats().steps == 12
    assert guard.report().violations == ()


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
    | st.binary()
    | st.dates()
    | st.decimals()
    | st.complex_numbers()
    | st.builds(Bristly, st.integers())
    | st.builds(Closed),
    lambda parts: (
        st.lists(parts)
        | st.dictionaries(st.none() | st.text() | st.integers() | st.binary(), parts)
        | st.tuples(parts, parts)
        | st.builds(Point, st.integers(), parts)
        | st.builds(Bristly, parts)
    ),
    max_leaves=8,
)
texts = st.text() | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
any_steps = st.builds(
    Step,
    kind=st.sampled_from(["tool", "tool", "llm", "agent", "custom"]),
    name=st.sampled_from(["a", "b"]) | texts,
    arguments=anything,
    result=anything,
    error=st.none() | texts,
    agent=st.just("") | texts,
    call_id=st.none() | texts,
    batch=st.none() | texts,
    finish_reasons=st.lists(st.sampled_from(["stop", "length"]) | texts, max_size=2).map(tuple),
    output=texts,
)


@given(st.lists(any_steps, max_size=8), st.booleans())
def test_no_step_brings_a_guard_down(word: list[Step], again: bool):  # noqa: FBT001
    guard = LoopGuard(max_repeated_calls=3, loop_pattern_window=4, max_consecutive_errors=9)
    for step in word * (1 + again):
        guard.preview(step)
        guard.check(step, commit=True)
        guard.record(step)

    assert guard.end().steps == sum(step.kind != "agent" for step in word * (1 + again))


LONG = 50_000_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * LONG, id="letters"),
        pytest.param("word 123 " * (LONG // 9), id="words"),
        pytest.param("[" + "1," * (LONG // 2) + "1]", id="JSON"),
        pytest.param("{" * LONG, id="almost JSON"),
        pytest.param("Error: " + "no\n" * (LONG // 3), id="an error"),
        pytest.param("\u00e9" * (LONG // 2), id="letters beyond ASCII"),
    ],
)
def test_fifty_megabytes_take_seconds(text: str):
    began_s = time.process_time()
    guard = LoopGuard()
    for step in (
        Step(kind="tool", name="a", arguments=text, result="x"),
        Step(kind="tool", name="b", arguments={}, result=text),
        Step(kind="tool", name="c", arguments={}, error=text),
        Step(kind="llm", output=text),
    ):
        assert guard.check(step).allowed
        guard.record(step)

    assert time.process_time() - began_s < 20
    assert guard.stats().steps == 4
